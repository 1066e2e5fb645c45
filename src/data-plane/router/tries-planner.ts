// Works out for each request whether one attempt is all there is to it, and if not, what its tries go by. Nearly all
// requests of a route say the same: they share one plan.

import { expectedMs, namesStreamDuration } from '../http/control-headers.ts';
import type { ForwardPlan } from '../route/forward-plan.ts';
import { NO_POLICY, type RetryPolicy } from '../route/retry-policy.ts';
import type { Route } from '../route/route.ts';
import type { RouteRequest } from '../route/route-request.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { TriesPlan } from './request-tries.ts';
import { retryTerms } from './retry-terms.ts';
import type { RoutedRequest } from './routed-request.ts';
import { TriedHosts } from './tried-hosts.ts';

/** Requests that go out together go to different hosts, as far as a few picks find some. */
const OTHER_HOSTS: RetryPolicy = {
  ...NO_POLICY,
  hostPredicates: [{ kind: 'previous-hosts' }],
  maxFurtherDraws: 8,
};

export class TriesPlanner {
  readonly #context: WorkerContext;
  readonly #clusters: ClusterMap;
  /** The upstream is not told how long it may take. */
  readonly #isSilent: boolean;
  /** The last one of each route that knows nothing of its request alone. */
  readonly #shared = new Map<Route, TriesPlan>();

  constructor(context: WorkerContext, clusters: ClusterMap, isSilent: boolean) {
    this.#context = context;
    this.#clusters = clusters;
    this.#isSilent = isSilent;
  }

  /** @returns null when one attempt is all there is. */
  plan(
    stream: RoutedRequest,
    request: RouteRequest,
    route: Route,
    forward: ForwardPlan,
    cluster: Cluster,
    pickContext: PickContext | null,
  ): TriesPlan | null {
    const retry = cluster.retry ?? forward.retry;
    const maxTryDurationMs = maxTryDuration(stream, request, cluster);
    const terms = retry === null && !stream.isInternal ? null : retryTerms(request, retry);
    const policy = retry ?? NO_POLICY;
    // Two tunnels cannot be told apart by what they answer first.
    const companions =
      forward.companions === null || stream.awaitsTunnel ? 0 : forward.companions.count(this.#context.random.u32());
    const isBounded = stream.perTryTimeoutMs > 0 || policy.perTryIdleTimeoutMs > 0 || maxTryDurationMs > 0;
    if (terms === null && !isBounded && companions === 0) return null;
    const asksOfHosts = policy.hostPredicates.length > 0 || policy.previousPrioritiesFrequency > 0;
    const { perTryTimeoutMs, timeoutMs, hedgesOnPerTryTimeout: hedges } = stream;
    const grpcExpectedMs = forward.grpcTimeout !== null && stream.isGrpc ? expectedMs(stream) : 0;
    const replayLimitBytes = forward.replayLimitBytes(stream.bufferLimitBytes);
    const isShared = !asksOfHosts && companions === 0 && pickContext === null;
    const shared = isShared ? this.#shared.get(route) : undefined;
    if (
      shared !== undefined &&
      shared.terms === terms &&
      shared.policy === policy &&
      shared.perTryTimeoutMs === perTryTimeoutMs &&
      shared.maxTryDurationMs === maxTryDurationMs &&
      shared.timeoutMs === timeoutMs &&
      shared.hedges === hedges &&
      shared.grpcExpectedMs === grpcExpectedMs &&
      shared.replayLimitBytes === replayLimitBytes
    ) {
      return shared;
    }
    const plan = {
      priority: forward.priority,
      attemptEdits: route.attemptEdits,
      pickContext,
      clusters: this.#clusters,
      policy,
      terms,
      triedHosts: asksOfHosts ? new TriedHosts(policy) : null,
      companions,
      otherHosts: companions === 0 ? null : new TriedHosts(OTHER_HOSTS),
      perTryTimeoutMs,
      perTryIdleTimeoutMs: policy.perTryIdleTimeoutMs,
      maxTryDurationMs,
      hedges,
      replayLimitBytes,
      timeoutMs,
      expectedMs: this.#isSilent ? 0 : expectedMs(stream),
      grpcExpectedMs,
      tellsTimeoutRetry: forward.tellsTimeoutRetry,
    };
    if (isShared) this.#shared.set(route, plan);
    return plan;
  }
}

/** What the cluster says of it, unless a client inside does. 0 for none. */
function maxTryDuration(stream: RoutedRequest, { head }: RouteRequest, { maxStreamDurationMs }: Cluster): number {
  if (maxStreamDurationMs === 0 || (stream.isInternal && namesStreamDuration(head))) return 0;
  return maxStreamDurationMs;
}
