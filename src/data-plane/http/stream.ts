// One request on a downstream connection, and with its response side, in stream-response.ts, the whole stream. Step 3
// of the request flow; knows no protocol version beyond what its codec tells it.
//
//   request:   head ──► body … ──► complete
//
// What an upgrade or a CONNECT carries after the answer that opens its tunnel is body without framing, both ways; such
// a request is complete when the client's side of the tunnel is. Until then the limits of the route do not run.

import { isIP } from 'node:net';
import type { ConfigSourceSettings, FiltersOfRoute, RouteRateLimits } from '../../snapshot/index.ts';
import { HTTP_STATS, ROUTE_STATS } from '../../stats/index.ts';
import { Framing, HEADER_ID, HeadFlag, type RequestHead } from '../../wasm/http1.ts';
import type { DownstreamFacts } from '../format/facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { Overload } from '../overload.ts';
import type { HeaderEditor } from '../route/header-editor.ts';
import type { Route } from '../route/route.ts';
import { Verdict } from '../router/attempt-client.ts';
import type { ForwardedRequest } from '../router/forwarded-request.ts';
import type { InternalRedirects } from '../router/internal-redirects.ts';
import type { RoutedRequest } from '../router/routed-request.ts';
import type { Router } from '../router/router.ts';
import type { RequestTracing } from '../tracing/request-tracing.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { ClientCertificates } from './client-certificate.ts';
import { type DownstreamStream, type RequestReceiver, ResetReason } from './codec/downstream-stream.ts';
import type { FilterChain, StreamFilters } from './filter-chain.ts';
import { type FilteredStream, NO_LIMITS } from './filtered-stream.ts';
import type { HttpStreamFacts } from './http-stream-facts.ts';
import * as replies from './local-reply.ts';
import type { OriginDetectors } from './origin-detection.ts';
import {
  applyConnectionManagerEdits,
  type RequestLines,
  type RequestOrigin,
  requestOrigin,
  UNKNOWN_ORIGIN,
} from './request-edits.ts';
import type { RequestNormalization } from './request-normalization.ts';
import { DURATION_LIMIT, ROUTE_LIMIT, STREAM_LIMIT, type StreamLimit, type UpstreamLimit } from './stream-limits.ts';
import { type ResponseManager, StreamResponse } from './stream-response.ts';
import type { Trailers } from './trailers.ts';
import { keepUpgradeFields } from './upgrade-fields.ts';
import type { Upgrades } from './upgrades.ts';

const NO_BYTES = Buffer.alloc(0);

const {
  downstream_cx_upgrades_active,
  downstream_cx_upgrades_total,
  downstream_flow_control_paused_reading_total,
  downstream_flow_control_resumed_reading_total,
  downstream_rq_idle_timeout,
  downstream_rq_max_duration_reached,
  downstream_rq_overload_close,
  downstream_rq_timeout,
  downstream_rq_ws_on_non_ws_route,
  rq_overload_local_reply,
} = HTTP_STATS.index;

/** The connection manager, as its streams see it. */
export interface StreamManager extends ResponseManager {
  readonly router: Router;
  readonly overload: Overload;
  /** Null when requests meet only the router. */
  readonly filters: FilterChain | null;
  readonly upgrades: Upgrades;
  readonly requestLines: RequestLines;
  readonly clientCertificates: ClientCertificates;
  /** Null where the address of the peer, and trusted hops, say who sends requests. */
  readonly originDetectors: OriginDetectors | null;
  /** Null where requests are read as they came. */
  readonly earlyHeaderEditor: HeaderEditor | null;
  /** Null when no request is traced. */
  readonly tracing: RequestTracing | null;
  readonly normalization: RequestNormalization;
}

export class HttpStream extends StreamResponse implements RequestReceiver, FilteredStream, RoutedRequest {
  declare protected readonly manager: StreamManager;
  // Limits of this request, by the route and by its own headers; 0 for none.
  timeoutMs = 0;
  perTryTimeoutMs = 0;
  maxStreamDurationMs = 0;
  routeDurationMs = 0;
  /** The connection manager's own limit does not count. */
  replacesDuration = false;
  hedgesOnPerTryTimeout = false;
  wantsAltResponse = false;
  /** Of the request's body as it goes on, one of Framing. */
  requestFraming: number;
  /** Null for requests of routes that follow no redirects. */
  redirects: InternalRedirects | null = null;
  /** Of a message whose end has come, or comes with the next call; its body holds none. */
  requestTrailers: Trailers | null = null;
  #isRequestPaused = false;
  /** Another request goes on in place of the client's, whose body nobody wants any more. */
  #isReplaced = false;
  #isPrepared = false;
  #hasAwaitedRoute = false;
  #isTraceDecided = false;
  #origin: RequestOrigin = UNKNOWN_ORIGIN;
  /** Null before it is found out. */
  #detected: RequestOrigin | null = null;

