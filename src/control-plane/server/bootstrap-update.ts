// Another bootstrap for a running server: clusters, listeners and runtime layers become those of the new one, step by step, so that
// no request finds less than it would have found before or after. What cannot change while the server runs is named before
// anything has changed; when a step fails, those before it are undone. Main thread.
//
//   runtime ──► clusters put ──► all of them serve ──► listeners put, and removed that are gone
//                                  later, when former listeners have no connections left ──► clusters removed that are gone

import { formatAddress } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import { errorMessage, WeirError } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { BootstrapConfig } from '../../config/index.ts';
import type { ClusterSettings, ListenerSettings } from '../../snapshot/index.ts';
import type { ClusterManager } from '../cluster-manager/cluster-manager.ts';
import type { ListenerManager } from '../listener-manager/listener-manager.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { areSameSettings } from '../same-settings.ts';
import type { LoadedConfig } from './loaded-config.ts';

type FixedSetting = Exclude<
  keyof BootstrapConfig,
  'clusters' | 'listeners' | 'discoverable' | 'runtimeLayers' | 'messages' | 'environment'
>;

/** What a server begins with and keeps, by the field of a bootstrap that a user knows it by. */
const FIXED_FIELDS: Readonly<Record<FixedSetting, string>> = {
  node: 'node',
  admin: 'admin',
  dynamicResources: 'dynamic_resources',
  statsFlushIntervalMs: 'stats_flush_interval',
  statsFlushOnAdmin: 'stats_flush_on_admin',
  serverVersion: 'stats_server_version_override',
  headerPrefix: 'header_prefix',
  localCluster: 'cluster_manager.local_cluster_name',
  fixedStatTags: 'stats_config.stats_tags',
  useAllDefaultTags: 'stats_config.use_all_default_tags',
  defaultStatTags: 'stats_config.stats_tags',
  statTagRules: 'stats_config.stats_tags',
  shownStats: 'stats_config.stats_matcher',
  bucketSettings: 'stats_config.histogram_bucket_settings',
  statSinks: 'stats_sinks',
  overload: 'overload_manager',
  watchdogs: 'watchdogs',
  metersLoops: 'enable_dispatcher_stats',
  logFormat: 'application_log_config',
  healthDelegation: 'hds_config',
  loadReporting: 'cluster_manager.load_stats_config',
  outlierEventLogPath: 'cluster_manager.outlier_detection.event_log_path',
};

/** Fields of a bootstrap that differ and cannot change while a server runs. */
export function fixedChanges(from: BootstrapConfig, to: BootstrapConfig): readonly string[] {
  const fixed = Object.entries(FIXED_FIELDS) as [FixedSetting, string][];
  const fields = fixed.flatMap(([setting, field]) => (areSameSettings(from[setting], to[setting]) ? [] : field));
  return [...new Set(fields)];
}

export interface BootstrapUpdateParts {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly clusters: ClusterManager;
  readonly listeners: ListenerManager;
  readonly runtime: Runtime;
  /** For listings. */
  readonly config: LoadedConfig;
}

type Undo = () => unknown;

export class BootstrapUpdates {
  readonly #parts: BootstrapUpdateParts;
  readonly #stopped = Promise.withResolvers<never>();
  #current: BootstrapConfig;
  /** The last of those that wait for one another. */
  #last: Promise<unknown> = Promise.resolve();
  #isStopped = false;
  /** Clusters that only connections of former listeners may still ask for, by name. */
  readonly #leaving = new Map<string, Given<ClusterSettings>>();

  /** @param current what the server has been started with. */
  constructor(current: BootstrapConfig, parts: BootstrapUpdateParts) {
    this.#parts = parts;
    this.#current = current;
    // Heard of by an update that waits, if there is any.
    this.#stopped.promise.catch(() => {});
  }

