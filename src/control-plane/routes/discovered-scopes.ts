// Scopes that come by discovery: asks for all there are, and says which of them take effect. What may not be is refused for itself, with
// the one before it kept, as far as its key is still free. Main thread; rests between two resources.

import { errorMessage } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { DiscoveredResponse } from '../../config/index.ts';
import type { ConfigSourceSettings, ScopedRoutesSettings, ScopeSettings } from '../../snapshot/index.ts';
import { cleanStatName, SCOPE_DISCOVERY_STATS } from '../../stats/index.ts';
import { Feed, type ReferringDependencies } from '../discovery/feed.ts';
import type { RefusedResource } from '../resource-record.ts';
import { logWarnings } from '../subscription/resource-warnings.ts';
import { ScopeChoice } from './scope-choice.ts';
import type { ScopeSet } from './scope-set.ts';

/** A scope as it came. */
interface ReadScope {
  readonly settings: ScopeSettings;
  readonly message: Uint8Array;
}

export interface DumpedScopes {
  readonly name: string;
  readonly version: string;
  readonly updatedMs: number;
  /** Of those in force. */
  readonly messages: readonly Uint8Array[];
  /** The first of the last response that was refused, where none has been taken over as a whole since. */
  readonly refused: (RefusedResource & { readonly version: string; readonly updatedMs: number }) | undefined;
}

export class DiscoveredScopes {
  readonly name: string;
  readonly #deps: ReferringDependencies;
  readonly #set: ScopeSet;
  readonly #onAnswered: () => void;
  readonly #feed: Feed<ScopeSettings>;
  readonly #block;
  #messages = new Map<string, Uint8Array>();
  #version = '';
  #updatedMs = 0;
  #refused: DumpedScopes['refused'];

  /** @param managerPrefix of the connection manager. @param onAnswered told when there are scopes, or none are waited for. */
  constructor(
    settings: ScopedRoutesSettings,
    source: ConfigSourceSettings,
    managerPrefix: string,
    set: ScopeSet,
    deps: ReferringDependencies,
    onAnswered: () => void,
  ) {
    const { discoverable, clusterNames } = deps;
    const { name } = settings;
    this.name = name;
    this.#deps = deps;
    this.#set = set;
    this.#onAnswered = onAnswered;
    const statPrefix = `http.${managerPrefix}.scoped_rds.${cleanStatName(name)}.`;
    this.#feed = new Feed(
      {
        what: `scoped routes ${name}`,
        source,
        names: undefined,
        statPrefix,
        type: () => discoverable().scopes(settings, clusterNames()),
        take: (response) => this.#take(response),
        onAnswered,
      },
      deps,
    );
    this.#block = this.#feed.holdings.scope(statPrefix).allocate(SCOPE_DISCOVERY_STATS);
  }

  /** Once. */
  start(): void {
    this.#feed.start();
  }

  /** There are scopes, or none are waited for any longer. */
  get isReady(): boolean {
    return this.#feed.isReady;
  }

  dump(): DumpedScopes {
    const messages = [...this.#set.names()].flatMap((name) => this.#messages.get(name) ?? []);
    return { name: this.name, version: this.#version, updatedMs: this.#updatedMs, messages, refused: this.#refused };
  }

  async #take(response: DiscoveredResponse<ScopeSettings>): Promise<readonly string[]> {
    const { version } = response;
    const refused: RefusedResource[] = [];
    const read = await this.#read(response, refused);
    if (this.#feed.isStopped) return [];
    const hasNameless = refused.some(({ name }) => name === '');
    const named = new Set(response.names);
    const gone =
      response.extent === 'changes'
        ? new Set(response.removed)
        : new Set(hasNameless ? [] : [...this.#set.names()].filter((name) => !named.has(name)));
    const choice = new ScopeChoice(this.#set);
    const scopes = choice.choose(
      [...read.values()].map(({ settings }) => settings),
      gone,
    );
    for (const [name, error] of choice.refusals) {
      refused.push({ name, message: read.get(name)!.message, error });
      read.delete(name);
    }
    try {
      this.#enact(scopes, read);
    } catch (error) {
      refused.push({ name: '', message: new Uint8Array(0), error: errorMessage(error) });
    }
    const updatedMs = this.#deps.clock.wallMs();
    const [first] = refused;
    this.#refused = first && { ...first, version, updatedMs };
    if (first === undefined || read.size > 0 || gone.size > 0) {
      this.#version = version;
      this.#updatedMs = updatedMs;
    }
    // Tables that were waited for may be among those that are not wanted any more.
    this.#onAnswered();
    return refused.map(({ name, error }) => (name === '' ? error : `scope ${name}: ${error}`));
  }

  async #read(
    response: DiscoveredResponse<ScopeSettings>,
    refused: RefusedResource[],
  ): Promise<Map<string, ReadScope>> {
    const { log, onDeprecatedFields } = this.#deps;
    const read = new Map<string, ReadScope>();
    const seen = new Set<string>();
    const slice = new TimeSlice();
    for (const offered of response.offered()) {
      if (this.#feed.isStopped) break;
      const resource = offered.read();
      const { name, message } = resource;
      logWarnings(`scope ${name}`, resource, log);
      if (name !== '' && seen.has(name)) refused.push({ name: '', message, error: `duplicate scope ${name} found` });
      else if (resource.isGood) {
        onDeprecatedFields(resource.deprecatedFields);
        read.set(name, { settings: resource.resource, message });
      } else for (const error of resource.errors) refused.push({ name, message, error });
      seen.add(name);
      if (slice.isOverNow()) await slice.rest();
    }
    return read;
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  #enact(scopes: readonly ScopeSettings[], read: ReadonlyMap<string, ReadScope>): void {
    const isOther = this.#set.replace(scopes);
    for (const [name, { message }] of read) this.#messages.set(name, message);
    for (const name of [...this.#messages.keys()]) {
      if (this.#set.settingsOf(name) === undefined) this.#messages.delete(name);
    }
    const { size } = this.#set;
    this.#block.set('all_scopes', size);
    this.countScopes();
    if (size === 0) this.#block.add('update_empty');
    if (!isOther) return;
    this.#block.add('config_reload');
    this.#block.set('config_reload_time_ms', this.#deps.clock.wallMs());
    this.#deps.log.info(`scoped routes ${this.name}: there are ${size} scopes`);
  }

  /** Brings gauges up to date that change by requests, too. */
  countScopes(): void {
    this.#block.set('active_scopes', this.#set.activeCount);
    this.#block.set('on_demand_scopes', this.#set.onDemandCount);
  }

  /** Nothing is asked for any more. */
  stop(): void {
    this.#feed.stop();
  }

  /** Nobody wants it any more. Once. */
  close(): void {
    this.#feed.close();
  }
}
