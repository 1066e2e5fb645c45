// What a forwarding route does to a request: which cluster, how long, which host and path. Made once per snapshot; a
// route that rewrites nothing has nulls here and costs nothing.

import type { ProxyHeaderSettings } from '../../base/proxy-header.ts';
import { weightedIndex } from '../../base/random.ts';
import type { RuntimeValues } from '../../base/runtime.ts';
import type {
  FiltersOfRoute,
  ForwardAction,
  GrpcTimeoutSettings,
  HostRewrite,
  InternalRedirectSettings,
  PathMatch,
  RouteUpgrade,
  WeightedCluster,
  WeightedClusters,
} from '../../snapshot/index.ts';
import { PreparedLines } from '../../wasm/http1.ts';
import type { LbKernel } from '../../wasm/lb.ts';
import { ClusterPriority } from '../../wasm/shared-records.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { contextAsking, type PickContext } from '../upstream/load-balancer/pick-context.ts';
import { type Companions, compileCompanions } from './companions.ts';
import { type HashedClient, RequestHasher } from './hash-policy.ts';
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
  /** What it says to HTTP filters in place of its route; null for nothing of its own. */
  readonly filters: FiltersOfRoute | null;
  /** What requests ask of their hosts, where that is all that is known of them; null for nothing. */
  readonly pickContext: PickContext | null;
}

/** Who may have to be hashed for the choice. */
export interface HashedSender {
  readonly client: HashedClient;
  readonly kernel: LbKernel;
}

/** @returns undefined when the request names no cluster. */
export type ChooseCluster = (request: RouteRequest, sender: HashedSender | null) => ClusterTarget | undefined;

/** @returns the new host, undefined to leave it. */
export type RewriteHost = (request: RouteRequest, source: FactsSource) => string | undefined;

export interface ForwardPlan {
  readonly kind: 'cluster';
  /** The cluster of every request; null when `choose` has to be asked. */
  readonly target: ClusterTarget | null;
  readonly choose: ChooseCluster;
  /** The cluster is drawn together with the route, for its filters' sake. */
  readonly isDrawn: boolean;
  /** By nothing that the request brings, or that filters say of it. */
  readonly isByChance: boolean;
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
  readonly flushTimeoutMs: number | null;
  readonly maxStreamDurationMs: number;
  readonly replacesStreamDuration: boolean;
  readonly limitsStreamDuration: boolean;
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
  readonly terminatesPost: boolean;
  /** With what the upstream's connection begins then; null for nothing. */
  readonly connectHeader: ProxyHeaderSettings | null;
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
  const hasher = action.hashPolicies.length === 0 ? null : new RequestHasher(action.hashPolicies);
  if (weightedClusters !== null) choose = weightedChoice(weightedClusters, runtime, hasher);
  else if (action.clusterHeader !== '') choose = headerChoice(action.clusterHeader, pickContext);
  return {
    kind: 'cluster',
    target,
    choose,
    isDrawn: weightedClusters !== null,
    isByChance: weightedClusters?.decidedBy == null,
    hasher,
    priority: action.isHighPriority ? ClusterPriority.high : ClusterPriority.default,
    timeoutMs: action.timeoutMs,
    timeoutLine: action.timeoutMs > 0 ? new PreparedLines([`${names.expectedTimeoutMs}: ${action.timeoutMs}`]) : null,
    grpcTimeout: action.grpcTimeout,
    grpcStreamDuration: action.grpcStreamDuration,
    idleTimeoutMs: action.idleTimeoutMs,
    flushTimeoutMs: action.flushTimeoutMs,
    maxStreamDurationMs: action.maxStreamDurationMs,
    replacesStreamDuration: action.replacesStreamDuration,
    limitsStreamDuration: action.limitsStreamDuration,
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
    terminatesPost: action.terminatesPost ?? false,
    connectHeader: action.connectHeader ?? null,
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
  return { name, requestEditor: null, responseEditor: null, hostRewrite: '', filters: null, pickContext };
}

function headerChoice(header: string, pickContext: PickContext | null): ChooseCluster {
  const read = headerReader(header);
  return (request) => {
    const name = read(request);
    return name === undefined || name === '' ? undefined : plainTarget(name, pickContext);
  };
}

function weightedChoice(
  clusters: WeightedClusters,
  runtime: RuntimeValues,
  hasher: RequestHasher | null,
): ChooseCluster {
  const { entries, runtimeKeyPrefix } = clusters;
  const targets = entries.map(weightedTarget);
  const shares = runtime.derived((values) => {
    if (runtimeKeyPrefix === '') return { weights: entries.map(({ weight }) => weight), sum: clusters.totalWeight };
    const weights = entries.map(({ cluster, weight }) => values.integer(`${runtimeKeyPrefix}.${cluster}`) ?? weight);
    return { weights, sum: weights.reduce((sum, weight) => sum + weight, 0) };
  });
  const decide = compileDecision(clusters.decidedBy, hasher);
  return (request, sender) => {
    const { weights, sum } = shares.value;
    // The runtime may have set all of them to 0.
    if (sum === 0) return undefined;
    return targets[weightedIndex(weights, decide(request, sender, sum) ?? request.random % sum)]!(request);
  };
}

function weightedTarget(entry: WeightedCluster): (request: RouteRequest) => ClusterTarget | undefined {
  const { cluster, clusterHeader, requestEdits, responseEdits, hostRewrite, criteria } = entry;
  const target: ClusterTarget = {
    name: cluster,
    requestEditor: requestEdits === null ? null : compileHeaderEdits([requestEdits]),
    responseEditor: responseEdits === null ? null : compileHeaderEdits([responseEdits]),
    hostRewrite,
    filters: entry.filters ?? null,
    pickContext: contextAsking(criteria),
  };
  if (clusterHeader === undefined) return () => target;
  const read = headerReader(clusterHeader);
  return (request) => {
    const name = read(request);
    return name === undefined || name === '' ? undefined : { ...target, name };
  };
}

/** @returns a number below `sum` that the request itself decides by; undefined when it says nothing. */
type Decide = (request: RouteRequest, sender: HashedSender | null, sum: number) => number | undefined;

/** A 64-bit integer without a sign. */
const WHOLE_NUMBER = /^\d{1,20}$/;

function compileDecision(decidedBy: WeightedClusters['decidedBy'], hasher: RequestHasher | null): Decide {
  if (decidedBy?.kind === 'header') {
    const read = headerReader(decidedBy.name);
    return (request, _sender, sum) => {
      const value = read(request);
      return value !== undefined && WHOLE_NUMBER.test(value) ? Number(BigInt(value) % BigInt(sum)) : undefined;
    };
  }
  if (decidedBy?.kind !== 'hash' || hasher === null) return () => undefined;
  return (request, sender, sum) => {
    if (sender === null) return undefined;
    const { client } = sender;
    const { clientAddress, connectionEnds } = client;
    // The choice of a host hashes, too, and gives the client its cookie.
    const silent: HashedClient = {
      clientAddress,
      connectionEnds,
      state: (key) => client.state(key),
      setCookie() {},
    };
    const { hasHash, hashHi, hashLo } = hasher.hash(sender.kernel, request, silent, null);
    return hasHash ? Number(((BigInt(hashHi >>> 0) << 32n) | BigInt(hashLo >>> 0)) % BigInt(sum)) : undefined;
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
