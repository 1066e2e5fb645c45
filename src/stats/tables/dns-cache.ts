// dns_cache.<name>.*: the hosts that clients of forward proxies name. Written by main; what has found no place among those
// that wait, by workers.

import { statTable } from '../stat-table.ts';

export const DNS_CACHE_STATS = statTable({
  dns_query_attempt: 'counter',
  dns_query_success: 'counter',
  dns_query_failure: 'counter',
  /** Those that have taken too long, among the failures. */
  dns_query_timeout: 'counter',
  host_added: 'counter',
  host_address_changed: 'counter',
  /** Hosts that were wanted while there were as many as there may be. */
  host_overflow: 'counter',
  host_removed: 'counter',
  dns_rq_pending_overflow: 'counter',
  num_hosts: 'gauge',
});