  constructor(
    context: WorkerContext,
    manager: StreamManager,
    codec: DownstreamStream,
    startedMs: number,
    headMs: number,
  ) {
    super(context, manager, codec, startedMs, headMs);
    this.requestFraming = context.codec.request.framing;
  }

  get downstream(): DownstreamConnection {
    return this.codec.connection.downstream;
  }

  get bufferLimitBytes(): number {
    return this.codec.connection.bufferLimitBytes;
  }

  /** Of both bodies, beside what the connection itself holds. */
  get heldBytes(): number {
    return (this.upstream?.heldBytes ?? 0) + (this.filters?.heldBytes ?? 0) + (this.redirects?.keptBytes ?? 0);
  }

  // ---- From the downstream codec ----

  /**
   * The head lies in the codec; the first body bytes, in bytes[start..end), are given away.
   * @returns false when no more of the body should come before `resumeRequest`.
   */
  begin(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    if (this.wantedFacts !== null) this.wantedFacts.bytesReceived = end - start;
    const head = this.context.codec.request;
    this.#limitDuration(this.startedMs);
    const upgrade = this.manager.upgrades.typeOf(head, this.codec.protocol);
    if (upgrade === '') {
      if (isEnd) this.completeRequest(this.headMs);
    } else {
      this.awaitTunnel();
    }
    const refusal = this.#refusal(head);
    if (refusal !== null) {
      this.#refuse(refusal);
      return true;
    }
    const { furtherLogEntries } = this.manager.settings;
    if (furtherLogEntries.onStart || furtherLogEntries.intervalMs > 0) {
      this.findRoute();
      this.beginEntries(furtherLogEntries, this.headMs);
    }
    if (upgrade === '') return this.#enter(this.manager.filters, bytes, start, end, isEnd);
    keepUpgradeFields(head);
    const filters = this.manager.upgrades.admit(upgrade, head, this.manager.router.find(this, head));
    if (filters === undefined) {
      this.count(downstream_rq_ws_on_non_ws_route);
      this.reply(replies.UPGRADE_FAILED);
      return true;
    }
    this.isUpgradeCounted = true;
    this.count(downstream_cx_upgrades_total);
    this.count(downstream_cx_upgrades_active);
    return this.#enter(filters, bytes, start, end, false);
  }

