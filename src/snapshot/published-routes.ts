// Route tables that are resources of their own: connection managers refer to them by id, and another table for the same id takes
// the place of the one before it under listeners that stay as they are.

import type { ConfigSourceSettings } from './config-source.ts';
import type { RouteTableSnapshot } from './route-table.ts';

export interface PublishedRoutes {
  readonly id: number;
  readonly table: RouteTableSnapshot;
  /** First cells of ROUTE_STATS of virtual clusters and routes, by their scopes. */
  readonly statBlocks: Readonly<Record<string, number>>;
  /** Cells of what its routes have filters count, by whole names. */
  readonly filterCells: Readonly<Record<string, number>>;
}

/** A filter that routes may speak to. */
export interface NamedFilter {
  /** As its chain has it. */
  readonly name: string;
  /** Of its configuration; undefined for one that this build lacks. */
  readonly type: string | undefined;
}

/** What a connection manager says of a table that comes by discovery. */
export interface DiscoveredRoutes {
  readonly name: string;
  readonly source: ConfigSourceSettings;
  /** Those of all chains of the connection manager. */
  readonly filters: readonly NamedFilter[];
  /** Its listener takes what goes out from here. */
  readonly isOutbound: boolean;
}
