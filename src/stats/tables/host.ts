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

/** Response times of one host, while somebody looks at them. */
export const HOST_TIME_STATS = statTable({
  rq_time: 'histogram:ms',
});

/**
 * What an outlier detector knows of one host since the start; nobody lists it. `external` counts answers, `local` whether there
 * was a connection, where the two are told apart.
 */
export const OUTLIER_HOST_STATS = statTable({
  external_total: 'counter',
  external_success: 'counter',
  local_total: 'counter',
  local_success: 'counter',
});
