// cluster.<name>.ring_hash_lb.* and cluster.<name>.maglev_lb.*: the tables of balancers that go by hashes. Main writes
// them when it has built one.

import { statTable } from '../stat-table.ts';

export const RING_HASH_STATS = statTable({
  size: 'gauge',
  min_hashes_per_host: 'gauge',
  max_hashes_per_host: 'gauge',
});

export const MAGLEV_STATS = statTable({ min_entries_per_host: 'gauge', max_entries_per_host: 'gauge' });
