// tap.*: what is recorded for POST /tap, and into files; written by main.

import { statTable } from '../stat-table.ts';

export const TAP_STATS = statTable({
  active: 'gauge',
  /** Those that reached the reader, or a file. */
  traces_total: 'counter',
  /** Those that a reader who is too slow has missed, or that could not be written. */
  traces_dropped: 'counter',
});