  /**
   * Resolves when the server is as the bootstrap says. Updates wait for one another.
   * @throws WeirError WEIR_CANNOT_CHANGE, whose detail has the fields, one a line, or that of a step that has failed
   * (WEIR_LISTEN_FAILED, WEIR_SHARED_MEMORY_FULL); all is as before then. WEIR_STOPPED when the server stops meanwhile.
   */
  apply(next: BootstrapConfig): Promise<void> {
    const done = this.#last.then(() => this.#apply(next));
    this.#last = done.catch(() => {});
    return done;
  }

  /** The server stops: what is under way ends, and no other begins. */
  stop(): void {
    this.#isStopped = true;
    this.#stopped.reject(stoppedError());
  }

  async #apply(given: BootstrapConfig): Promise<void> {
    if (this.#isStopped) throw stoppedError();
    const former = this.#current;
    const fields = fixedChanges(former, given);
    if (fields.length > 0) {
      const text = `cannot change while the proxy runs: ${fields.join(', ')}`;
      throw new WeirError('WEIR_CANNOT_CHANGE', text, { source: 'config', detail: fields.join('\n') });
    }
    const next = { ...given, listeners: withNamesOf(former.listeners, given.listeners) };
    const undo: Undo[] = [];
    try {
      await this.#change(former, next, undo);
    } catch (error) {
      // Nobody is served any more: there is nothing to be put right.
      if (!this.#isStopped) await this.#undo(undo, error);
      throw error;
    }
    this.#current = next;
    this.#parts.config.replaceBootstrap(next, this.#parts.clock.wallMs());
  }

  /** @throws WeirError WEIR_HALF_DONE when the way back is closed as well, as by somebody who has taken an address meanwhile. */
  async #undo(steps: readonly Undo[], cause: unknown): Promise<void> {
    const failures: string[] = [];
    for (const step of steps.toReversed()) {
      try {
        await step();
      } catch (error) {
        failures.push(errorMessage(error));
      }
    }
    if (failures.length === 0) return;
    const text = `${errorMessage(cause)}; and what had been changed before could not be undone: ${failures.join(', ')}`;
    throw new WeirError('WEIR_HALF_DONE', text, { cause });
  }

