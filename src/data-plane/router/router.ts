// Decides what becomes of a request: the route, the cluster, the head that the upstream will see. Step 4 of the
// request flow. What cannot be forwarded is answered here, through the stream.

import { absoluteTarget } from '../../base/absolute-target.ts';
import type { Demand, HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { CLUSTER_STATS, HTTP_STATS } from '../../stats/index.ts';
import { codecError, Framing, HEADER_ID, Method, type RequestHead } from '../../wasm/http1.ts';
import { dropRouterHeaders, obeyControlHeaders } from '../http/control-headers.ts';
import { NO_LIMITS } from '../http/filtered-stream.ts';
import {
  clusterNotFound,
  DROPPED_OVERLOAD,
  type LocalReply,
  MAINTENANCE,
  NO_ROUTE,
  REWRITE_FAILED,
  redirect,
} from '../http/local-reply.ts';
import { keepUpgradeFields } from '../http/upgrade-fields.ts';
import type { ClusterTarget, ForwardPlan } from '../route/forward-plan.ts';
import type { Mirror } from '../route/mirror.ts';
import type { RetryPolicy } from '../route/retry-policy.ts';
import type { Route } from '../route/route.ts';
import { RouteRequest } from '../route/route-request.ts';
import type { RouteScopes } from '../route/scope-sets.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import { contextWith, type PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { SheddingReason } from '../upstream/load-shedding.ts';
import { countStatus } from '../upstream/response-count.ts';
import type { WorkerContext } from '../worker-context.ts';
import { ForwardEdits } from './forward-edits.ts';
import type { ForwardedRequest } from './forwarded-request.ts';
import { grpcStreamDurationMs, grpcTimeoutMs, namesGrpcTimeout } from './grpc-timeout.ts';
import { InternalRedirects } from './internal-redirects.ts';
import { redirectedHead } from './redirect-target.ts';
import { RequestMirror, type ShadowTarget } from './request-mirror.ts';
import { RequestTries } from './request-tries.ts';
import type { RoutedRequest } from './routed-request.ts';
import { StrictChecks } from './strict-checks.ts';
import { TcpRequest } from './tcp-request.ts';
import { TriesPlanner } from './tries-planner.ts';
import { UpstreamAttempt } from './upstream-attempt.ts';

const {
  no_cluster,
  no_route,
  passthrough_internal_redirect_bad_location,
  passthrough_internal_redirect_no_route,
  passthrough_internal_redirect_predicate,
  passthrough_internal_redirect_too_many_redirects,
  passthrough_internal_redirect_unsafe_scheme,
  rq_direct_response,
  rq_redirect,
  rq_total,
} = HTTP_STATS.index;
const {
  upstream_internal_redirect_failed_total,
  upstream_internal_redirect_succeeded_total,
  upstream_rq_drop_overload,
  upstream_rq_maintenance_mode,
} = CLUSTER_STATS.index;

const SEE_OTHER = 303;
const NO_SHADOWS: readonly ShadowTarget[] = [];

export class Router {
  readonly #context: WorkerContext;
  readonly #clusters: ClusterMap;
  readonly #edits: ForwardEdits;
  readonly #passesTrailers: boolean;
  readonly #isTraced: boolean;
  readonly #settings: HttpConnectionManagerSettings;
  readonly #checks: StrictChecks;
  readonly #planner: TriesPlanner;
  /** Filled anew for each request. */
  readonly #request: RouteRequest;
  /** First cell of the connection manager's stats. */
  readonly #statBase: number;
  readonly #scopes: RouteScopes | null;

  /** @param scopes null where all requests go by one table. */
  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    settings: HttpConnectionManagerSettings,
    statBase: number,
    scopes: RouteScopes | null = null,
  ) {
    this.#scopes = scopes;
    this.#context = context;
    this.#clusters = clusters;
    this.#passesTrailers = settings.enableTrailers;
    this.#settings = settings;
    this.#isTraced = settings.tracing !== undefined;
    this.#planner = new TriesPlanner(context, clusters, settings.suppressProxyHeaders);
    this.#checks = new StrictChecks(settings.strictlyCheckedHeaders);
    this.#edits = new ForwardEdits(context.proxyHeaders, settings.suppressProxyHeaders, settings.maxStreamDurationMs);
    this.#request = new RouteRequest(context.random);
    this.#statBase = statBase;
  }

  /** The route of a request that meets filters first, by its head as it is now. The router goes by it later. */
  find(stream: RoutedRequest, head: RequestHead): Route | undefined {
    this.#prepare(stream, head, this.#scopes);
    const route = stream.routes.table.find(this.#request) ?? null;
    // Chance is asked once of a request, however often its route is chosen.
    const isDrawn = stream.foundTarget !== null && route === stream.foundRoute && isByChance(route);
    if (!isDrawn) stream.foundTarget = this.#draw(stream, route);
    stream.foundRoute = route;
    if (this.#isTraced) stream.beginTrace(head, route);
    return route ?? undefined;
  }

  /** What main can have discovered for a request without a route, whose head lies in the codec; undefined for nothing. */
  missing(stream: RoutedRequest, head: RequestHead): Demand | undefined {
    this.#request.read(head, stream.isInternal, true, stream);
    const ofScope = this.#scopes?.missing(this.#request);
    if (ofScope !== undefined) return ofScope;
    const { id, table } = stream.routes;
    const host = id === undefined ? undefined : table.missingHost(this.#request);
    return host === undefined ? undefined : { kind: 'virtual-host', routeTableId: id!, host };
  }

  /** The cluster of a request with a route, whose head lies in the codec, that this worker does not know; undefined for any other. */
  missingCluster(stream: RoutedRequest, head: RequestHead): string | undefined {
    const plan = stream.foundRoute?.plan;
    if (plan?.kind !== 'cluster') return undefined;
    this.#request.read(head, stream.isInternal, true, stream);
    const target = plan.target ?? stream.foundTarget ?? this.#choose(stream, plan);
    if (target === undefined || target.name === '' || this.#clusters.get(target.name) !== undefined) return undefined;
    return target.name;
  }

  /** Gets the head ready. @param scopes find out by which table it is routed; null where that is known. */
  #prepare(stream: RoutedRequest, head: RequestHead, scopes: RouteScopes | null): void {
    // What a table says of the head goes for its scope as the client has named it.
    if (scopes !== null) this.#enterScope(stream, head, scopes);
    stream.prepare(head);
    this.#request.read(head, stream.isInternal, stream.isFiltered, stream);
    if (scopes !== null) stream.useRoutes(scopes.routesOf(this.#request));
  }

  #enterScope(stream: RoutedRequest, head: RequestHead, scopes: RouteScopes): void {
    this.#request.read(head, stream.isInternal, true, stream);
    stream.useRoutes(scopes.routesOf(this.#request));
  }

  /** Of clusters by weight one, which may say something to filters. */
  #draw(stream: RoutedRequest, route: Route | null): ClusterTarget | null {
    if (route === null || route.plan.kind !== 'cluster' || !route.plan.isDrawn) return null;
    return this.#choose(stream, route.plan) ?? null;
  }

  #choose(stream: RoutedRequest, { target, choose }: ForwardPlan): ClusterTarget | undefined {
    return target ?? choose(this.#request, { client: stream, kernel: this.#context.lbKernel });
  }

  /** Answers the request (and returns null), or makes the request to the upstream, which the stream then starts. */
  route(stream: RoutedRequest, head: RequestHead): ForwardedRequest | null {
    const request = this.#request;
    this.#prepare(stream, head, stream.foundRoute === null ? this.#scopes : null);
    const route = stream.foundRoute ?? stream.routes.table.find(request);
    if (this.#isTraced) stream.beginTrace(head, route ?? null);
    if (route === undefined) {
      this.#count(no_route);
      this.#context.traffic.requestRouted(stream, stream.downstream, '');
      stream.tellOfUnsent();
      stream.reply(NO_ROUTE);
      return null;
    }
    return this.#act(stream, head, route, false);
  }

  /**
   * Goes where the response leads whose head lies in the codec, if the policy lets it.
   * @param formerHead of the request, as it was sent.
   * @returns undefined when the response is the answer; null when the request has another answer by now.
   */
  follow(stream: RoutedRequest, redirects: InternalRedirects, formerHead: string): ForwardedRequest | null | undefined {
    const { statBase } = stream.cluster!;
    const route = this.#redirectedRoute(stream, redirects, formerHead);
    const stat =
      route === undefined ? upstream_internal_redirect_failed_total : upstream_internal_redirect_succeeded_total;
    this.#context.stats.values[statBase + stat]! += 1;
    if (route === undefined) return undefined;
    redirects.count += 1;
    redirects.policy = null;
    stream.setCookies = null;
    stream.overrideHost = null;
    return this.#act(stream, this.#request.head, route, true);
  }

  /**
   * Another request in place of the stream's own; its head lies in the codec.
   * @param begin called before anything is done, when there is a route for it. @returns undefined without one; null when it has an answer.
   */
  replace(stream: RoutedRequest, head: RequestHead, begin: () => void): ForwardedRequest | null | undefined {
    const scopes = this.#scopes;
    if (scopes === null) this.#request.read(head, stream.isInternal, true, stream);
    else this.#enterScope(stream, head, scopes);
    const route = stream.routes.table.find(this.#request);
    if (route === undefined) return undefined;
    begin();
    stream.redirects = null;
    stream.setCookies = null;
    stream.overrideHost = null;
    return this.#act(stream, head, route, false);
  }

  /** The head of the request that goes there lies in the codec then. */
  #redirectedRoute(stream: RoutedRequest, redirects: InternalRedirects, formerHead: string): Route | undefined {
    const { codec, proxyHeaders } = this.#context;
    const { response } = codec;
    const policy = redirects.policy!;
    const location = response.headerByName('location');
    if (!stream.isRequestComplete || !redirects.isKept || location === undefined) return undefined;
    const target = absoluteTarget(location);
    if (target === undefined) return this.#refuse(passthrough_internal_redirect_bad_location);
    if (target.isHttps !== stream.isSecured && !policy.allowsCrossScheme)
      return this.#refuse(passthrough_internal_redirect_unsafe_scheme);
    if (redirects.count >= policy.maxRedirects) return this.#refuse(passthrough_internal_redirect_too_many_redirects);
    const becomesGet =
      response.status === SEE_OTHER && stream.methodId !== Method.GET && stream.methodId !== Method.HEAD;
    const { headersToCopy } = policy;
    const text = redirectedHead(formerHead, proxyHeaders, { target, becomesGet, headersToCopy, response });
    const bytes = Buffer.from(text, 'latin1');
    if (codec.parseRequest(bytes, 0, bytes.length, NO_LIMITS) <= 0)
      return this.#refuse(passthrough_internal_redirect_bad_location);
    const scopes = this.#scopes;
    if (scopes === null) this.#request.read(codec.request, stream.isInternal, false, stream);
    else this.#enterScope(stream, codec.request, scopes);
    const route = stream.routes.table.find(this.#request);
    if (route === undefined) return this.#refuse(passthrough_internal_redirect_no_route);
    if (!redirects.accepts(policy.predicates, stream.route!.name, route.name, target.isHttps))
      return this.#refuse(passthrough_internal_redirect_predicate);
    if (becomesGet) {
      redirects.dropBody();
      stream.requestFraming = Framing.NONE;
    }
    return route;
  }

  /** HTTP/2 has trailers, HTTP/1 where the configuration says so. */
  #passesTrailersOf({ downstream }: RoutedRequest, { settings }: Cluster): boolean {
    const canHave = settings.enableTrailers || settings.http2 !== undefined;
    return canHave && (this.#passesTrailers || downstream?.isHttp2 === true);
  }

  #refuse(stat: number): undefined {
    this.#count(stat);
  }

  /** @param isFollowing the head is one that this router has made. */
  #act(stream: RoutedRequest, head: RequestHead, route: Route, isFollowing: boolean): ForwardedRequest | null {
    const request = this.#request;
    stream.route = route;
    const { plan } = route;
    switch (plan.kind) {
      case 'cluster':
        return this.#forward(stream, head, route, plan, isFollowing);
      case 'redirect':
        this.#count(rq_redirect);
        return this.#answer(stream, isFollowing, redirect(plan.status, plan.location(request)));
      case 'direct-response':
        this.#count(rq_direct_response);
        return this.#answer(stream, isFollowing, plan.reply);
    }
  }

  /** The request goes nowhere. @param isFollowing as for `#act`. */
  #answer(stream: RoutedRequest, isFollowing: boolean, reply: LocalReply): null {
    if (!isFollowing) stream.tellOfUnsent();
    stream.reply(reply);
    return null;
  }

  #forward(
    stream: RoutedRequest,
    head: RequestHead,
    route: Route,
    plan: ForwardPlan,
    isFollowing: boolean,
  ): ForwardedRequest | null {
    const request = this.#request;
    const drawn = !isFollowing && route === stream.foundRoute ? stream.foundTarget : null;
    const target = drawn ?? this.#choose(stream, plan);
    const cluster = target === undefined ? undefined : this.#clusters.get(target.name);
    if (target === undefined || cluster === undefined) {
      this.#count(no_cluster);
      return this.#answer(stream, isFollowing, clusterNotFound(plan.clusterNotFoundStatus));
    }
    const invalid = stream.isInternal ? this.#checks.firstInvalid(head) : null;
    if (invalid !== null) {
      stream.reply(invalid);
      return null;
    }
    this.#count(rq_total);
    stream.target = target;
    stream.tally = route.tally === null ? null : route.tally(request);
    stream.useCluster(cluster);
    this.#context.traffic.requestRouted(stream, stream.downstream, target.name);
    const shedding = cluster.shedding.reason();
    if (shedding !== null) {
      this.#shed(stream, cluster, shedding);
      return null;
    }
    const retry = cluster.retry ?? plan.retry;
    this.#setLimits(stream, head, plan, retry);
    const pickContext = this.#pickContext(stream, plan, target, cluster);
    const tries = this.#planner.plan(stream, request, route, plan, cluster, pickContext);
    const mirrors = cluster.mirrors ?? plan.mirrors;
    const shadows = mirrors === null || stream.awaitsTunnel ? NO_SHADOWS : this.#shadowsOf(mirrors);
    if (plan.internalRedirects !== null && !stream.awaitsTunnel) {
      stream.redirects ??= new InternalRedirects(plan.replayLimitBytes(stream.bufferLimitBytes));
      stream.redirects.policy = plan.internalRedirects;
    }
    if (!isFollowing) dropRouterHeaders(head);
    if (head.has(HEADER_ID.te) && this.#passesTrailersOf(stream, cluster)) this.#edits.keepTrailersOption(head);
    this.#edits.apply(stream, request, route, plan, target);
    if (stream.awaitsTunnel) keepUpgradeFields(head);
    if (this.#isTraced) stream.carryTrace(head);
    const { codec } = this.#context;
    const text = codec.writeRequestText();
    if (typeof text === 'number') {
      this.#context.logs.router.warning(`cannot rewrite a request for ${target.name}: ${codecError(text).reason}`);
      stream.reply(REWRITE_FAILED);
      return null;
    }
    if (endsHere(plan, request, stream)) {
      stream.maxStreamDurationMs = shorter(stream.maxStreamDurationMs, tries?.maxTryDurationMs ?? 0);
      return new TcpRequest(this.#context, stream, cluster, plan, text, pickContext);
    }
    const { attemptEdits } = route;
    const context = this.#context;
    const forwarded =
      tries === null
        ? new UpstreamAttempt(context, stream, cluster, plan.priority, text, attemptEdits, pickContext)
        : new RequestTries(context, stream, cluster, text, tries);
    if (shadows.length === 0) return forwarded;
    const limitBytes = plan.replayLimitBytes(stream.bufferLimitBytes);
    return new RequestMirror(context, stream, forwarded, {
      clusters: this.#clusters,
      targets: shadows,
      limitBytes,
      timeoutMs: stream.timeoutMs,
    });
  }

  /** Turns the request away for the sake of the cluster. */
  #shed(stream: RoutedRequest, cluster: Cluster, reason: SheddingReason): void {
    const isMaintenance = reason === 'maintenance-mode';
    const reply = isMaintenance ? MAINTENANCE : DROPPED_OVERLOAD;
    const counter = isMaintenance ? upstream_rq_maintenance_mode : upstream_rq_drop_overload;
    this.#context.stats.values[cluster.statBase + counter]! += 1;
    cluster.noteDropped(!isMaintenance);
    countStatus(this.#context, cluster, null, reply.status, stream, false);
    stream.reply(reply);
  }

  /** What the choice of a host may go by. */
  #pickContext(stream: RoutedRequest, plan: ForwardPlan, target: ClusterTarget, cluster: Cluster): PickContext | null {
    if (cluster.destinations !== null) {
      return cluster.destinations.contextOf(this.#request, stream.connectionEnds);
    }
    const hasher = cluster.hasher ?? plan.hasher;
    const asked = cluster.asksOfHosts ? askedOf(stream, target) : target.pickContext;
    if (!cluster.isHashed || hasher === null) return asked;
    const criteria = asked?.criteria ?? null;
    return hasher.hash(this.#context.lbKernel, this.#request, stream, criteria);
  }

  /** Those that get a copy of this request. */
  #shadowsOf(mirrors: readonly Mirror[]): readonly ShadowTarget[] {
    return mirrors.flatMap(({ clusterFor, hostOf, editor }) => {
      const name = clusterFor(this.#request);
      const cluster = this.#clusters.get(name);
      if (cluster === undefined) return [];
      // Nobody has connected for the copy: only a header can say where it goes.
      const pickContext = cluster.destinations?.contextOf(this.#request, null) ?? null;
      return [{ cluster: name, hostOf, editor, pickContext }];
    });
  }

  #setLimits(stream: RoutedRequest, head: RequestHead, plan: ForwardPlan, retry: RetryPolicy | null): void {
    stream.timeoutMs = plan.timeoutMs;
    if (plan.grpcTimeout !== null && stream.isGrpc) stream.timeoutMs = grpcTimeoutMs(head, plan.grpcTimeout);
    stream.maxStreamDurationMs = 0;
    stream.routeDurationMs = plan.maxStreamDurationMs;
    stream.replacesDuration = plan.replacesStreamDuration;
    if (plan.grpcStreamDuration !== null && namesGrpcTimeout(head)) {
      stream.replacesDuration = true;
      stream.routeDurationMs = grpcStreamDurationMs(head, plan.grpcStreamDuration);
    }
    if (plan.idleTimeoutMs !== null) stream.setIdleTimeout(plan.idleTimeoutMs);
    if (plan.flushTimeoutMs !== null) stream.setFlushTimeout(plan.flushTimeoutMs);
    stream.perTryTimeoutMs = retry === null ? 0 : retry.perTryTimeoutMs;
    stream.hedgesOnPerTryTimeout = plan.hedgesOnPerTryTimeout;
    if (stream.isInternal) obeyControlHeaders(head, stream, this.#settings.respectsExpectedTimeout);
    // The whole time ends first.
    if (stream.timeoutMs > 0 && stream.perTryTimeoutMs >= stream.timeoutMs) stream.perTryTimeoutMs = 0;
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#statBase + stat]! += 1;
  }
}

/** What the request carries goes to the upstream as it is. */
function endsHere(plan: ForwardPlan, { isConnect }: RouteRequest, { methodId, awaitsTunnel }: RoutedRequest): boolean {
  if (isConnect) return plan.terminatesConnect;
  return plan.terminatesPost && methodId === Method.POST && !awaitsTunnel;
}

function isByChance(route: Route | null): boolean {
  return route?.plan.kind === 'cluster' && route.plan.isByChance;
}

/** What hosts of subsets are asked for: by the route, and by filters, which go before it. */
function askedOf({ downstream, dynamicMetadata }: RoutedRequest, { pickContext }: ClusterTarget): PickContext | null {
  const ofConnection = downstream.metadata;
  if (ofConnection === null && dynamicMetadata === undefined) return pickContext;
  return contextWith(pickContext, [ofConnection, dynamicMetadata]);
}

/** Of two times that are 0 for any time. */
function shorter(firstMs: number, secondMs: number): number {
  return firstMs === 0 || secondMs === 0 ? firstMs + secondMs : Math.min(firstMs, secondMs);
}
