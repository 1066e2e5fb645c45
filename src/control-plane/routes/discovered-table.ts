// One route table that comes by discovery: asks for it, and brings it to the workers, once for each way in which connection managers
// read it, since that depends on whom its routes may speak to; virtual hosts that come for themselves (discovered-hosts.ts) with it. What may not be leaves the one before it; what its source has no more
// stays as well, for there is nothing to put in its place. Main thread.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import {
  type DiscoverableResources,
  type DiscoveredResponse,
  headOf,
  protoSchema,
  type ReadRoutes,
} from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type {
  ConfigSourceSettings,
  DiscoveredRoutes,
  PublishedRoutes,
  RouteTableSnapshot,
  VirtualHostSnapshot,
} from '../../snapshot/index.ts';
import { cleanStatName, ROUTE_DISCOVERY_STATS } from '../../stats/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import type { DemandAnswer } from '../open-demands.ts';
import type { ResourceRecord } from '../resource-record.ts';
import { settingsText } from '../same-settings.ts';
import { FirstAnswer } from '../subscription/first-answer.ts';
import type { Subscription, SubscriptionOwner, Subscriptions } from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';
import { DiscoveredHosts, type HostedTable, type KnownHosts } from './discovered-hosts.ts';
import { allocateFilterCells, allocateRouteStats } from './route-stats.ts';

/** Brings tables to the workers; WorkerPool does. */
export interface RoutesPublisher {
  /** @param onGone called once, when no request goes by the table of its id before it. */
  publishRoutes(routes: PublishedRoutes, onGone: () => void): void;
  removeRoutes(id: number, onGone: () => void): void;
}

export interface DiscoveredTableDependencies extends HoldingsSource {
  readonly workers: RoutesPublisher;
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

/** As some connection managers read it. */
interface View {
  readonly key: string;
  readonly id: number;
  readonly filters: DiscoveredRoutes['filters'];
  readonly isOutbound: boolean;
  /** Filter chains that refer to it, and listeners that wait for it. */
  users: number;
  /** The table in force, without virtual hosts that come for themselves; null before there is one. */
  base: RouteTableSnapshot | null;
  /** What the table in force was given; null before there is one. */
  holdings: Holdings | null;
  published: PublishedRoutes | null;
}

export interface DumpedRoutes {
  readonly name: string;
  /** Undefined before the first. */
  readonly accepted: ResourceRecord | undefined;
  /** The last one, where none has been accepted since. */
  readonly refused: ResourceRecord | undefined;
}

/** Gets ready before anything takes effect. */
interface PreparedTable {
  readonly view: View;
  readonly base: RouteTableSnapshot;
  readonly holdings: Holdings;
  readonly published: PublishedRoutes;
}

interface Accepted {
  readonly message: Uint8Array;
  readonly version: string;
  readonly updatedMs: number;
}

export class DiscoveredTable implements SubscriptionOwner<ReadRoutes<View>>, HostedTable<View> {
  readonly name: string;
  /** Of its stats, with its dot. */
  readonly #prefix: string;
  readonly #deps: DiscoveredTableDependencies;
  readonly #nextId: () => number;
  readonly #onUnused: () => void;
  readonly #views = new Map<string, View>();
  /** Its own stats. */
  readonly #ownHoldings: Holdings;
  readonly #block;
  readonly #answer: FirstAnswer;
  readonly #subscription: Subscription;
  readonly #ready = Promise.withResolvers<void>();
  #isClosed = false;
  /** Null where all virtual hosts stand in the table. */
  #hosts: DiscoveredHosts<View> | null = null;
  /** Where they come from, as text; empty for nowhere. */
  #hostSource = '';
  #accepted: Accepted | null = null;
  #failure: (Accepted & { readonly error: string }) | null = null;

