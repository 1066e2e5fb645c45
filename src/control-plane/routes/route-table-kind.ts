// Route tables that come by discovery (RDS): how they are read, published and counted. Virtual hosts that come for themselves go to the
// workers as part of their table. What its source has no more stays, for there is nothing to put in its place. Main thread.

import type { RoutesView } from '../../config/index.ts';
import type { PublishedRoutes, RouteTableSnapshot } from '../../snapshot/index.ts';
import { ROUTE_DISCOVERY_STATS } from '../../stats/index.ts';
import type { ReferringDependencies } from '../discovery/feed.ts';
import type { PublishedKind } from '../discovery/published-kind.ts';
import { HostsOfTable } from './hosts-of-table.ts';
import { allocateFilterCells, allocateRouteStats } from './route-stats.ts';

/** Brings tables to the workers; WorkerPool does. */
export interface RoutesPublisher {
  /** @param onGone called once, when no request goes by the table of its id before it. */
  publishRoutes(routes: PublishedRoutes, onGone: () => void): void;
  removeRoutes(id: number, onGone: () => void): void;
}

export interface RouteTablesDependencies extends ReferringDependencies {
  readonly workers: RoutesPublisher;
}

export function routeTableKind(
  deps: RouteTablesDependencies,
): PublishedKind<RoutesView, RouteTableSnapshot, PublishedRoutes, HostsOfTable> {
  const { workers, discoverable, clusterNames } = deps;
  return {
    name: 'route configuration',
    target: 'RdsRouteConfigSubscription init',
    field: 'route_config',
    withoutIt: 'find no routes until another comes',
    read: (views) => discoverable().routes(views, clusterNames()),
    prepare: (id, _, table, holdings) => {
      const statBlocks = allocateRouteStats(table, holdings);
      return { id, table, statBlocks, filterCells: allocateFilterCells(table, holdings) };
    },
    publish: (routes, onGone) => workers.publishRoutes(routes, onGone),
    remove: (id, onGone) => workers.removeRoutes(id, onGone),
    counter: (scope, clock) => {
      const block = scope.allocate(ROUTE_DISCOVERY_STATS);
      return (event) => {
        if (event === 'absent') block.add('update_empty');
        if (event !== 'taken-over') return;
        block.add('config_reload');
        block.set('config_reload_time_ms', clock.wallMs());
      };
    },
    beside: (table, statPrefix) => new HostsOfTable(table, `${statPrefix}vhds.`, deps),
  };
}
