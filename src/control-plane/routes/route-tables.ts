// The route tables that are resources of their own: of those that come by discovery one for each name and source, whoever wants it,
// for as long as anybody does; and those of scopes that have one themselves. Main thread.

import type { RoutesView } from '../../config/index.ts';
import type {
  DiscoveredRoutes,
  PublishedRoutes,
  RouteTableSnapshot,
  ScopedRoutesSettings,
} from '../../snapshot/index.ts';
import { cleanStatName } from '../../stats/index.ts';
import { PublishedResources } from '../discovery/published-resources.ts';
import { leaseOf, NOT_AWAITED, type PublishedLease } from '../discovery/resource-lease.ts';
import type { DemandAnswer } from '../open-demands.ts';
import type { HostsOfTable } from './hosts-of-table.ts';
import { OwnTable } from './own-table.ts';
import { type RouteTablesDependencies, routeTableKind } from './route-table-kind.ts';

export interface RouteLeases {
  /** @param statPrefix of the connection manager, under which the table is counted unless another has asked for it before. */
  lease(routes: DiscoveredRoutes, statPrefix: string): PublishedLease;
  /** The same of scopes, with the tables that they lead to. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  leaseScopes(scopes: ScopedRoutesSettings, statPrefix: string): PublishedLease;
}

export class RouteTables
  extends PublishedResources<RoutesView, RouteTableSnapshot, PublishedRoutes, HostsOfTable>
  implements Pick<RouteLeases, 'lease'>
{
  readonly #deps: RouteTablesDependencies;
  readonly #nextId: () => number;
  readonly #ownTables = new Set<OwnTable>();

  constructor(deps: RouteTablesDependencies) {
    let lastId = 0;
    const nextId = (): number => ++lastId;
    super(routeTableKind(deps), deps, nextId);
    this.#deps = deps;
    this.#nextId = nextId;
  }

  lease({ name, source, filters, isOutbound }: DiscoveredRoutes, managerPrefix: string): PublishedLease {
    const statPrefix = `http.${managerPrefix}.rds.${cleanStatName(name)}.`;
    return this.leaseOne({ name, source, statPrefix }, { filters, isOutbound });
  }

  /** Brings a table to the workers that nobody has to ask for. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  own(table: RouteTableSnapshot): PublishedLease {
    const own = new OwnTable(this.#nextId(), table, this.#deps);
    this.#ownTables.add(own);
    const release = (): void => {
      if (this.#ownTables.delete(own)) own.close();
    };
    const { name } = table;
    return leaseOf({ id: own.published.id, name, target: name }, NOT_AWAITED, release);
  }

  /** A request wants a virtual host that its table has not. @param id of the table. @param host in lower case. */
  demandHost(id: number, host: string, answer: DemandAnswer): void {
    const hosts = this.besideOf(id);
    // It may have gone meanwhile.
    if (hosts === undefined) answer(false);
    else hosts.demand(host, answer);
  }

  override *published(): Iterable<PublishedRoutes> {
    yield* super.published();
    for (const { published } of this.#ownTables) yield published;
  }
}
