// What a forwarding route does to a request: which cluster, how long, which host and path. Made once per snapshot; a
// route that rewrites nothing has nulls here and costs nothing.

import { weightedIndex } from '../../base/random.ts';
import type { RuntimeValues } from '../../base/runtime.ts';
import type {
  ForwardAction,
  GrpcTimeoutSettings,
  HostRewrite,
  InternalRedirectSettings,
  PathMatch,
  RouteUpgrade,
  WeightedClusters,
} from '../../snapshot/index.ts';
import { PreparedLines } from '../../wasm/http1.ts';
import { ClusterPriority } from '../../wasm/shared-records.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { contextAsking, type PickContext } from '../upstream/load-balancer/pick-context.ts';
import { type Companions, compileCompanions } from './companions.ts';
import { RequestHasher } from './hash-policy.ts';
import { compileHeaderEdits, type FactsSource, type HeaderEditor } from './header-editor.ts';
import { headerReader } from './header-matcher.ts';
import { compileMirror, type Mirror } from './mirror.ts';
import { compilePathRewrite, type FormatPath, substituteOf } from './path-matcher.ts';
import { compileRetryPolicy, type RetryPolicy } from './retry-policy.ts';
import type { RouteRequest } from './route-request.ts';

/** One of the clusters that a route may choose. */
export interface ClusterTarget {
  readonly name: string;
  readonly requestEditor: HeaderEditor | null;
  readonly responseEditor: HeaderEditor | null;
  /** Host for this cluster, unless the route has one of its own; empty for none. */
  readonly hostRewrite: string;
  /** What requests ask of their hosts, where that is all that is known of them; null for nothing. */
  readonly pickContext: PickContext | null;
}

/** @returns undefined when the request names no cluster. */
export type ChooseCluster = (request: RouteRequest) => ClusterTarget | undefined;

/** @returns the new host, undefined to leave it. */
export type RewriteHost = (request: RouteRequest, source: FactsSource) => string | undefined;

export interface ForwardPlan {
  readonly kind: 'cluster';
  /** The cluster of every request; null when `choose` has to be asked. */
  readonly target: ClusterTarget | null;
  readonly choose: ChooseCluster;
  /** What requests are hashed by; null when that is nothing. */
  readonly hasher: RequestHasher | null;
  /** Whose limits and connections the request uses. */
  readonly priority: ClusterPriority;
  readonly timeoutMs: number;
  /** Tells the upstream the route's own timeout, which hardly any request changes; null without one. */
  readonly timeoutLine: PreparedLines | null;
  readonly grpcTimeout: GrpcTimeoutSettings | null;
  readonly grpcStreamDuration: GrpcTimeoutSettings | null;
  readonly idleTimeoutMs: number | null;
  readonly maxStreamDurationMs: number;
  readonly replacesStreamDuration: boolean;
  /** Null when only the request itself can ask for retries. */
  readonly retry: RetryPolicy | null;
  readonly hedgesOnPerTryTimeout: boolean;
  /** Null where one request goes out first. */
  readonly companions: Companions | null;
  readonly tellsTimeoutRetry: boolean;
  /** How much of a body is kept for retries, by what the listener may hold. */
  readonly replayLimitBytes: (listenerLimitBytes: number) => number;
  /** Null for none. */
  readonly mirrors: readonly Mirror[] | null;
  /** Null: the client gets every redirect. */
  readonly internalRedirects: InternalRedirectSettings | null;
  readonly rewritePath: FormatPath | null;
  readonly rewriteHost: RewriteHost | null;
  /** The host becomes the chosen upstream host's name. */
  readonly usesUpstreamHostname: boolean;
  readonly appendsForwardedHost: boolean;
  /** By type in lower case: what the route says of an upgrade; null when it says nothing. */
  readonly upgrades: ReadonlyMap<string, boolean> | null;
  /** What is in a CONNECT's tunnel goes to the upstream as it is. */
  readonly terminatesConnect: boolean;
  readonly clusterNotFoundStatus: number;
}

