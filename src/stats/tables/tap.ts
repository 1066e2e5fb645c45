// tap.*: what is recorded for POST /tap; written by main.

import { statTable } from '../stat-table.ts';

export const TAP_STATS = statTable({
  active: 'gauge',
  traces_total: 'counter',
  traces_dropped: 'counter',
});