  /** @param statPrefix of the connection manager that wants it first. @param onUnused called when nobody wants it any more. */
  constructor(
    { name, source }: DiscoveredRoutes,
    statPrefix: string,
    deps: DiscoveredTableDependencies,
    nextId: () => number,
    onUnused: () => void,
  ) {
    const { clock, hash, log, subscriptions } = deps;
    this.name = name;
    this.#deps = deps;
    this.#nextId = nextId;
    this.#onUnused = onUnused;
    const prefix = `http.${statPrefix}.rds.${cleanStatName(name)}.`;
    this.#prefix = prefix;
    this.#ownHoldings = new Holdings(deps);
    const stats = SubscriptionStats.under(this.#ownHoldings, prefix, clock, hash);
    this.#block = this.#ownHoldings.scope(prefix).allocate(ROUTE_DISCOVERY_STATS);
    this.#answer = new FirstAnswer(`route configuration ${name}`, source.initialFetchTimeoutMs, {
      clock,
      log,
      stats,
    });
    deps.faults.run('the first answer about routes', () => this.#answer.promise.then(() => this.#checkReady()));
    const type = () => deps.discoverable().routes([...this.#views.values()], deps.clusterNames());
    const request = { source, names: new Set([name]), type, stats, owner: this };
    this.#subscription = subscriptions.subscribe(request);
  }

  /** Once, when the first lease has been given. */
  start(): void {
    this.#subscription.start();
  }

  /** There is a table, with the virtual hosts that its source tells by itself; or none is waited for any longer. */
  get isReady(): boolean {
    return this.#answer.isOver && this.#hosts?.isAnswered !== false;
  }

  /** Resolves with that. */
  get whenReady(): Promise<void> {
    return this.#ready.promise;
  }

  #checkReady(): void {
    if (this.isReady) this.#ready.resolve();
  }

  /** Workers know it by this id. */
  hasView(id: number): boolean {
    for (const view of this.#views.values()) if (view.id === id) return true;
    return false;
  }

  /** A request wants a virtual host that the table has not. @param host in lower case. */
  demandHost(host: string, answer: DemandAnswer): void {
    if (this.#hosts === null) answer(false);
    else this.#hosts.demand(host, answer);
  }

  message(): Uint8Array {
    return this.#accepted!.message;
  }

  views(): readonly View[] {
    return [...this.#views.values()];
  }

  *domains(): Iterable<string> {
    const [view] = this.#views.values();
    for (const { domains } of view?.base?.virtualHosts ?? []) yield* domains;
  }

  onHostsChanged(): void {
    const bases = [...this.#views.values()].flatMap((view) => (view.base === null ? [] : [[view, view.base] as const]));
    this.#publishAll(this.#prepareAll(bases, this.#hosts!));
  }

  onHostsAnswered(): void {
    this.#checkReady();
  }

  /** @returns the id by which workers know it, and what gives it back, once. */
  lease({ filters, isOutbound }: DiscoveredRoutes): { readonly id: number; readonly release: () => void } {
    const key = settingsText({ filters, isOutbound })!;
    let view = this.#views.get(key);
    if (view === undefined) {
      view = { key, id: this.#nextId(), filters, isOutbound, users: 0, base: null, holdings: null, published: null };
      this.#views.set(key, view);
      if (this.#accepted !== null) this.#readFor(view, this.#accepted);
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
  *published(): Iterable<PublishedRoutes> {
    for (const { published } of this.#views.values()) if (published !== null) yield published;
  }

  /** As it is, and as it could not be. */
  dump(): DumpedRoutes {
    const { name } = this;
    const accepted = this.#accepted && {
      name,
      addedViaApi: true,
      ...this.#accepted,
      message: withHosts(this.#accepted.message, this.#hosts?.messages() ?? []),
      state: 'active' as const,
      error: '',
    };
    const refused = this.#failure && { name, addedViaApi: true, ...this.#failure, state: 'failed' as const };
    return { name, accepted: accepted ?? undefined, refused: refused ?? undefined };
  }

  onFailed(): void {
    this.#answer.came();
  }

  onResponse(response: DiscoveredResponse<ReadRoutes<View>>): readonly string[] {
    if (this.#isClosed) return [];
    try {
      return this.#take(response);
    } finally {
      this.#answer.came();
    }
  }

  #take(response: DiscoveredResponse<ReadRoutes<View>>): readonly string[] {
    const { log, onDeprecatedFields } = this.#deps;
    const resources = [...response.offered()].map((offered) => offered.read());
    for (const { warnings } of resources) for (const warning of warnings) log.warning(warning);
    const own = resources.filter(({ name }) => name === this.name);
    const strange = resources.flatMap((resource) => (resource.isGood || resource.name !== '' ? [] : resource.errors));
    const [resource] = own;
    if (resource === undefined) {
      const isGone = response.removed.includes(this.name) || (response.extent === 'all' && strange.length === 0);
      if (isGone) this.#noteAbsence();
      return strange;
    }
    const { message } = resource;
    const { version } = response;
    if (own.length > 1)
      return this.#refuse(message, version, [`it holds ${own.length} route configurations of this name`]);
    if (!resource.isGood) return this.#refuse(message, version, resource.errors);
    onDeprecatedFields(resource.deprecatedFields);
    try {
      this.#accept(resource.resource, message, version);
    } catch (error) {
      return this.#refuse(message, version, [errorMessage(error)]);
    }
    return strange;
  }

  #noteAbsence(): void {
    this.#block.add('update_empty');
    const what = this.#accepted === null ? 'there is none' : 'the one before it stays';
    this.#deps.log.info(`route configuration ${this.name} is not among what its source has: ${what}`);
  }

  #refuse(message: Uint8Array, version: string, errors: readonly string[]): readonly string[] {
    const error = errors.join('; ');
    this.#failure = { message, version, updatedMs: this.#deps.clock.wallMs(), error };
    return errors.map((each) => `route configuration ${this.name}: ${each}`);
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  #accept(tables: ReadRoutes<View>, message: Uint8Array, version: string): void {
    const updatedMs = this.#deps.clock.wallMs();
    const isOther = this.#accepted === null || !Buffer.from(message).equals(this.#accepted.message);
    if (isOther) {
      const [settings] = tables.values();
      const source = settings?.hostDiscovery;
      const text = source === undefined ? '' : settingsText(source)!;
      const kept = text === this.#hostSource ? this.#hosts : null;
      const hosts = kept?.reread(message, this.views());
      this.#publishAll(this.#prepareAll(tables, kept, hosts));
      if (hosts !== undefined) kept!.replace(hosts);
      else this.#followHosts(source, text, message);
      this.#block.add('config_reload');
      this.#block.set('config_reload_time_ms', updatedMs);
      this.#deps.log.info(`route configuration ${this.name} has been taken over`);
    }
    this.#accepted = { message, version, updatedMs };
    this.#failure = null;
  }

  /** Virtual hosts come from elsewhere from now on, or from nowhere. */
  #followHosts(source: ConfigSourceSettings | undefined, text: string, message: Uint8Array): void {
    this.#hosts?.close();
    this.#hosts = null;
    this.#hostSource = text;
    if (source === undefined) return;
    // They are read as part of this table.
    this.#accepted = { message, version: '', updatedMs: 0 };
    this.#hosts = new DiscoveredHosts<View>(this, source, `${this.#prefix}vhds.`, this.#deps);
    this.#hosts.start();
  }

  /** @param hosts those that come for themselves; as they will be, where they are others than now. @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has happened then. */
  #prepareAll(
    bases: Iterable<readonly [View, RouteTableSnapshot]>,
    discovered: DiscoveredHosts<View> | null,
    hosts?: KnownHosts<View>,
  ): readonly PreparedTable[] {
    const prepared: PreparedTable[] = [];
    try {
      for (const [view, base] of bases) prepared.push(this.#prepare(view, base, discovered?.of(view, hosts) ?? []));
    } catch (error) {
      for (const { holdings } of prepared) holdings.close();
      throw error;
    }
    return prepared;
  }

  #publishAll(prepared: readonly PreparedTable[]): void {
    for (const each of prepared) this.#publish(each);
  }

  /** For a connection manager that comes when the table is there. */
  #readFor(view: View, { message, version }: Accepted): void {
    const { discoverable, clusterNames, log } = this.#deps;
    let { table, errors } = discoverable().rereadRoutes(message, view, clusterNames());
    try {
      const known = this.#hosts?.reread(message, this.views());
      if (known !== undefined) this.#hosts!.replace(known);
      if (table !== undefined) this.#publish(this.#prepare(view, table, this.#hosts?.of(view) ?? []));
    } catch (error) {
      errors = [errorMessage(error)];
    }
    if (errors.length === 0) return;
    for (const refusal of this.#refuse(message, version, errors)) {
      log.warning(`${refusal}; requests of a listener that has just come find no routes until another comes`);
    }
  }

  /** @param hosts beside those of the table. */
  #prepare(view: View, base: RouteTableSnapshot, hosts: readonly VirtualHostSnapshot[]): PreparedTable {
    const holdings = new Holdings(this.#deps);
    const table = hosts.length === 0 ? base : { ...base, virtualHosts: [...base.virtualHosts, ...hosts] };
    try {
      const statBlocks = allocateRouteStats(table, holdings);
      const filterCells = allocateFilterCells(table, holdings);
      return { view, base, holdings, published: { id: view.id, table, statBlocks, filterCells } };
    } catch (error) {
      holdings.close();
      throw error;
    }
  }

  #publish({ view, base, holdings, published }: PreparedTable): void {
    const former = view.holdings;
    view.base = base;
    view.holdings = holdings;
    view.published = published;
    this.#deps.workers.publishRoutes(published, () => former?.close());
  }

  #forget(view: View): void {
    this.#views.delete(view.key);
    const { holdings } = view;
    if (view.published !== null) this.#deps.workers.removeRoutes(view.id, () => holdings?.close());
    if (this.#views.size > 0) return;
    this.close();
    this.#hosts?.close();
    this.#ownHoldings.close();
    this.#onUnused();
  }

  /** Nothing is asked for any more. */
  close(): void {
    this.#isClosed = true;
    this.#subscription.close();
    this.#answer.close();
    this.#hosts?.stop();
  }
}

/** The whole table, as if they stood in it. */
function withHosts(table: Uint8Array, hosts: readonly Uint8Array[]): Uint8Array {
  if (hosts.length === 0) return table;
  const type = protoSchema().messageType('proxy.config.route.v3.RouteConfiguration');
  // Messages in their binary form add up; lists grow by that.
  return Buffer.concat([table, ...hosts.flatMap((host) => [headOf(type, 'virtual_hosts', host.length), host])]);
}