export function compileForward(
  action: ForwardAction,
  match: PathMatch,
  names: ProxyHeaders,
  runtime: RuntimeValues,
): ForwardPlan {
  const { hostRewrite, pathRewrite, weightedClusters } = action;
  const pickContext = contextAsking(action.criteria);
  const target = action.cluster === '' ? null : plainTarget(action.cluster, pickContext);
  let choose: ChooseCluster = () => target ?? undefined;
  if (weightedClusters !== null) choose = weightedChoice(weightedClusters, runtime);
  else if (action.clusterHeader !== '') choose = headerChoice(action.clusterHeader, pickContext);
  return {
    kind: 'cluster',
    target,
    choose,
    hasher: action.hashPolicies.length === 0 ? null : new RequestHasher(action.hashPolicies),
    priority: action.isHighPriority ? ClusterPriority.high : ClusterPriority.default,
    timeoutMs: action.timeoutMs,
    timeoutLine: action.timeoutMs > 0 ? new PreparedLines([`${names.expectedTimeoutMs}: ${action.timeoutMs}`]) : null,
    grpcTimeout: action.grpcTimeout,
    grpcStreamDuration: action.grpcStreamDuration,
    idleTimeoutMs: action.idleTimeoutMs,
    maxStreamDurationMs: action.maxStreamDurationMs,
    replacesStreamDuration: action.replacesStreamDuration,
    retry: action.retry === null ? null : compileRetryPolicy(action.retry),
    hedgesOnPerTryTimeout: action.hedgesOnPerTryTimeout,
    companions: compileCompanions(action),
    tellsTimeoutRetry: action.tellsTimeoutRetry,
    replayLimitBytes: compileReplayLimit(action),
    mirrors: action.mirrors.length === 0 ? null : action.mirrors.map((policy) => compileMirror(policy, runtime)),
    internalRedirects: action.internalRedirects,
    rewritePath: pathRewrite === null ? null : compilePathRewrite(match, pathRewrite),
    rewriteHost: hostRewrite === null ? null : compileHostRewrite(hostRewrite),
    usesUpstreamHostname: hostRewrite?.kind === 'auto',
    appendsForwardedHost: action.appendForwardedHost,
    upgrades: action.upgrades.length === 0 ? null : upgradesOf(action.upgrades),
    terminatesConnect: action.terminatesConnect,
    clusterNotFoundStatus: action.clusterNotFoundStatus,
  };
}

function compileReplayLimit({
  replayLimitBytes: limit,
  isReplayLimitCapped,
}: ForwardAction): (bytes: number) => number {
  if (limit === null) return (listenerLimit) => listenerLimit;
  return isReplayLimitCapped ? (listenerLimit) => Math.min(limit, listenerLimit) : () => limit;
}

function upgradesOf(upgrades: readonly RouteUpgrade[]): ReadonlyMap<string, boolean> {
  return new Map(upgrades.map(({ type, isEnabled }) => [type, isEnabled]));
}

function plainTarget(name: string, pickContext: PickContext | null): ClusterTarget {
  return { name, requestEditor: null, responseEditor: null, hostRewrite: '', pickContext };
}

function headerChoice(header: string, pickContext: PickContext | null): ChooseCluster {
  const read = headerReader(header);
  return (request) => {
    const name = read(request);
    return name === undefined || name === '' ? undefined : plainTarget(name, pickContext);
  };
}

function weightedChoice(clusters: WeightedClusters, runtime: RuntimeValues): ChooseCluster {
  const { entries, runtimeKeyPrefix } = clusters;
  const targets = entries.map(
    ({ cluster, requestEdits, responseEdits, hostRewrite, criteria }): ClusterTarget => ({
      name: cluster,
      requestEditor: requestEdits === null ? null : compileHeaderEdits([requestEdits]),
      responseEditor: responseEdits === null ? null : compileHeaderEdits([responseEdits]),
      hostRewrite,
      pickContext: contextAsking(criteria),
    }),
  );
  const shares = runtime.derived((values) => {
    if (runtimeKeyPrefix === '') return { weights: entries.map(({ weight }) => weight), sum: clusters.totalWeight };
    const weights = entries.map(({ cluster, weight }) => values.integer(`${runtimeKeyPrefix}.${cluster}`) ?? weight);
    return { weights, sum: weights.reduce((sum, weight) => sum + weight, 0) };
  });
  return ({ random }) => {
    const { weights, sum } = shares.value;
    // The runtime may have set all of them to 0.
    return sum === 0 ? undefined : targets[weightedIndex(weights, random % sum)];
  };
}

function headerRewrite(read: (request: RouteRequest) => string | undefined): RewriteHost {
  return (request) => read(request) || undefined;
}

/** @returns null when the host is known only with the upstream host. */
function compileHostRewrite(rewrite: HostRewrite): RewriteHost | null {
  switch (rewrite.kind) {
    case 'literal':
      return () => rewrite.value;
    case 'header':
      return headerRewrite(headerReader(rewrite.name));
    case 'path-regex': {
      const substitute = substituteOf(rewrite);
      return ({ path }) => substitute(path) || undefined;
    }
    case 'format': {
      const format = new TextFormatter(rewrite.segments, { missing: '' });
      return (_request, source) => format.render(source.facts) || undefined;
    }
    case 'auto':
      return null;
  }
}
