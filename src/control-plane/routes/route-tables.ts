// The route tables that are resources of their own: of those that come by discovery one for each name and source, whoever wants it,
// for as long as anybody does; and those of scopes that have one themselves. Main thread.

import type {
  DiscoveredRoutes,
  PublishedRoutes,
  RouteTableSnapshot,
  ScopedRoutesSettings,
} from '../../snapshot/index.ts';
import type { DemandAnswer } from '../open-demands.ts';
import { settingsText } from '../same-settings.ts';
import { DiscoveredTable, type DiscoveredTableDependencies, type DumpedRoutes } from './discovered-table.ts';
import { OwnTable } from './own-table.ts';

/** A table that somebody wants, or a set of scopes with all of theirs. */
export interface RouteLease {
  /** By which workers know it. */
  readonly id: number;
  readonly name: string;
  /** As listings name what is waited for. */
  readonly target: string;
  /** There is a table, or none is waited for any longer. */
  readonly isReady: boolean;
  /** Resolves with that; perhaps never when it has been given back. */
  readonly whenReady: Promise<void>;
  /** Idempotent. */
  release(): void;
}

export interface RouteLeases {
  /** @param statPrefix of the connection manager, under which the table is counted unless another has asked for it before. */
  lease(routes: DiscoveredRoutes, statPrefix: string): RouteLease;
  /** The same of scopes, with the tables that they lead to. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  leaseScopes(scopes: ScopedRoutesSettings, statPrefix: string): RouteLease;
}

export class RouteTables implements Pick<RouteLeases, 'lease'> {
  readonly #deps: DiscoveredTableDependencies;
  readonly #tables = new Map<string, DiscoveredTable>();
  readonly #ownTables = new Set<OwnTable>();
  #lastId = 0;

  constructor(deps: DiscoveredTableDependencies) {
    this.#deps = deps;
  }

  lease(routes: DiscoveredRoutes, statPrefix: string): RouteLease {
    const { name, source } = routes;
    const key = settingsText([name, source])!;
    const known = this.#tables.get(key);
    const table = known ?? this.#open(key, routes, statPrefix);
    const { id, release } = table.lease(routes);
    if (known === undefined) table.start();
    return {
      id,
      name,
      target: `RdsRouteConfigSubscription init ${name}`,
      get isReady() {
        return table.isReady;
      },
      whenReady: table.whenReady,
      release,
    };
  }

  /** Brings a table to the workers that nobody has to ask for. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  own(table: RouteTableSnapshot): RouteLease {
    const own = new OwnTable(++this.#lastId, table, this.#deps);
    this.#ownTables.add(own);
    const release = (): void => {
      if (this.#ownTables.delete(own)) own.close();
    };
    const { name } = table;
    return { id: own.published.id, name, target: name, isReady: true, whenReady: Promise.resolve(), release };
  }

  /** A request wants a virtual host that its table has not. @param id of the table. @param host in lower case. */
  demandHost(id: number, host: string, answer: DemandAnswer): void {
    const table = [...this.#tables.values()].find((each) => each.hasView(id));
    // It may have gone meanwhile.
    if (table === undefined) answer(false);
    else table.demandHost(host, answer);
  }

  #open(key: string, routes: DiscoveredRoutes, statPrefix: string): DiscoveredTable {
    const nextId = (): number => ++this.#lastId;
    const table = new DiscoveredTable(routes, statPrefix, this.#deps, nextId, () => this.#tables.delete(key));
    this.#tables.set(key, table);
    return table;
  }

  /** What workers are to know that start now. */
  *published(): Iterable<PublishedRoutes> {
    for (const table of this.#tables.values()) yield* table.published();
    for (const { published } of this.#ownTables) yield published;
  }

  /** All that there are, and those that could not be had. */
  dump(): DumpedRoutes[] {
    const dumped = [...this.#tables.values()].map((table) => table.dump());
    return dumped.filter(({ accepted, refused }) => accepted !== undefined || refused !== undefined);
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.dump().flatMap(({ refused }) => refused ?? []);
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const table of this.#tables.values()) table.close();
  }
}
