// The configuration of HTTP filters that comes by discovery under one name: asks for it, and brings it to the workers, once for each
// prefix of stats and each way in which chains read it. What may not be leaves the one before it. Where there is none, or none any
// more, the chain's default takes its place, and where that has none its requests are answered with an error. Main thread.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { DiscoverableResources, DiscoveredResponse, ReadFilters } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type {
  ConfigSourceSettings,
  ConfiguredFilter,
  DiscoveredFilter,
  PublishedFilter,
} from '../../snapshot/index.ts';
import { cleanStatName, EXTENSION_DISCOVERY_STATS } from '../../stats/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import type { ResourceRecord } from '../resource-record.ts';
import { settingsText } from '../same-settings.ts';
import { FirstAnswer } from '../subscription/first-answer.ts';
import type { Subscription, SubscriptionOwner, Subscriptions } from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';
import { allocateFilterStats } from './filter-stats.ts';

/** Brings configurations to the workers; WorkerPool does. */
export interface FiltersPublisher {
  /** @param onGone called once, when no request uses what was of its id before it. */
  publishFilter(filter: PublishedFilter, onGone: () => void): void;
  removeFilter(id: number, onGone: () => void): void;
}

export interface DiscoveredFilterDependencies extends HoldingsSource {
  readonly workers: FiltersPublisher;
  readonly subscriptions: Subscriptions;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  /** Of the bootstrap in force. */
  readonly discoverable: () => DiscoverableResources;
  readonly clusterNames: () => Iterable<string>;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
}

/** As some chains have it. */
interface View {
  readonly key: string;
  readonly id: number;
  readonly wanted: DiscoveredFilter;
  /** Of the connection manager. */
  readonly statPrefix: string;
  /** Filter chains that refer to it, and listeners that wait for it. */
  users: number;
  /** What the configuration in force was given; null before there is one. */
  holdings: Holdings | null;
  published: PublishedFilter | null;
}

export interface DumpedFilter {
  readonly name: string;
  /** Undefined before the first. */
  readonly accepted: ResourceRecord | undefined;
  /** The last one, where none has been accepted since. */
  readonly refused: ResourceRecord | undefined;
}

/** Gets ready before anything takes effect. */
interface PreparedFilter {
  readonly view: View;
  readonly holdings: Holdings;
  readonly published: PublishedFilter;
}

interface Accepted {
  readonly message: Uint8Array;
  readonly version: string;
  readonly updatedMs: number;
}

export class DiscoveredFilterConfig implements SubscriptionOwner<ReadFilters<View>> {
  readonly name: string;
  readonly #deps: DiscoveredFilterDependencies;
  readonly #nextId: () => number;
  readonly #onUnused: () => void;
  readonly #views = new Map<string, View>();
  /** Its own stats. */
  readonly #ownHoldings: Holdings;
  readonly #block;
  readonly #answer: FirstAnswer;
  readonly #subscription: Subscription;
  #isClosed = false;
  #accepted: Accepted | null = null;
  #failure: (Accepted & { readonly error: string }) | null = null;

