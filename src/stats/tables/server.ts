// server.*: the process as a whole; written by main.

import { statTable } from '../stat-table.ts';

export const SERVER_STATS = statTable({
  uptime: 'gauge',
  concurrency: 'gauge',
  memory_allocated: 'gauge',
  memory_heap_size: 'gauge',
  memory_physical_size: 'gauge',
  live: 'gauge',
  state: 'gauge',
  parent_connections: 'gauge',
  total_connections: 'gauge',
  version: 'gauge',
  days_until_first_cert_expiring: 'gauge',
  seconds_until_first_ocsp_response_expiring: 'gauge',
  hot_restart_epoch: 'gauge',
  hot_restart_generation: 'gauge',
  stats_recent_lookups: 'gauge',
  initialization_time_ms: 'histogram:ms',
  debug_assertion_failures: 'counter',
  envoy_bug_failures: 'counter',
  static_unknown_fields: 'counter',
  dynamic_unknown_fields: 'counter',
  wip_protos: 'counter',
  dropped_stat_flushes: 'counter',
  'compilation_settings.fips_mode': 'gauge',
  /** Our own: workers that crashed and were started again. */
  worker_restarts: 'counter',
  /** Our own: lines of the log, of the admin interface's access log and of health check events that were not written. */
  dropped_log_lines: 'counter',
  /** Our own: failures that a boundary has caught and logged, so that they cost one connection or one callback. */
  contained_faults: 'counter',
});

/** server.version_text, our own: the version as a text readout. */
export const SERVER_VERSION_TEXT = 'version_text';
