// Routes as snapshots carry them, with nothing special about them unless a test says so.

import type {
  ForwardAction,
  RetrySettings,
  RouteAction,
  RouteSnapshot,
  RouteTableSnapshot,
} from '../../src/snapshot/index.ts';

/** A route table of one virtual host, for every domain unless said otherwise. */
export function routeTable(
  routes: readonly RouteSnapshot[],
  overrides: Partial<RouteTableSnapshot> = {},
): RouteTableSnapshot {
  return {
    name: 'local',
    virtualHosts: [{ name: 'all', domains: ['*'], routes }],
    ignoresPort: false,
    internalOnlyHeaders: [],
    ...overrides,
  };
}

/** A route for the paths that begin with `prefix`. */
export function routeFor(
  prefix: string,
  action: RouteAction,
  overrides: Partial<Omit<RouteSnapshot, 'action'>> = {},
): RouteSnapshot {
  return {
    name: '',
    match: { kind: 'prefix', value: prefix, caseSensitive: true },
    conditions: null,
    action,
    requestEdits: [],
    responseEdits: [],
    countsAttemptsInRequest: false,
    countsAttemptsInResponse: false,
    ...overrides,
  };
}

/** A policy that retries once for any server error or reset, unless said otherwise. */
export function retrySettings(overrides: Partial<RetrySettings> = {}): RetrySettings {
  return {
    conditions: ['5xx'],
    maxRetries: 1,
    perTryTimeoutMs: 0,
    perTryIdleTimeoutMs: 0,
    backOff: null,
    rateLimitedBackOff: null,
    retriableStatusCodes: [],
    retriableHeaders: [],
    retriableRequestHeaders: [],
    hostPredicates: [],
    maxFurtherDraws: 1,
    previousPrioritiesFrequency: 0,
    ...overrides,
  };
}

/** An action that changes nothing on the way to a cluster. */
export function forwardTo(cluster: string, overrides: Partial<ForwardAction> = {}): ForwardAction {
  return {
    kind: 'cluster',
    cluster,
    weightedClusters: null,
    clusterHeader: '',
    timeoutMs: 15_000,
    criteria: null,
    hashPolicies: [],
    isHighPriority: false,
    idleTimeoutMs: null,
    flushTimeoutMs: null,
    maxStreamDurationMs: 0,
    replacesStreamDuration: false,
    limitsStreamDuration: false,
    retry: null,
    hedgesOnPerTryTimeout: false,
    initialRequests: 1,
    additionalRequestShare: null,
    tellsTimeoutRetry: false,
    replayLimitBytes: null,
    isReplayLimitCapped: false,
    mirrors: [],
    internalRedirects: null,
    grpcTimeout: null,
    grpcStreamDuration: null,
    pathRewrite: null,
    hostRewrite: null,
    appendForwardedHost: false,
    upgrades: [],
    terminatesConnect: false,
    clusterNotFoundStatus: 503,
    ...overrides,
  };
}

/** Routes everything to a cluster. */
export function routeTo(
  cluster: string,
  overrides: { timeoutMs?: number; prefix?: string; prefixRewrite?: string; hostRewrite?: string } = {},
): RouteSnapshot {
  const { timeoutMs = 15_000, prefix = '/', prefixRewrite, hostRewrite } = overrides;
  const action = forwardTo(cluster, {
    timeoutMs,
    pathRewrite: prefixRewrite === undefined ? null : { kind: 'prefix', value: prefixRewrite },
    hostRewrite: hostRewrite === undefined ? null : { kind: 'literal', value: hostRewrite },
  });
  return routeFor(prefix, action);
}

/** Routes every CONNECT to the cluster `web`. */
export function connectRoute(overrides: Partial<ForwardAction> = {}): RouteSnapshot {
  return routeFor('', forwardTo('web', overrides), { match: { kind: 'connect', value: '', caseSensitive: true } });
}

export function directRoute(prefix: string, status: number, body: string): RouteSnapshot {
  return routeFor(prefix, { kind: 'direct-response', status, body: Buffer.from(body) });
}
