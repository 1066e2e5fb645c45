// What a route does about upstreams that fail or are slow: retries, hedges, how much of a body is kept for them. A
// route's own settings take the place of its virtual host's, each as a whole.

import type { ForwardAction } from '../../snapshot/index.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { FaultSink } from './fault-sink.ts';
import type { HedgePolicy, Route, VirtualHost } from './messages.ts';
import { convertRetryPolicy } from './retry-policy.ts';

export type RouteResilience = Pick<
  ForwardAction,
  'retry' | 'hedgesOnPerTryTimeout' | 'tellsTimeoutRetry' | 'replayLimitBytes' | 'isReplayLimitCapped'
>;

/** The two spellings of one limit. */
type BodyLimits = Pick<Route, 'per_request_buffer_limit_bytes' | 'request_body_buffer_limit'>;

/** What holds for the routes of a virtual host that say nothing else. */
export function virtualHostResilience(message: VirtualHost, at: string, faults: FaultSink): RouteResilience {
  const limit = bodyLimit(message);
  return {
    retry: convertRetryPolicy(message.retry_policy, `${at}.retry_policy`, faults),
    hedgesOnPerTryTimeout: hedges(message.hedge_policy),
    tellsTimeoutRetry: message.include_is_timeout_retry_header,
    replayLimitBytes: limit,
    isReplayLimitCapped: limit !== null,
  };
}

export function routeResilience(route: Route, at: string, ofHost: RouteResilience, faults: FaultSink): RouteResilience {
  const action = route.route;
  const limit = bodyLimit(route);
  return {
    ...ofHost,
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
