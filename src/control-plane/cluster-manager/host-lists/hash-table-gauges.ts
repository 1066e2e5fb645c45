// The gauges of a cluster whose requests go by their hashes: how large its table is, and how evenly it is shared out.
// Main thread.

import type { ClusterSettings } from '../../../snapshot/index.ts';
import { MAGLEV_STATS, RING_HASH_STATS, type StatsStore } from '../../../stats/index.ts';
import type { HashRing, HashTable } from '../../../wasm/lb.ts';

/** Shows a table that has just been built. */
export type ShowHashTable = (table: HashTable) => void;

/** @returns undefined for policies without tables, which have no such gauges. */
export function hashTableGauges(
  stats: Pick<StatsStore, 'scope'>,
  { statName, lbPolicy }: Pick<ClusterSettings, 'statName' | 'lbPolicy'>,
): ShowHashTable | undefined {
  if (lbPolicy === 'RING_HASH') {
    const gauges = stats.scope(`cluster.${statName}.ring_hash_lb.`).allocate(RING_HASH_STATS);
    return (table) => {
      // No other table is built for this policy.
      gauges.set('size', (table as HashRing).nominalSize);
      gauges.set('min_hashes_per_host', table.minEntriesPerHost);
      gauges.set('max_hashes_per_host', table.maxEntriesPerHost);
    };
  }
  if (lbPolicy !== 'MAGLEV') return undefined;
  const gauges = stats.scope(`cluster.${statName}.maglev_lb.`).allocate(MAGLEV_STATS);
  return (table) => {
    gauges.set('min_entries_per_host', table.minEntriesPerHost);
    gauges.set('max_entries_per_host', table.maxEntriesPerHost);
  };
}
