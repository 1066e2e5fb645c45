// tap.*: what is recorded for POST /tap; written by main.

import { statTable } from '../stat-table.ts';

export const TAP_STATS = statTable({
  active: 'gauge',
  /** Those that reached the reader. */
  traces_total: 'counter',
  /** Those that a reader who is too slow has missed. */
  traces_dropped: 'counter',
});
