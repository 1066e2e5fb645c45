// A network filter of an extension, as main and workers agree upon it.

import type { DiscoveredNetworkFilter } from './discovered-filter.ts';

/** As its extension has configured it. */
export interface NetworkFilterSettings {
  /** Name in the registries of both planes, `filters.network.connection_limit`. */
  readonly name: string;
  /** For the extension alone; anything that can be cloned. */
  readonly settings: unknown;
  /** What the names of its statistics begin with, with a final dot; absent for a filter without any. */
  readonly statScope?: string;
  /** Counters and gauges that it writes, by the part of their names behind that; none when absent. */
  readonly counters?: readonly string[];
  readonly gauges?: readonly string[];
  /** It counts something over all workers that they must never count beyond a bound. */
  readonly hasSharedCount?: boolean;
  /** It comes by discovery, as which filter ever: what stands here says nothing but its name in the chain. */
  readonly discovered?: DiscoveredNetworkFilter;
}

export interface NetworkFilterSnapshot {
  readonly settings: NetworkFilterSettings;
  /** Cells of its counters and gauges, by name. */
  readonly cells: Readonly<Record<string, number>>;
  /** The count record of what it counts over all workers; 0 where it does not. */
  readonly countRecord: number;
  /** Of one that comes by discovery; absent for any other. */
  readonly discoveredId?: number;
}

/** One that ends its chain. */
export interface ExtensionTerminalSettings extends NetworkFilterSettings {
  readonly kind: 'extension';
}
