// What a route does about upstreams that fail or are slow: retries, hedges, how much of a body is kept for them; and who gets copies. A
// route's own settings take the place of its virtual host's, each as a whole.

import type { ForwardAction } from '../../snapshot/index.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { Conversion } from './conversion.ts';
import type { HedgePolicy, Route, VirtualHost } from './messages.ts';
import { convertMirrorPolicies, mirrorPoliciesOf } from './mirror-policy.ts';
import { convertRetryPolicy } from './retry-policy.ts';

export type RouteResilience = Pick<
  ForwardAction,
  'retry' | 'hedgesOnPerTryTimeout' | 'tellsTimeoutRetry' | 'replayLimitBytes' | 'isReplayLimitCapped' | 'mirrors'
>;

/** The two spellings of one limit. */
type BodyLimits = Pick<Route, 'per_request_buffer_limit_bytes' | 'request_body_buffer_limit'>;

/** What holds for the virtual hosts of a table that say nothing else. */
export interface TableMirrors {
  readonly validateClusters: boolean;
  readonly mirrors: ForwardAction['mirrors'];
}

/** What holds for the routes of a virtual host that say nothing else. */
export function virtualHostResilience(
  message: VirtualHost,
  at: string,
  table: TableMirrors,
  conversion: Conversion,
): RouteResilience {
  const { faults } = conversion;
  const limit = bodyLimit(message);
  const mirrors = convertMirrorPolicies(
    message.request_mirror_policies,
    `${at}.request_mirror_policies`,
    table.validateClusters,
    conversion,
  );
  return {
    retry: convertRetryPolicy(message.retry_policy, `${at}.retry_policy`, faults),
    hedgesOnPerTryTimeout: hedges(message.hedge_policy),
    tellsTimeoutRetry: message.include_is_timeout_retry_header,
    replayLimitBytes: limit,
    isReplayLimitCapped: limit !== null,
    mirrors: mirrors.length > 0 ? mirrors : table.mirrors,
  };
}

export function routeResilience(
  route: Route,
  at: string,
  ofHost: RouteResilience,
  validateClusters: boolean,
  conversion: Conversion,
): RouteResilience {
  const { faults } = conversion;
  const action = route.route;
  const mirrors = action === null ? [] : mirrorPoliciesOf(action, `${at}.route`, validateClusters, conversion);
  const limit = bodyLimit(route);
  return {
    ...ofHost,
    ...(mirrors.length === 0 ? {} : { mirrors }),
    ...(limit === null ? {} : { replayLimitBytes: limit, isReplayLimitCapped: false }),
    ...(action?.hedge_policy ? { hedgesOnPerTryTimeout: hedges(action.hedge_policy) } : {}),
    ...(action?.retry_policy
      ? { retry: convertRetryPolicy(action.retry_policy, `${at}.route.retry_policy`, faults) }
      : {}),
  };
}

function hedges(message: HedgePolicy | null): boolean {
  return message?.hedge_on_per_try_timeout ?? false;
}

function bodyLimit(message: BodyLimits): number | null {
  const newer = message.request_body_buffer_limit;
  return newer === null ? (message.per_request_buffer_limit_bytes?.value ?? null) : int64ToNumber(newer.value);
}
