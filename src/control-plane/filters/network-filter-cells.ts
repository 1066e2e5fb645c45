// Cells of what a network filter counts, behind the prefix that it says itself. Main thread.

import type { NetworkFilterSettings, NetworkFilterSnapshot } from '../../snapshot/index.ts';
import type { Holdings } from '../holdings.ts';

/** @throws WeirError WEIR_SHARED_MEMORY_FULL. */
export function makeNetworkFilter(settings: NetworkFilterSettings, holdings: Holdings): NetworkFilterSnapshot {
  const { statScope, counters = [], gauges = [], hasSharedCount = false } = settings;
  const scope = statScope === undefined ? null : holdings.scope(statScope);
  const cells = {
    ...Object.fromEntries(counters.map((name) => [name, scope!.counter(name).cell])),
    ...Object.fromEntries(gauges.map((name) => [name, scope!.gauge(name).cell])),
  };
  return { settings, cells, countRecord: hasSharedCount ? holdings.countRecord() : 0 };
}