  /** @param onUnused called when nobody wants it any more. */
  constructor(
    name: string,
    source: ConfigSourceSettings,
    deps: DiscoveredFilterDependencies,
    nextId: () => number,
    onUnused: () => void,
  ) {
    const { clock, hash, log, subscriptions } = deps;
    this.name = name;
    this.#deps = deps;
    this.#nextId = nextId;
    this.#onUnused = onUnused;
    const prefix = `extension_config_discovery.http_filter.${cleanStatName(name)}.`;
    this.#ownHoldings = new Holdings(deps);
    const stats = SubscriptionStats.under(this.#ownHoldings, prefix, clock, hash);
    this.#block = this.#ownHoldings.scope(prefix).allocate(EXTENSION_DISCOVERY_STATS);
    this.#answer = new FirstAnswer(`extension configuration ${name}`, source.initialFetchTimeoutMs, {
      clock,
      log,
      stats,
    });
    // Whoever waits for the answer hears of it behind the workers, who hear of the default.
    deps.faults.run(`the default of extension configuration ${name}`, async () => {
      await this.#answer.promise;
      this.#fallBack();
    });
    const type = () => deps.discoverable().httpFilters([...this.#views.values()], deps.clusterNames());
    this.#subscription = subscriptions.subscribe({ source, names: new Set([name]), type, stats, owner: this });
  }

  /** Once, when the first lease has been given. */
  start(): void {
    this.#subscription.start();
  }

  /** There is a configuration, or none is waited for any longer. */
  get isReady(): boolean {
    return this.#answer.isOver;
  }

  /** Resolves with that. */
  get whenReady(): Promise<void> {
    return this.#answer.promise;
  }

  /** @returns the id by which workers know it, and what gives it back, once. */
  lease(wanted: DiscoveredFilter, statPrefix: string): { readonly id: number; readonly release: () => void } {
    const key = settingsText({ wanted, statPrefix })!;
    let view = this.#views.get(key);
    if (view === undefined) {
      view = { key, id: this.#nextId(), wanted, statPrefix, users: 0, holdings: null, published: null };
      this.#views.set(key, view);
      if (this.#accepted !== null) this.#readFor(view, this.#accepted);
      if (view.published === null && (wanted.beginsWithDefault || this.isReady)) this.#publishDefault(view);
    }
    const leased = view;
    leased.users += 1;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      leased.users -= 1;
      if (leased.users === 0) this.#forget(leased);
    };
    return { id: leased.id, release };
  }

  /** What workers are to know that start now. */
  *published(): Iterable<PublishedFilter> {
    for (const { published } of this.#views.values()) if (published !== null) yield published;
  }

  /** As it is, and as it could not be. */
  dump(): DumpedFilter {
    const { name } = this;
    const of = { name, addedViaApi: true };
    const accepted = this.#accepted && { ...of, ...this.#accepted, state: 'active' as const, error: '' };
    const refused = this.#failure && { ...of, ...this.#failure, state: 'failed' as const };
    return { name, accepted: accepted ?? undefined, refused: refused ?? undefined };
  }

  onFailed(): void {
    this.#answer.came();
  }

  onResponse(response: DiscoveredResponse<ReadFilters<View>>): readonly string[] {
    if (this.#isClosed) return [];
    try {
      return this.#take(response);
    } finally {
      this.#answer.came();
    }
  }

  #take(response: DiscoveredResponse<ReadFilters<View>>): readonly string[] {
    const { log, onDeprecatedFields } = this.#deps;
    const resources = [...response.offered()].map((offered) => offered.read());
    for (const { warnings } of resources) for (const warning of warnings) log.warning(warning);
    const own = resources.filter(({ name }) => name === this.name);
    const strange = resources.flatMap((resource) => (resource.isGood || resource.name !== '' ? [] : resource.errors));
    const [resource] = own;
    if (resource === undefined) {
      const isGone = response.removed.includes(this.name) || (response.extent === 'all' && strange.length === 0);
      if (isGone) this.#remove();
      return strange;
    }
    const { message } = resource;
    const { version } = response;
    if (own.length > 1) return this.#refuse(message, version, [`it holds ${own.length} of this name`]);
    if (!resource.isGood) return this.#refuse(message, version, resource.errors);
    onDeprecatedFields(resource.deprecatedFields);
    try {
      this.#accept(resource.resource, message, version);
    } catch (error) {
      return this.#refuse(message, version, [errorMessage(error)]);
    }
    return strange;
  }

  /** The source has none, or none any more. */
  #remove(): void {
    const had = this.#accepted !== null;
    this.#accepted = null;
    this.#failure = null;
    if (!had) return;
    this.#deps.log.info(`extension configuration ${this.name} has been removed: defaults take its place`);
    for (const view of this.#views.values()) this.#publishDefault(view);
  }

  #refuse(message: Uint8Array, version: string, errors: readonly string[]): readonly string[] {
    this.#block.add('config_fail');
    this.#failure = { message, version, updatedMs: this.#deps.clock.wallMs(), error: errors.join('; ') };
    return errors.map((each) => `extension configuration ${this.name}: ${each}`);
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  #accept(read: ReadFilters<View>, message: Uint8Array, version: string): void {
    const updatedMs = this.#deps.clock.wallMs();
    const isOther = this.#accepted === null || !Buffer.from(message).equals(this.#accepted.message);
    if (isOther) {
      const prepared: PreparedFilter[] = [];
      try {
        for (const [view, configured] of read) prepared.push(this.#prepare(view, configured));
      } catch (error) {
        for (const { holdings } of prepared) holdings.close();
        throw error;
      }
      for (const each of prepared) this.#publish(each);
      this.#block.add('config_reload');
      this.#deps.log.info(`extension configuration ${this.name} has been taken over`);
    }
    this.#accepted = { message, version, updatedMs };
    this.#failure = null;
  }

  /** For a chain that comes when the configuration is there. */
  #readFor(view: View, { message }: Accepted): void {
    const { discoverable, clusterNames, log } = this.#deps;
    let { configured, errors } = discoverable().rereadFilter(message, view, clusterNames());
    try {
      if (configured !== undefined) this.#publish(this.#prepare(view, configured));
    } catch (error) {
      errors = [errorMessage(error)];
    }
    if (errors.length === 0) return;
    this.#block.add('config_conflict');
    log.warning(`extension configuration ${this.name} is none for a listener that has just come: ${errors.join('; ')}`);
  }

  /** Where nothing has come for them. */
  #fallBack(): void {
    if (this.#isClosed) return;
    for (const view of this.#views.values()) if (view.published === null) this.#publishDefault(view);
  }

  #publishDefault(view: View): void {
    try {
      this.#publish(this.#prepare(view, view.wanted.byDefault ?? null));
    } catch (error) {
      // The shared memory is full. What was before goes on.
      this.#deps.log.error(`extension configuration ${this.name}: the default is left out: ${errorMessage(error)}`);
    }
  }

  #prepare(view: View, configured: ConfiguredFilter | null): PreparedFilter {
    const holdings = new Holdings(this.#deps);
    try {
      const scope = holdings.scope(`http.${view.statPrefix}.`);
      const cells = configured === null ? {} : allocateFilterStats([configured.filter], [], scope, holdings);
      return { view, holdings, published: { id: view.id, configured, cells } };
    } catch (error) {
      holdings.close();
      throw error;
    }
  }

  #publish({ view, holdings, published }: PreparedFilter): void {
    const former = view.holdings;
    view.holdings = holdings;
    view.published = published;
    this.#deps.workers.publishFilter(published, () => former?.close());
  }

  #forget(view: View): void {
    this.#views.delete(view.key);
    const { holdings } = view;
    if (view.published !== null) this.#deps.workers.removeFilter(view.id, () => holdings?.close());
    if (this.#views.size > 0) return;
    this.close();
    this.#ownHoldings.close();
    this.#onUnused();
  }

  /** Nothing is asked for any more. */
  close(): void {
    this.#isClosed = true;
    this.#subscription.close();
    this.#answer.close();
  }
}