  /** More of the body; the same rules. */
  onRequestBody(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    if (this.wantedFacts !== null) this.wantedFacts.bytesReceived += end - start;
    const refusal = this.requestTrailers === null ? null : this.#trailersRefusal();
    if (refusal !== null) {
      this.#refuse(refusal);
      return true;
    }
    if (isEnd) {
      this.completeRequest(nowMs);
      if (!this.hasTunnel) this.#armTimeouts(nowMs);
    }
    if (this.filters === null || this.filters.decoding.isTransparent) {
      return this.forwardBody(bytes, start, end, isEnd, nowMs);
    }
    const goesOn = this.filters.decoding.push(bytes, start, end, isEnd, this.#takeRequestTrailers());
    return this.#noteSending(goesOn) || isEnd;
  }

  /** The request's body broke HTTP; nothing after it can be read. */
  onProtocolViolation(status: number, reason: string): void {
    this.giveUp(replies.protocolViolation(status, reason));
  }

  // ---- Deadlines that have passed ----

  onLimit(limit: StreamLimit): void {
    if (limit.stat === null) {
      this.count(downstream_rq_max_duration_reached);
      this.giveUp(this.isRequestComplete ? limit.reply : limit.earlyReply);
      return;
    }
    this.upstream?.timeOut(limit.stat);
    if (limit === ROUTE_LIMIT) this.tally?.add(ROUTE_STATS.index.upstream_rq_timeout);
    this.onTryLimit(limit);
  }

  onTryLimit(limit: UpstreamLimit): void {
    this.#endByLimit(limit, this.isRequestComplete ? limit.reply : limit.earlyReply);
  }

  onReplayAbandoned(): void {
    this.giveUp(replies.REPLAY_ABANDONED);
  }

  onIdleTimeout(): void {
    this.count(downstream_rq_idle_timeout);
    this.giveUp(this.isRequestComplete ? replies.STREAM_IDLE_RESPONSE : replies.STREAM_IDLE_REQUEST);
  }

  /** It holds too much of what is scarce. */
  onTooExpensive(): void {
    this.giveUp(replies.TOO_EXPENSIVE, ResetReason.overload);
  }

  onDispatchAborted(): void {
    this.count(downstream_rq_overload_close);
    this.giveUp(replies.DISPATCH_ABORTED, ResetReason.overload);
  }

  onRequestTimeout(): void {
    this.count(downstream_rq_timeout);
    this.giveUp(replies.REQUEST_TIMEOUT);
  }

  // ---- From the filters, or straight from the codec where there are none ----

  /** The head lies in the codec; as for `begin`. */
  forward(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const head = this.context.codec.request;
    const hasBody = !isEnd && this.requestFraming !== Framing.NONE;
    const awaitsContinue = (head.flags & HeadFlag.EXPECT_CONTINUE) !== 0 && hasBody && end === start;
    if (this.manager.overload.refusesForwarding()) {
      this.count(rq_overload_local_reply);
      this.reply(replies.OVERLOADED);
      return true;
    }
    const upstream = this.manager.router.route(this, head);
    if (upstream === null) return true;
    if (this.replacesDuration) this.codec.deadlines.clearLimits();
    if (awaitsContinue && !this.manager.settings.proxiesInterim) this.#sendContinue();
    this.redirects?.keep(bytes, start, end);
    this.#send(upstream, bytes, start, end, isEnd);
    if (this.hasEnded) return true;
    this.#limitDurations(this.startedMs);
    if (isEnd) this.#armTimeouts(this.requestCompleteMs);
    return !hasBody || this.#noteSending(upstream.canSend);
  }

  forwardBody(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    const upstream = this.upstream;
    if (upstream === null || this.#isReplaced) return true;
    this.redirects?.keep(bytes, start, end);
    const goesOn = upstream.send(bytes, start, end, isEnd);
    if (isEnd && this.wantedFacts !== null && upstream.isSending) this.wantedFacts.noteRequestSent(nowMs);
    return this.#noteSending(goesOn) || isEnd;
  }

  get filtersOfRoute(): FiltersOfRoute | null {
    return this.foundTarget?.filters ?? this.foundRoute?.filters ?? null;
  }

  get rateLimits(): RouteRateLimits | null {
    return this.foundRoute?.rateLimits ?? null;
  }

  get routeCluster(): string {
    const plan = this.foundRoute?.plan;
    return plan?.kind === 'cluster' ? ((plan.target ?? this.foundTarget)?.name ?? '') : '';
  }

  get hasRoute(): boolean {
    return this.foundRoute !== null;
  }

  get isForwarded(): boolean {
    return this.foundRoute?.plan.kind === 'cluster';
  }

  get isFromEdge(): boolean {
    return this.manager.settings.useRemoteAddress && !this.isInternal;
  }

  findRoute(): void {
    this.manager.router.find(this, this.context.codec.request);
  }

  awaitRoute(done: (isThere: boolean) => void): (() => void) | undefined {
    // What has come without a route in it will not bring one the next time.
    if (this.#hasAwaitedRoute) return undefined;
    const demand = this.manager.router.missing(this, this.context.codec.request);
    this.#hasAwaitedRoute = demand !== undefined;
    return demand && this.context.demands.ask(demand, done);
  }

  awaitCluster(
    source: ConfigSourceSettings,
    timeoutMs: number,
    done: (isThere: boolean) => void,
  ): (() => void) | undefined {
    const name = this.manager.router.missingCluster(this, this.context.codec.request);
    if (name === undefined) return undefined;
    return this.context.demands.ask({ kind: 'cluster', name, source, timeoutMs }, done);
  }

  beginAgain(): boolean {
    const { filters, context, manager } = this;
    const held = filters?.decoding.collectHeld();
    if (filters === null || held === undefined || this.hasEnded) return false;
    const head = Buffer.from(filters.decoding.heldHead, 'latin1');
    if (context.codec.parseRequest(head, 0, head.length, NO_LIMITS) <= 0) return false;
    filters.destroy();
    this.filters = null;
    this.foundRoute = null;
    this.foundTarget = null;
    // Those with scopes are found again with the route.
    this.useRoutes(manager.routes.current);
    this.requestTrailers = held.trailers;
    const { request } = context.codec;
    let chain = manager.filters;
    if (this.awaitsTunnel) {
      keepUpgradeFields(request);
      const type = manager.upgrades.typeOf(request, this.codec.protocol);
      const admitted = manager.upgrades.admit(type, request, manager.router.find(this, request));
      if (admitted === undefined) {
        this.count(downstream_rq_ws_on_non_ws_route);
        this.reply(replies.UPGRADE_FAILED);
        return true;
      }
      chain = admitted;
    }
    const { bytes, isEnd } = held;
    if (this.#enter(chain, bytes, 0, bytes.length, isEnd) && !this.hasEnded) this.resumeRequest();
    return true;
  }

  // ---- From the router ----

  prepare(head: RequestHead): void {
    if (this.#isPrepared) return;
    this.#isPrepared = true;
    const { settings, requestLines, clientCertificates } = this.manager;
    const { connection } = this.codec;
    this.#origin = this.#detected ?? requestOrigin(head, settings, connection, requestLines.internalAddresses);
    if (this.wantedFacts !== null) this.#tellClient(this.wantedFacts);
    this.isInternal = this.#origin.isInternal;
    applyConnectionManagerEdits(head, settings, requestLines, connection, this.#origin, this.routes.table);
    clientCertificates.forward(head, this);
    if (settings.forwarding.answersRequestId) this.requestId = head.headerByName('x-request-id') ?? '';
  }

  beginTrace(head: RequestHead, route: Route | null): void {
    const { tracing } = this.manager;
    if (this.#isTraceDecided || tracing === null) return;
    this.#isTraceDecided = true;
    const { isInternal, isFromEdge } = this;
    this.trace = tracing.begin(head, route?.trace ?? null, { isInternal, isFromEdge }, this.startedMs);
    // What was decided stands in it.
    if (this.requestId !== '') this.requestId = head.headerByName('x-request-id') ?? '';
    // Whoever tells of the request later wants to know of all that happens from here on.
    if (this.trace?.isSampled) this.trace.noteFacts(this.facts);
  }

  carryTrace(head: RequestHead): void {
    this.trace?.carry(head);
  }

  get isFiltered(): boolean {
    return this.filters !== null;
  }

  /** TLS secures the connection. */
  get isSecured(): boolean {
    return this.codec.connection.downstream.tls !== null;
  }

  tellOfUnsent(): void {
    if (this.wantedFacts === null) return;
    const { codec } = this.context;
    const length = codec.writeRequest();
    if (length > 0) this.noteHeldHead(codec.requestText(length));
  }

  /** The client's address by the trusted hops, else that of the peer; empty for a pipe. */
  get clientAddress(): string {
    const { address } = this.#origin;
    return isIP(address) === 0 ? this.codec.connection.peerAddress : address;
  }

  get connectionEnds(): DownstreamFacts {
    return this.codec.connection.facts;
  }

  /** Replaces the connection manager's time after which this stream counts as idle; 0 for never. */
  setIdleTimeout(timeoutMs: number): void {
    this.codec.deadlines.setStreamIdleTimeout(timeoutMs, this.headMs);
  }

  setFlushTimeout(timeoutMs: number): void {
    this.codec.deadlines.flushTimeoutMs = timeoutMs;
  }

  onUpstreamWritable(): void {
    if (this.filters === null) this.resumeRequest();
    else this.filters.decoding.onReceiverDrain();
  }

  judgeResponse(): Verdict {
    const { redirects } = this;
    if (redirects === null || !redirects.concerns(this.context.codec.response.status)) return Verdict.pass;
    const former = this.upstream!;
    // A reply in its place is none of its own.
    this.upstream = null;
    const next = this.manager.router.follow(this, redirects, former.head);
    if (next === undefined) {
      this.upstream = former;
      return Verdict.pass;
    }
    if (next !== null) this.#startAgain(next, redirects.body());
    return Verdict.followed;
  }

  forwardInstead(request: string, begin: () => void): boolean {
    if (this.hasEnded || this.hasTunnel) return false;
    // The codec holds the head of the other request from here on.
    if (this.facts.requestHead === '') this.tellOfUnsent();
    const { codec } = this.context;
    const bytes = Buffer.from(request, 'latin1');
    if (codec.parseRequest(bytes, 0, bytes.length, NO_LIMITS) <= 0) return false;
    const next = this.manager.router.replace(this, codec.request, () => {
      this.dropUpstream()?.cancel(true);
      this.#isReplaced = true;
      this.requestFraming = Framing.NONE;
      begin();
    });
    if (next === undefined) return false;
    if (next !== null) this.#startAgain(next, NO_BYTES);
    // What comes of the client's body is dropped, as fast as it comes.
    if (!this.hasEnded) this.resumeRequest();
    return true;
  }

  resumeRequest(): void {
    if (!this.#isRequestPaused) return;
    this.#isRequestPaused = false;
    this.count(downstream_flow_control_resumed_reading_total);
    this.codec.resumeRequest();
  }

  // ---- Inside ----

  get upstreamAddress(): string {
    return (this.upstream ?? this.formerUpstream)?.host?.label ?? '';
  }

  protected override tellFacts(facts: HttpStreamFacts): void {
    this.#tellClient(facts);
    const upstream = this.upstream ?? this.formerUpstream;
    if (upstream !== null) facts.noteForwarding(upstream);
    else if (this.filters !== null) facts.requestHead = this.filters.heldRequestHead;
  }

  /** Who trusted hops say has sent it. They know no port. */
  #tellClient(facts: HttpStreamFacts): void {
    const { address } = this.#origin;
    if (address === this.codec.connection.peerAddress || isIP(address) === 0) return;
    facts.clientByHops = { ip: address, port: 0 };
  }

  #enter(filters: FilterChain | null, bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const awake = filters === null ? null : filters.awake(this.context.codec.request);
    if (awake === null) return this.forward(bytes, start, end, isEnd);
    if (this.foundRoute === null) this.findRoute();
    const enabled = awake.enabledBy(this.filtersOfRoute);
    if (enabled === null) return this.forward(bytes, start, end, isEnd);
    return this.#beginFiltered(enabled.open(this.context, this), bytes, start, end, isEnd);
  }

  #beginFiltered(filters: StreamFilters, bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const head = this.context.codec.request;
    const hasBody = !isEnd && this.requestFraming !== Framing.NONE;
    const awaitsContinue = (head.flags & HeadFlag.EXPECT_CONTINUE) !== 0 && hasBody && end === start;
    this.filters = filters;
    const goesOn = filters.decoding.begin(
      bytes,
      start,
      end,
      isEnd,
      this.requestFraming,
      this.#takeRequestTrailers(),
      this.awaitsTunnel,
    );
    // A filter may be waiting for the body, and the client for leave to send it, which nobody else has been asked for yet.
    const mayAsk = this.manager.settings.proxiesInterim && this.upstream !== null;
    if (awaitsContinue && !this.hasEnded && !mayAsk) this.#sendContinue();
    return this.#noteSending(goesOn);
  }

  #send(upstream: ForwardedRequest, bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.upstream = upstream;
    this.wantedFacts?.noteForwarding(upstream);
    upstream.start(bytes, start, end, isEnd);
  }

  /** Another request takes the place of the one that there was: all times of the request's route begin anew. @param body given away. */
  #startAgain(upstream: ForwardedRequest, body: Buffer): void {
    const nowMs = this.context.clock.monotonicMs();
    this.codec.deadlines.clearLimits();
    this.responseTrailers = null;
    this.wantedFacts?.noteRequestEnd(this.requestCompleteMs);
    this.requestCompleteMs = nowMs;
    this.#send(upstream, body, 0, body.length, true);
    if (this.hasEnded) return;
    if (!this.replacesDuration) this.#limitDuration(nowMs);
    this.#limitDurations(nowMs);
    this.#armTimeouts(nowMs);
  }

  #sendContinue(): void {
    if (this.isContinueSent) return;
    this.isContinueSent = true;
    this.codec.writeContinue();
  }

  #refusal(head: RequestHead): replies.LocalReply | null {
    if ((head.flags & HeadFlag.EXPECT_OTHER) !== 0) return replies.EXPECTATION_FAILED;
    if (this.manager.overload.refusesRequest()) {
      this.count(downstream_rq_overload_close);
      return replies.OVERLOADED;
    }
    if (head.minorVersion === 0) {
      const { acceptsHttp10, defaultHost } = this.manager.settings.normalization;
      if (!acceptsHttp10) return replies.VERSION_TOO_LOW;
      // Of HTTP/1.1 the codec has refused those without a host.
      if (head.authority() === '') {
        if (defaultHost === '') return replies.HOST_MISSING;
        head.setAuthority(defaultHost);
      }
    }
    const refusal = this.manager.normalization.apply(head, this.downstream) ?? this.#trailersRefusal();
    return refusal ?? this.#editEarly(head) ?? this.#detectOrigin(head);
  }

  /** What is said of a request before anybody reads it is read like what its client has said. */
  #editEarly(head: RequestHead): replies.LocalReply | null {
    const { earlyHeaderEditor } = this.manager;
    if (earlyHeaderEditor === null) return null;
    // Writing takes the fields of a hop away.
    if (this.awaitsTunnel) keepUpgradeFields(head);
    head.keepKnown(HEADER_ID.te);
    // The head becomes one of HTTP/1.1, where Expect means something.
    if (head.minorVersion === 0 && head.has(HEADER_ID.expect)) head.dropKnown(HEADER_ID.expect);
    earlyHeaderEditor.apply(head, this, true);
    const { codec } = this.context;
    const length = codec.writeRequest();
    return length > 0 && codec.reparseRequest(length, NO_LIMITS) > 0 ? null : replies.REWRITE_FAILED;
  }

