// The virtual hosts of one route table that come for themselves (VHDS): those that the server tells by itself, and those that requests want.
// Which of them there are is told to the table, which brings them to the workers. Main thread; rests between two resources.
//
//   a request finds no virtual host ──▶ asked for by `<table>/<host>` ──▶ it comes, or there is none, or it takes too long
//                                                                          └──▶ everybody who waits is told

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import {
  type DiscoverableResources,
  type DiscoveredResponse,
  type ReadHost,
  type RoutesView,
  readStoredResource,
} from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ConfigSourceSettings, VirtualHostSnapshot } from '../../snapshot/index.ts';
import { ROUTE_DISCOVERY_STATS } from '../../stats/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { type DemandAnswer, OpenDemands } from '../open-demands.ts';
import { FirstAnswer } from '../subscription/first-answer.ts';
import type { Subscription, SubscriptionOwner, Subscriptions } from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';

const FILE = 'src/control-plane/routes/discovered-hosts.ts';

export interface DiscoveredHostsDependencies extends HoldingsSource {
  readonly subscriptions: Subscriptions;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  readonly discoverable: () => DiscoverableResources;
  readonly clusterNames: () => Iterable<string>;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
}

/** The table that they belong to. */
export interface HostedTable<View> {
  readonly name: string;
  /** In force, in its binary form. */
  message(): Uint8Array;
  views(): readonly View[];
  /** Domains of the virtual hosts that stand in it. */
  domains(): Iterable<string>;
  /** There are others now. @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  onHostsChanged(): void;
  /** The first answer has come, or is waited for no longer. */
  onHostsAnswered(): void;
}

interface KnownHost<View> {
  readonly message: Uint8Array;
  readonly byView: ReadHost<View>;
  /** By which it has been asked for, or may be, beside its name. */
  readonly aliases: readonly string[];
}

/** By the names of resources. */
export type KnownHosts<View> = ReadonlyMap<string, KnownHost<View>>;

export class DiscoveredHosts<View extends RoutesView> implements SubscriptionOwner<ReadHost<View>> {
  readonly #table: HostedTable<View>;
  readonly #source: ConfigSourceSettings;
  readonly #deps: DiscoveredHostsDependencies;
  readonly #holdings: Holdings;
  readonly #block;
  readonly #answer: FirstAnswer;
  readonly #subscription: Subscription;
  readonly #demands: OpenDemands;
  /** Names that the server has been asked for. */
  readonly #asked = new Set<string>();
  #hosts: KnownHosts<View> = new Map();
  /** How often all of them have been read anew. */
  #readings = 0;
  #isClosed = false;