  async #change(from: BootstrapConfig, to: BootstrapConfig, undo: Undo[]): Promise<void> {
    const { clusters, runtime } = this.#parts;
    const former = byName(from.clusters, from.messages.clusters);
    const wanted = byName(to.clusters, to.messages.clusters);
    const returning = this.#takeBack(wanted, undo);
    if (!areSameSettings(from.runtimeLayers, to.runtimeLayers)) {
      undo.push(() => runtime.load(from.runtimeLayers));
      await Promise.race([runtime.load(to.runtimeLayers), this.#stopped.promise]);
    }
    this.#putClusters(new Map([...former, ...returning]), wanted, undo);
    await Promise.race([clusters.whenAllServe(), this.#stopped.promise]);
    await this.#changeListeners(from, to, undo);
    this.#leave([...former].filter(([name]) => !wanted.has(name)));
  }

  /** Clusters that were about to go and do not; when the update fails, they are again. */
  #takeBack(wanted: Clusters, undo: Undo[]): readonly (readonly [string, Given<ClusterSettings>])[] {
    const returning = [...this.#leaving].filter(([name]) => wanted.has(name));
    for (const [name] of returning) this.#leaving.delete(name);
    undo.push(() => this.#leave(returning));
    return returning;
  }

  /** They go with the last connection of former listeners. */
  #leave(clusters: Iterable<readonly [string, Given<ClusterSettings>]>): void {
    for (const [name, given] of clusters) this.#leaving.set(name, given);
    const { faults, listeners } = this.#parts;
    faults.run('the removal of clusters', async () => {
      await listeners.whenNoneDrains();
      this.#removeClusters();
    });
  }

  #removeClusters(): void {
    if (this.#isStopped) return;
    for (const name of this.#leaving.keys()) this.#parts.clusters.remove(name, false);
    this.#leaving.clear();
  }

  /** @param former those that there are. */
  #putClusters(former: Clusters, wanted: Clusters, undo: Undo[]): void {
    const { clusters } = this.#parts;
    for (const { settings, message } of wanted.values()) {
      const before = former.get(settings.name);
      if (before !== undefined && areSameSettings(before.settings, settings)) continue;
      if (!clusters.put(settings, '', message, false)) throw takenError(`cluster ${settings.name}`);
      undo.push(() =>
        before === undefined
          ? clusters.remove(settings.name, false)
          : clusters.put(before.settings, '', before.message, false),
      );
    }
  }

  async #changeListeners(from: BootstrapConfig, to: BootstrapConfig, undo: Undo[]): Promise<void> {
    const { listeners } = this.#parts;
    const former = byName(from.listeners, from.messages.listeners);
    const wanted = byName(to.listeners, to.messages.listeners);
    const gone = [...former.values()].filter(({ settings }) => !wanted.has(settings.name));
    const takenAddresses = new Set([...wanted.values()].flatMap(({ settings }) => ownAddresses(settings)));
    const putBack = ({ settings, message }: Given<ListenerSettings>): Undo => {
      return () => listeners.put(settings, '', message, false);
    };
    const remove = async (each: Given<ListenerSettings>): Promise<void> => {
      this.#throwIfStopped();
      await listeners.remove(each.settings.name, false);
      undo.push(putBack(each));
    };
    // One with another name on the same address cannot be open beside it.
    const inTheWay = gone.filter(({ settings }) => ownAddresses(settings).some((each) => takenAddresses.has(each)));
    for (const each of inTheWay) await remove(each);
    for (const each of wanted.values()) {
      const { settings, message } = each;
      const before = former.get(settings.name);
      if (before !== undefined && areSameSettings(before.settings, settings)) continue;
      this.#throwIfStopped();
      if (!(await listeners.put(settings, '', message, false))) throw takenError(`listener ${settings.name}`);
      undo.push(before === undefined ? (): unknown => listeners.remove(settings.name, false) : putBack(before));
    }
    for (const each of gone) if (!inTheWay.includes(each)) await remove(each);
  }

  #throwIfStopped(): void {
    if (this.#isStopped) throw stoppedError();
  }
}

/** Those that nobody else can have. */
function ownAddresses({ addresses }: ListenerSettings): string[] {
  return addresses.flatMap((address) => (address.kind === 'ip' && address.port === 0 ? [] : formatAddress(address)));
}

interface Given<Settings> {
  readonly settings: Settings;
  readonly message: Uint8Array | undefined;
}

type Clusters = ReadonlyMap<string, Given<ClusterSettings>>;

/** The first of each name, as at the start. */
function byName<Settings extends ClusterSettings | ListenerSettings>(
  all: readonly Settings[],
  messages: readonly Uint8Array[],
): Map<string, Given<Settings>> {
  const given = new Map<string, Given<Settings>>();
  for (const [at, settings] of all.entries()) {
    if (!given.has(settings.name)) given.set(settings.name, { settings, message: messages[at] });
  }
  return given;
}

const MADE_UP_NAME = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/** A listener without a name gets another one with each load: it is the one that has had its addresses. */
function withNamesOf(
  former: readonly ListenerSettings[],
  next: readonly ListenerSettings[],
): readonly ListenerSettings[] {
  const unnamed = former.filter(({ name }) => MADE_UP_NAME.test(name));
  const addresses = (settings: ListenerSettings): string => settings.addresses.map(formatAddress).join(' ');
  return next.map((settings) => {
    if (!MADE_UP_NAME.test(settings.name)) return settings;
    const at = unnamed.findIndex((each) => addresses(each) === addresses(settings));
    return at === -1 ? settings : { ...settings, name: unnamed.splice(at, 1)[0]!.name };
  });
}

function takenError(what: string): WeirError {
  return new WeirError(
    'WEIR_LISTEN_FAILED',
    `${what} is refused: listeners are stopped, or an interface has one of this name`,
  );
}

function stoppedError(): WeirError {
  return new WeirError('WEIR_STOPPED', 'the proxy is stopped');
}
