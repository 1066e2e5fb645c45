// The virtual hosts of one route table that come for themselves (VHDS): those that the server tells by itself, and those that requests want.
// Which of them there are is told to the table, which brings them to the workers. Main thread; rests between two resources.
//
//   a request finds no virtual host ──▶ asked for by `<table>/<host>` ──▶ it comes, or there is none, or it takes too long
//                                                                          └──▶ everybody who waits is told

import { errorMessage } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { type DiscoveredResponse, type ReadHost, type RoutesView, readStoredResource } from '../../config/index.ts';
import type { ConfigSourceSettings, RouteTableSnapshot, VirtualHostSnapshot } from '../../snapshot/index.ts';
import { ROUTE_DISCOVERY_STATS } from '../../stats/index.ts';
import { Feed, type ReferringDependencies } from '../discovery/feed.ts';
import type { MainResource } from '../discovery/published-kind.ts';
import { type DemandAnswer, OpenDemands } from '../open-demands.ts';
import { logWarnings } from '../subscription/resource-warnings.ts';

const FILE = 'src/control-plane/routes/discovered-hosts.ts';

interface KnownHost<View> {
  readonly message: Uint8Array;
  readonly byView: ReadHost<View>;
  /** By which it has been asked for, or may be, beside its name. */
  readonly aliases: readonly string[];
}

/** By the names of resources. */
export type KnownHosts<View> = ReadonlyMap<string, KnownHost<View>>;

export class DiscoveredHosts<View extends RoutesView> {
  readonly #table: MainResource<View, RouteTableSnapshot>;
  readonly #source: ConfigSourceSettings;
  readonly #deps: ReferringDependencies;
  readonly #feed: Feed<ReadHost<View>>;
  readonly #block;
  readonly #demands: OpenDemands;
  /** Names that the server has been asked for. */
  readonly #asked = new Set<string>();
  #hosts: KnownHosts<View> = new Map();
  /** How often all of them have been read anew. */
  #readings = 0;

  /** @param table that they belong to. @param statPrefix of its stats, with its dot. */
  constructor(
    table: MainResource<View, RouteTableSnapshot>,
    source: ConfigSourceSettings,
    statPrefix: string,
    deps: ReferringDependencies,
  ) {
    const { clock, log, discoverable, clusterNames } = deps;
    this.#table = table;
    this.#source = source;
    this.#deps = deps;
    this.#feed = new Feed(
      {
        what: `virtual hosts of route configuration ${table.name}`,
        source,
        names: undefined,
        prefix: `${table.name}/`,
        statPrefix,
        type: () => discoverable().virtualHosts(table.message, table.views(), clusterNames()),
        take: (response) => this.#take(response),
        onAnswered: () => table.checkReady(),
      },
      deps,
    );
    this.#block = this.#feed.holdings.scope(statPrefix).allocate(ROUTE_DISCOVERY_STATS);
    this.#demands = new OpenDemands(clock, (name) => {
      log.ofFile(FILE).debug(`virtual host ${name} has not come in time`);
      this.#unask(name);
    });
  }

  /** Once. */
  start(): void {
    this.#feed.start();
  }

  /** Those that the server tells by itself have come, or are waited for no longer. */
  get isReady(): boolean {
    return this.#feed.isReady;
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
    if (this.#feed.isStopped || this.#covers(host)) {
      answer(!this.#feed.isStopped);
      return;
    }
    const name = `${this.#table.name}/${host}`;
    if (!this.#demands.add(name, this.#source.initialFetchTimeoutMs, answer)) return;
    this.#asked.add(name);
    this.#feed.ask(name);
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
      logWarnings(`virtual host ${name}`, resource, log);
      if (resource.isGood) {
        onDeprecatedFields(resource.deprecatedFields);
        come.set(name, { message: resource.message, byView: resource.resource, aliases });
      } else {
        refusals.push(...resource.errors.map((error) => `virtual host ${name}: ${error}`));
        for (const each of [name, ...aliases]) refused.add(each);
      }
      if (slice.isOverNow()) await slice.rest();
      if (this.#feed.isStopped) return [];
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
    const owners = ownersOf(next, domainsOfTable(this.#table));
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
      if (isOutdated) this.#hosts = this.reread(this.#table.message, this.#table.views());
      if (isOther) this.#table.publishAgain();
    } catch (error) {
      this.#hosts = former;
      for (const [name, { aliases }] of come) for (const each of [name, ...aliases]) this.#settle(each, false);
      for (const name of removed) this.#settle(name, false);
      return [...refusals, errorMessage(error)];
    }
    if (isOther) {
      this.#block.add('config_reload');
      this.#block.set('config_reload_time_ms', this.#deps.clock.wallMs());
    }
    if (this.#hosts.size === 0) this.#block.add('update_empty');
    for (const [name, { aliases }] of come)
      for (const each of [name, ...aliases]) this.#settle(each, this.#hosts.has(name));
    this.#settleCovered();
    // Others may have come in their places.
    for (const name of removed)
      for (const each of [name, ...(former.get(name)?.aliases ?? [])]) this.#settle(each, false);
    return refusals;
  }

  /**
   * One that is not there is not asked for any longer: the next request that wants it asks anew. One whose successor may not be stays,
   * and is told of.
   */
  #settle(name: string, isThere: boolean): void {
    this.#demands.settle(name, isThere);
    if (!isThere && this.#asked.has(name) && !this.#has(name)) this.#unask(name);
  }

  /** By its name, or by another of its names. */
  #has(name: string): boolean {
    if (this.#hosts.has(name)) return true;
    for (const { aliases } of this.#hosts.values()) if (aliases.includes(name)) return true;
    return false;
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
    if (this.#asked.delete(name)) this.#feed.unask(name);
  }

  /** Nothing is asked for any more, and nobody waits. */
  stop(): void {
    this.#feed.stop();
    this.#demands.close();
  }

  /** The table has none of them any more. Once. */
  close(): void {
    this.stop();
    this.#feed.close();
  }
}

/** Of the virtual hosts that stand in it; all views have the same. */
function domainsOfTable(table: MainResource<unknown, RouteTableSnapshot>): readonly string[] {
  const [content] = table.contents().values();
  return content?.virtualHosts.flatMap(({ domains }) => domains) ?? [];
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
