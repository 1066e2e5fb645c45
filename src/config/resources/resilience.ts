// What a route does about upstreams that fail or are slow: retries, hedges, how much of a body is kept for them; and who gets copies. A
// route's own settings take the place of its virtual host's, each as a whole.

import type { ForwardAction } from '../../snapshot/index.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type { HedgePolicy, RetryPolicyMessage, Route, VirtualHost } from './messages.ts';
import { convertMirrorPolicies, mirrorPoliciesOf } from './mirror-policy.ts';
import { convertRetryPolicy } from './retry-policy.ts';
import { fractionOf } from './runtime-settings.ts';
import { valueOr } from './units.ts';

type Hedging = Pick<ForwardAction, 'hedgesOnPerTryTimeout' | 'initialRequests' | 'additionalRequestShare'>;
type BodyLimit = Pick<ForwardAction, 'replayLimitBytes' | 'isReplayLimitCapped'>;

export type RouteResilience = Hedging & BodyLimit & Pick<ForwardAction, 'retry' | 'tellsTimeoutRetry' | 'mirrors'>;

/** Each of them is a request to another host: more would be an attack on the cluster. */
const MOST_INITIAL_REQUESTS = 16;

/** A policy as such, and as the content of an extension; the reference keeps the second for policies of other kinds. */
type RetryPolicies = Pick<VirtualHost, 'retry_policy' | 'retry_policy_typed_config'>;
const RETRY_POLICY = 'proxy.config.route.v3.RetryPolicy';

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
    retry: retryOf(message, at, faults),
    ...convertHedging(message.hedge_policy, `${at}.hedge_policy`, faults),
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
  const retry = action === null ? null : retryOf(action, `${at}.route`, faults);
  return {
    ...ofHost,
    ...(mirrors.length === 0 ? {} : { mirrors }),
    ...(limit === null ? {} : { replayLimitBytes: limit, isReplayLimitCapped: false }),
    ...(action?.hedge_policy ? convertHedging(action.hedge_policy, `${at}.route.hedge_policy`, faults) : {}),
    ...(retry === null ? {} : { retry }),
  };
}

/** @returns null where neither form has a policy. */
function retryOf({ retry_policy, retry_policy_typed_config }: RetryPolicies, at: string, faults: FaultSink) {
  if (retry_policy !== null) return convertRetryPolicy(retry_policy, `${at}.retry_policy`, faults);
  const opened = openExtension(retry_policy_typed_config);
  if (opened?.typeName !== RETRY_POLICY) return null;
  return convertRetryPolicy(opened.message as RetryPolicyMessage, `${at}.retry_policy_typed_config`, faults);
}

function convertHedging(message: HedgePolicy | null, at: string, faults: FaultSink): Hedging {
  const initialRequests = valueOr(message?.initial_requests ?? null, 1);
  if (initialRequests > MOST_INITIAL_REQUESTS) {
    faults.error(`${at}.initial_requests`, `${initialRequests} exceeds the limit ${MOST_INITIAL_REQUESTS}`);
  }
  const chance = message?.additional_request_chance ?? null;
  const share = chance === null ? null : fractionOf(chance);
  if (share !== null && share.numerator > share.denominator) {
    faults.error(`${at}.additional_request_chance`, `${share.numerator} of ${share.denominator} is more than certain`);
  }
  return {
    hedgesOnPerTryTimeout: message?.hedge_on_per_try_timeout ?? false,
    initialRequests,
    additionalRequestShare: share?.numerator === 0 ? null : share,
  };
}

function bodyLimit(message: BodyLimits): number | null {
  const newer = message.request_body_buffer_limit;
  return newer === null ? (message.per_request_buffer_limit_bytes?.value ?? null) : int64ToNumber(newer.value);
}
