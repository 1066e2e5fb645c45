// One upstream host. These have no name of their own among the stats: /clusters lists them per host.

import { statTable } from '../stat-table.ts';

export const HOST_STATS = statTable({
  cx_connect_fail: 'counter',
  cx_total: 'counter',
  rq_error: 'counter',
  rq_success: 'counter',
  rq_timeout: 'counter',
  rq_total: 'counter',
  cx_active: 'gauge',
  rq_active: 'gauge',
});
