// One upstream host, and what of a cluster is only reported. These have no name of their own among the stats: /clusters lists hosts.

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

/** What one cluster has turned away, for reports of load; nobody lists it. */
export const CLUSTER_LOAD_STATS = statTable({
  /** For want of room, by maintenance mode, or by the next. */
  rq_dropped: 'counter',
  /** Of those, by what a load assignment says of overload. */
  rq_drop_overload: 'counter',
});