  /** @param prefix of its stats, with its dot. */
  constructor(
    table: HostedTable<View>,
    source: ConfigSourceSettings,
    prefix: string,
    deps: DiscoveredHostsDependencies,
  ) {
    const { clock, hash, log, subscriptions } = deps;
    this.#table = table;
    this.#source = source;
    this.#deps = deps;
    this.#holdings = new Holdings(deps);
    const stats = SubscriptionStats.under(this.#holdings, prefix, clock, hash);
    this.#block = this.#holdings.scope(prefix).allocate(ROUTE_DISCOVERY_STATS);
    const what = `virtual hosts of route configuration ${table.name}`;
    this.#answer = new FirstAnswer(what, source.initialFetchTimeoutMs, { clock, log, stats });
    deps.faults.run('the first answer about virtual hosts', () =>
      this.#answer.promise.then(() => table.onHostsAnswered()),
    );
    this.#demands = new OpenDemands(clock, (name) => {
      log.ofFile(FILE).debug(`virtual host ${name} has not come in time`);
      this.#unask(name);
    });
    const type = () => deps.discoverable().virtualHosts(table.message(), table.views(), deps.clusterNames());
    const prefixOfNames = `${table.name}/`;
    const request = { source, names: undefined, prefix: prefixOfNames, type, stats, owner: this };
    this.#subscription = subscriptions.subscribe(request);
  }

  /** Once. */
  start(): void {
    this.#subscription.start();
  }

  get isAnswered(): boolean {
    return this.#answer.isOver;
  }

  /** As connection managers of this view read them. */
  of(view: View, hosts = this.#hosts): readonly VirtualHostSnapshot[] {
    return [...hosts.values()].flatMap(({ byView }) => byView.get(view) ?? []);
  }

  /** In their binary form. */
  messages(): readonly Uint8Array[] {
    return [...this.#hosts.values()].map(({ message }) => message);
  }

  /** A request wants it. @param host in lower case. */
  demand(host: string, answer: DemandAnswer): void {
    if (this.#isClosed || this.#covers(host)) {
      answer(!this.#isClosed);
      return;
    }
    const name = `${this.#table.name}/${host}`;
    if (!this.#demands.add(name, this.#source.initialFetchTimeoutMs, answer)) return;
    this.#asked.add(name);
    this.#subscription.ask?.(name);
  }

  onFailed(): void {
    this.#answer.came();
  }

  async onResponse(response: DiscoveredResponse<ReadHost<View>>): Promise<readonly string[]> {
    try {
      return this.#isClosed ? [] : await this.#take(response);
    } finally {
      this.#answer.came();
    }
  }

  /** All of them as they are read in another table, or for others. What may not be there is left out. */
  reread(message: Uint8Array, views: readonly View[]): KnownHosts<View> {
    const { discoverable, clusterNames, log } = this.#deps;
    const type = discoverable().virtualHosts(message, views, clusterNames());
    const hosts = new Map<string, KnownHost<View>>();
    for (const [name, host] of this.#hosts) {
      const byView = readStoredResource(type, host.message);
      if (byView !== undefined) hosts.set(name, { ...host, byView });
      else log.warning(`virtual host ${name} may not be in the route configuration that has come, and is left out`);
    }
    return hosts;
  }

  /** What `reread` has made takes effect. */
  replace(hosts: KnownHosts<View>): void {
    this.#readings += 1;
    this.#hosts = hosts;
  }

  async #take(response: DiscoveredResponse<ReadHost<View>>): Promise<readonly string[]> {
    const { log, onDeprecatedFields } = this.#deps;
    const readings = this.#readings;
    const refusals: string[] = [];
    const come = new Map<string, KnownHost<View>>();
    const refused = new Set<string>();
    const slice = new TimeSlice();
    for (const offered of response.offered()) {
      const { name, aliases = [] } = offered;
      const resource = offered.read();
      for (const warning of resource.warnings) log.warning(warning);
      if (resource.isGood) {
        onDeprecatedFields(resource.deprecatedFields);
        come.set(name, { message: resource.message, byView: resource.resource, aliases });
      } else {
        refusals.push(...resource.errors.map((error) => `virtual host ${name}: ${error}`));
        refused.add(name);
      }
      if (slice.isOverNow()) await slice.rest();
      if (this.#isClosed) return [];
    }
    refusals.push(...this.#enact(come, response.removed, readings !== this.#readings));
    for (const name of refused) this.#settle(name, false);
    return refusals;
  }

  /** @param isOutdated the table is another one than that for which they were read. */
  #enact(come: Map<string, KnownHost<View>>, removed: readonly string[], isOutdated: boolean): readonly string[] {
    const former = this.#hosts;
    const next = new Map(former);
    for (const name of removed) next.delete(name);
    const refusals: string[] = [];
    const owners = ownersOf(next, this.#table.domains());
    for (const [name, host] of come) {
      const taken = domainsOf(host).find((domain) => (owners.get(domain) ?? name) !== name);
      if (taken === undefined) {
        next.set(name, host);
        for (const domain of domainsOf(host)) owners.set(domain, name);
      } else refusals.push(`virtual host ${name}: ${taken} is a domain of another virtual host`);
    }
    const isOther = come.size > refusals.length || next.size !== former.size;
    try {
      this.#hosts = next;
      if (isOutdated) this.#hosts = this.reread(this.#table.message(), this.#table.views());
      if (isOther) this.#table.onHostsChanged();
    } catch (error) {
      this.#hosts = former;
      for (const name of [...come.keys(), ...removed]) this.#settle(name, false);
      return [...refusals, errorMessage(error)];
    }
    if (isOther) {
      this.#block.add('config_reload');
      this.#block.set('config_reload_time_ms', this.#deps.clock.wallMs());
    }
    if (this.#hosts.size === 0) this.#block.add('update_empty');
    for (const name of removed) this.#settle(name, false);
    for (const [name, { aliases }] of come)
      for (const each of [name, ...aliases]) this.#settle(each, this.#hosts.has(name));
    this.#settleCovered();
    return refusals;
  }

  /** One that is not there is not asked for any longer: the next request that wants it asks anew. */
  #settle(name: string, isThere: boolean): void {
    this.#demands.settle(name, isThere);
    if (!isThere) this.#unask(name);
  }

  /** A server may answer with a virtual host by another name that serves what was asked for. */
  #settleCovered(): void {
    const begin = this.#table.name.length + 1;
    for (const name of [...this.#demands.names]) if (this.#covers(name.slice(begin))) this.#demands.settle(name, true);
  }

  #covers(host: string): boolean {
    for (const known of this.#hosts.values())
      if (domainsOf(known).some((domain) => isWithin(host, domain))) return true;
    return false;
  }

  #unask(name: string): void {
    if (this.#asked.delete(name)) this.#subscription.unask?.(name);
  }

  /** Nothing is asked for any more, and nobody waits. */
  stop(): void {
    this.#isClosed = true;
    this.#subscription.close();
    this.#answer.close();
    this.#demands.close();
  }

  /** The table has none of them any more. Once. */
  close(): void {
    this.stop();
    this.#holdings.close();
  }
}

/** Those of all views are the same. */
function domainsOf({ byView }: KnownHost<unknown>): readonly string[] {
  for (const { domains } of byView.values()) return domains;
  return [];
}

/** By domain: the name of the resource that has it; empty for the table itself. */
function ownersOf(hosts: KnownHosts<unknown>, ofTable: Iterable<string>): Map<string, string> {
  const owners = new Map<string, string>();
  for (const domain of ofTable) owners.set(domain, '');
  for (const [name, host] of hosts) for (const domain of domainsOf(host)) owners.set(domain, name);
  return owners;
}

/** @param domain with at most one wildcard, which stands for at least one character. */
function isWithin(host: string, domain: string): boolean {
  if (domain === '*' || domain === host) return true;
  if (host.length < domain.length) return false;
  if (domain.startsWith('*')) return host.endsWith(domain.slice(1));
  return domain.endsWith('*') && host.startsWith(domain.slice(0, -1));
}