  #detectOrigin(head: RequestHead): replies.LocalReply | null {
    const { originDetectors } = this.manager;
    if (originDetectors === null) return null;
    const found = originDetectors.detect(head, this.codec.connection.peerAddress);
    if ('status' in found) return found;
    this.#detected = found;
    return null;
  }

  #trailersRefusal(): replies.LocalReply | null {
    const { requestTrailers } = this;
    return requestTrailers === null ? null : this.manager.normalization.applyTrailers(requestTrailers, this.downstream);
  }

  /** The request goes no further. */
  #refuse(refusal: replies.LocalReply): void {
    if (refusal.isReset) {
      this.dropUpstream()?.cancel(true);
      this.breakOff(refusal, ResetReason.malformed);
    } else {
      this.giveUp(refusal);
    }
  }

  #endByLimit({ isCharged, endsBudget }: UpstreamLimit, reply: replies.LocalReply): void {
    const told = this.wantsAltResponse ? replies.altResponse(reply) : reply;
    if (isCharged) this.chargeUpstream(told.status);
    if (endsBudget) this.#recordBudget();
    this.dropUpstream();
    this.giveUp(told);
  }

  #recordBudget(): void {
    const measures = this.upstream?.cluster.measures ?? null;
    if (measures === null) return;
    measures.recordBudget(this.context.clock.monotonicMs() - this.requestCompleteMs, this.timeoutMs);
  }

  #armTimeouts(nowMs: number): void {
    if (this.timeoutMs > 0) this.#limit(ROUTE_LIMIT, nowMs + this.timeoutMs);
  }

  /** Where the route, or the request itself, limits its stream. */
  #limitDurations(fromMs: number): void {
    if (this.routeDurationMs > 0) this.#limit(STREAM_LIMIT, fromMs + this.routeDurationMs);
    if (this.maxStreamDurationMs > 0) this.#limit(DURATION_LIMIT, fromMs + this.maxStreamDurationMs);
  }

  /** Where the connection manager limits streams. */
  #limitDuration(fromMs: number): void {
    const { maxStreamDurationMs } = this.manager.settings;
    if (maxStreamDurationMs > 0) this.#limit(STREAM_LIMIT, fromMs + maxStreamDurationMs);
  }

  #limit(limit: StreamLimit, atMs: number): void {
    if (!this.isResponseComplete) this.codec.deadlines.limitStream(limit, atMs);
  }

  /** Filters give back those that pass. */
  #takeRequestTrailers(): Trailers | null {
    const trailers = this.requestTrailers;
    this.requestTrailers = null;
    return trailers;
  }

  #noteSending(goesOn: boolean): boolean {
    if (goesOn || this.#isRequestPaused || this.isRequestComplete) return goesOn;
    this.#isRequestPaused = true;
    this.count(downstream_flow_control_paused_reading_total);
    return false;
  }
}
