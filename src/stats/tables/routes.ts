// vhost.<virtual host>.vcluster.<name>.* and vhost.<virtual host>.route.<stat_prefix>.*: requests that are forwarded, by
// what they are rather than by where they go. Response codes come as they are met.

import { statTable } from '../stat-table.ts';
import { cleanStatName } from '../tags/name-tokens.ts';

export const ROUTE_STATS = statTable({
  upstream_rq_completed: 'counter',
  upstream_rq_retry: 'counter',
  upstream_rq_retry_limit_exceeded: 'counter',
  upstream_rq_retry_overflow: 'counter',
  upstream_rq_retry_success: 'counter',
  upstream_rq_timeout: 'counter',
  upstream_rq_total: 'counter',
  upstream_rq_time: 'histogram:ms',
});

/** Of the requests that none of a virtual host's virtual clusters takes. */
export const OTHER_VIRTUAL_CLUSTER = 'other';

/** With its final dot. */
export function virtualClusterScope(virtualHost: string, name: string): string {
  return `vhost.${cleanStatName(virtualHost)}.vcluster.${cleanStatName(name)}.`;
}

/** With its final dot. */
export function routeScope(virtualHost: string, statPrefix: string): string {
  return `vhost.${cleanStatName(virtualHost)}.route.${cleanStatName(statPrefix)}.`;
}
