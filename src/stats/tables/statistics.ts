// stats.*: the statistics themselves; written by main.

import { statTable } from '../stat-table.ts';

/** A worker that has waited for memory adds `histogram_memory_waits` at run time. */
export const STATISTICS_STATS = statTable({
  /** Stats and samples that found no room. */
  overflow: 'counter',
});
