// dns_cache.<name>.circuit_breakers.*: worked out when read. The count is a total over all workers, so no worker alone could
// say that the limit is reached.

import { derivedTable } from './derived-table.ts';

/** What waits for lookups, over all workers. */
export interface LookupUse {
  readonly waiting: () => number;
  readonly max: number;
}

export const DNS_CACHE_GAUGES = derivedTable<LookupUse>({
  'circuit_breakers.rq_pending_open': ({ waiting, max }) => (waiting() >= max ? 1 : 0),
  'circuit_breakers.rq_pending_remaining': ({ waiting, max }) => Math.max(0, max - waiting()),
});
