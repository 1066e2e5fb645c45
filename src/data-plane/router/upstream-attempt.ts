// One attempt to have a request answered by an upstream: the host, the wait for a connection, the request's bytes, the
// response's bytes. Step 4 of the request flow. Most requests are one attempt, and their stream is its client.
//
//   WAITING ──host, connection──► SENDING ──response complete, reset, cancel──► DONE
//      └──neither, cancel──────────────────────────────────────────────────────►┘
//
// A pooled connection that its peer closed before any byte of a response is no fault of the request: it is sent
// once more, on another connection, if that can do no harm.

import { CLUSTER_STATS, HOST_STATS, ROUTE_STATS } from '../../stats/index.ts';
import { HEADER_ID, Method, type ResponseHead } from '../../wasm/http1.ts';
import type { ClusterPriority } from '../../wasm/shared-records.ts';
import type { WireBytes } from '../format/wire-bytes.ts';
import type { ResponseReceiver, UpstreamStream } from '../http/codec/upstream-stream.ts';
import { upstreamReset } from '../http/local-reply.ts';
import type { Trailers } from '../http/trailers.ts';
import type { ResponseFlagName } from '../response-flags.ts';
import type { AttemptEdits } from '../route/attempt-edits.ts';
import type { AttemptTrace } from '../tracing/attempt-trace.ts';
import type { AttemptMeter } from '../upstream/attempt-measures.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { HostUser, NoHostReason } from '../upstream/destinations.ts';
import type { Host } from '../upstream/host.ts';
import type { HostSelection } from '../upstream/host-selection.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { ConnectionPool, PoolClient } from '../upstream/pool/connection-pool.ts';
import type { PoolFailure, UpstreamFailure } from '../upstream/pool/failure.ts';
import {
  countGrpcEnd,
  countResponse,
  countStatus,
  grpcHeadStatus,
  recordResponseTime,
} from '../upstream/response-count.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type AttemptClient, Verdict } from './attempt-client.ts';
import type { AttemptEntry } from './attempt-entry.ts';
import type { ForwardedRequest } from './forwarded-request.ts';

const {
  upstream_cx_none_healthy,
  upstream_cx_pool_overflow,
  upstream_rq_retry,
  upstream_rq_retry_success,
  upstream_rq_rx_reset,
  upstream_rq_max_duration_reached,
  upstream_rq_tx_reset,
} = CLUSTER_STATS.index;
const { rq_error, rq_timeout } = HOST_STATS.index;

/** As the log of attempts tells them. */
const NO_HOST_FLAGS: Readonly<Record<NoHostReason, ResponseFlagName>> = { none: 'UH', overflow: 'UO', dns: 'DF' };

const WAITING = 0;
const SENDING = 1;
const DONE = 2;

/** Failures of a stream that the other end has told of. */
const BY_PEER: ReadonlySet<UpstreamFailure> = new Set([
  'connection termination',
  'remote reset',
  'remote refused stream reset',
]);
/**
 * Behind a GOAWAY of a connection that has taken no request at all, as often as this: an upstream that refuses its work is not
 * asked for more of it. Behind others that it has taken, as often as it comes to that: upstreams end connections after so many
 * requests, and those that have waited longest go first to the next one, so that each of them brings the end nearer.
 */
const MAX_FRUITLESS_RESENDS = 4;
const NO_BYTES = Buffer.alloc(0);
const IMMEDIATE_FAIL = HEADER_ID['x-proxy-immediate-health-check-fail'];
/** Doing these twice is doing them once (RFC 9110 section 9.2.2). */
const IDEMPOTENT: ReadonlySet<number> = new Set([
  Method.GET,
  Method.HEAD,
  Method.OPTIONS,
  Method.TRACE,
  Method.PUT,
  Method.DELETE,
]);

export class UpstreamAttempt implements ForwardedRequest, HostUser<Host>, PoolClient, ResponseReceiver {
  /** The one that is asked for a host. */
  readonly #asked: Cluster;
  /** Whose host it is that was chosen last: that of an aggregate cluster is another's. */
  cluster: Cluster;
  readonly #context: WorkerContext;
  readonly #client: AttemptClient;
  /** Kept to be able to send it again. */
  readonly head: string;
  /** What depends on the attempt; null for most routes. */
  readonly #attemptEdits: AttemptEdits | null;
  /** What the choice of a host may go by. */
  readonly #pickContext: PickContext | null;
  readonly #priority: ClusterPriority;
  /** Null for the first attempt, and where every host will do. */
  readonly #selection: HostSelection | null;
  /** Attempts that went before this one. */
  readonly #before: number;
  /** Streams that are refused are somebody else's to try again, who counts how often. */
  readonly #leavesRefused: boolean;
  #state: number = WAITING;
  #host: Host | null = null;
  /** Where it asked for a connection. */
  #pool: ConnectionPool | null = null;
  #stream: UpstreamStream | null = null;
  /** Body bytes that came before the connection; owned, nobody else writes to them. */
  #early: Buffer = NO_BYTES;
  #earlyStart = 0;
  #earlyEnd = 0;
  #isRequestDone = false;
  #isKnownSlow = false;
  #hasSentBody = false;
  /** How often it has gone out again by itself. */
  #resends = 0;
  /** Of these, those that no other request has gained by. */
  #fruitlessResends = 0;
  #isBackedUp = false;
  /** What came of a gRPC request stands behind the response's body. */
  #awaitsGrpcStatus = false;
  /** The response counts as one of a canary. */
  #isCanary = false;
  /** Null where attempts have no spans of their own. */
  #trace: AttemptTrace | null = null;
  /** Null where attempts are not logged. */
  #entry: AttemptEntry | null = null;
  /** Null: nobody wants to know. */
  readonly #meter: AttemptMeter | null;

  constructor(
    context: WorkerContext,
    client: AttemptClient,
    cluster: Cluster,
    priority: ClusterPriority,
    head: string,
    attemptEdits: AttemptEdits | null,
    pickContext: PickContext | null,
    selection: HostSelection | null = null,
    before = 0,
    leavesRefused = false,
  ) {
    this.#context = context;
    this.#client = client;
    this.#asked = cluster;
    this.cluster = cluster;
    this.#priority = priority;
    this.head = head;
    this.#attemptEdits = attemptEdits;
    this.#pickContext = pickContext;
    this.#selection = selection;
    this.#before = before;
    this.#leavesRefused = leavesRefused;
    this.#meter = cluster.measures === null ? null : cluster.measures.begin();
  }

  get bufferLimitBytes(): number {
    return this.#client.bufferLimitBytes;
  }

  get awaitsUpgrade(): boolean {
    return this.#client.awaitsUpgrade;
  }

  get upstreamWire(): WireBytes | null {
    return this.#entry === null ? this.#client.upstreamWire : this.#entry.wire;
  }

  get matchesUpstreamScheme(): boolean {
    return this.#client.matchesUpstreamScheme;
  }

  get requestFraming(): number {
    return this.#client.requestFraming;
  }

  get requestTrailers(): Trailers | null {
    return this.#client.requestTrailers;
  }

  get attempts(): number {
    return this.#before + 1 + this.#resends;
  }

  get host(): Host | null {
    return this.#host;
  }

  get heldBytes(): number {
    return this.#earlyEnd - this.#earlyStart + (this.#stream?.unsentBytes ?? 0);
  }

  start(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.#early = bytes;
    this.#earlyStart = start;
    this.#earlyEnd = end;
    this.#isRequestDone = isEnd;
    this.#trace = this.#client.traceAttempt(this.cluster, this.attempts);
    this.#entry = this.#client.logAttempt();
    this.#attempt();
  }

  get isSending(): boolean {
    return this.#state === SENDING;
  }

  get canSend(): boolean {
    return this.#state === SENDING && !this.#isBackedUp;
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    if (this.#state === DONE) return true;
    this.#isRequestDone = isEnd;
    if (this.#state === WAITING) {
      this.#early = Buffer.concat([this.#early.subarray(this.#earlyStart, this.#earlyEnd), bytes.subarray(start, end)]);
      this.#earlyStart = 0;
      this.#earlyEnd = this.#early.length;
      return false;
    }
    this.#hasSentBody ||= end > start;
    if (this.#meter !== null) this.#meter.requestBodyBytes += end - start;
    this.#entry?.sent(end - start, isEnd);
    return this.#noteSent(this.#stream!.send(bytes, start, end, isEnd));
  }

  cancel(isReset: boolean): void {
    this.#abort(isReset);
  }

  timeOut(stat: number): void {
    // The places of a host that has left belong to others by then.
    if (this.#state === DONE) return;
    this.#count(stat);
    this.#trace?.finish('timeout');
    this.#entry?.failed('UT', 'response_timeout');
    if (this.#host !== null) {
      this.#countHost(rq_timeout);
      this.#countHost(rq_error);
    }
    if (stat !== upstream_rq_max_duration_reached) this.noteSlowness();
    this.#abort(true);
  }

  /** It has taken too long, whether or not it goes on. Its host hears of that once. */
  noteSlowness(): void {
    if (this.#state === DONE || this.#isKnownSlow || this.#host === null) return;
    this.#isKnownSlow = true;
    this.#host.outlier?.timedOut();
  }

  resumeResponse(): void {
    this.#stream?.resume();
  }

  // ---- From the cluster ----

  onHost(host: Host): void {
    this.#host = host;
    this.cluster = host.cluster;
    this.#state = WAITING;
    this.#client.onUpstreamHost(host, this.attempts);
    this.#entry?.host(host, this.attempts);
    const { downstream } = this.#client;
    const { requestServerName } = this.cluster;
    if (requestServerName === null) {
      this.#asked.forecast?.openAhead(this.#priority, downstream);
      this.#pool = host.poolFor(this.#priority, downstream);
    } else this.#pool = host.poolNamed(this.#priority, downstream, requestServerName.of(this.#headFor(host)));
    if (this.#pool === null) {
      this.#count(upstream_cx_pool_overflow);
      this.onPoolFailure('no pool', '');
    } else this.#pool.newStream(this, this.#resends > 0);
  }

  onNoHost(reason: NoHostReason): void {
    this.#trace?.finish(reason === 'overflow' ? reason : 'no healthy upstream');
    this.#entry?.failed(NO_HOST_FLAGS[reason], 'no_healthy_upstream');
    this.#host = null;
    this.#end();
    if (reason === 'overflow') {
      this.#client.onUpstreamFailure('overflow', '', this.#resends > 0);
      return;
    }
    this.#count(upstream_cx_none_healthy);
    this.#client.onNoHealthyUpstream(reason === 'dns');
  }

  // ---- From the pool ----

  onStream(stream: UpstreamStream): void {
    this.#state = SENDING;
    this.#stream = stream;
    const { methodId } = this.#client;
    this.#host!.outlier?.connected();
    this.#client.tally?.add(ROUTE_STATS.index.upstream_rq_total);
    this.#hasSentBody = this.#earlyEnd > this.#earlyStart;
    const head = this.#headFor(this.#host!);
    if (this.#trace !== null) noteConnection(this.#trace, stream);
    this.#meter?.sendHead(head, this.#earlyEnd - this.#earlyStart);
    this.#entry?.connected(stream, head, this.#earlyEnd - this.#earlyStart, this.#isRequestDone);
    this.#client.onUpstreamConnection(stream, head);
    const isSent = stream.start(
      this,
      methodId,
      head,
      this.#early,
      this.#earlyStart,
      this.#earlyEnd,
      this.#isRequestDone,
    );
    this.#early = NO_BYTES;
    this.#earlyStart = 0;
    this.#earlyEnd = 0;
    if (this.#noteSent(isSent) && !this.#isRequestDone) this.#client.onUpstreamWritable();
  }

  onPoolFailure(failure: PoolFailure, transportDetail: string): void {
    this.#trace?.finish(failure);
    this.#noteFailureInLog(failure === 'no pool' ? 'overflow' : failure, transportDetail);
    this.#end();
    if (failure === 'no pool') {
      this.#client.onNoHealthyUpstream(false);
      return;
    }
    if (failure !== 'overflow') this.#noteFailure();
    this.#client.onUpstreamFailure(failure, transportDetail, this.#resends > 0);
  }

  // ---- From the stream to the upstream ----

  onInterimHead(): void {
    const { status } = this.#context.codec.response;
    if (!this.#client.onInterimHead()) return;
    countStatus(this.#context, this.cluster, this.#host!, status, this.#client, false);
  }

  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, _isSlab: boolean, nowMs: number): boolean {
    const { response } = this.#context.codec;
    const { status } = response;
    if (this.#trace !== null) this.#trace.status = status;
    if (this.#meter !== null) {
      this.#meter.receiveHead(response);
      this.#meter.responseBodyBytes = end - start;
    }
    this.#entry?.answered(response, end - start, nowMs);
    if (this.cluster.isHealthChecked && response.has(IMMEDIATE_FAIL)) this.#host!.reportFailure();
    const verdict = this.#client.judgeResponse();
    if (verdict !== Verdict.pass) {
      this.#turnDown(response, verdict, isEnd);
      return true;
    }
    if (this.#resends > 0) {
      this.#count(upstream_rq_retry_success);
      this.#client.tally?.add(ROUTE_STATS.index.upstream_rq_retry_success);
    }
    const judged = this.#client.isGrpc ? this.#judgeGrpc(response) : status;
    this.#isCanary = countResponse(this.#context, this.cluster, this.#host!, status, judged, this.#client);
    if (isEnd) this.#complete(nowMs);
    return this.#client.onResponseHead(bytes, start, end, isEnd, nowMs);
  }

  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean {
    if (this.#meter !== null) this.#meter.responseBodyBytes += end - start;
    this.#entry?.received(end - start);
    if (isEnd) this.#complete(nowMs);
    return this.#client.onResponseBody(bytes, start, end, isEnd, isSlab, nowMs);
  }

  onResponseTrailers(trailers: Trailers): void {
    this.#client.responseTrailers = trailers;
    this.#entry?.trailers(trailers);
  }

  onUpstreamReset(failure: UpstreamFailure, detail: string): void {
    const stream = this.#stream!;
    this.#stream = null;
    if (this.#mayRetry(stream, failure)) {
      this.#resends += 1;
      if (!stream.wereOthersTaken) this.#fruitlessResends += 1;
      this.#count(upstream_rq_retry);
      this.#client.tally?.add(ROUTE_STATS.index.upstream_rq_retry);
      this.#attempt();
      return;
    }
    this.#trace?.finish(failure);
    this.#noteFailureInLog(failure, detail);
    this.#end();
    this.#count(BY_PEER.has(failure) ? upstream_rq_rx_reset : upstream_rq_tx_reset);
    this.#noteFailure();
    this.#client.onUpstreamFailure(failure, detail, this.#resends > 0);
  }

  onUpstreamDrain(): void {
    if (!this.#isBackedUp) return;
    this.#isBackedUp = false;
    this.#client.onUpstreamWritable();
  }

  // ---- Inside ----

  #attempt(): void {
    this.cluster = this.#asked;
    const { destinations } = this.cluster;
    const overridden = this.cluster.overriddenHost(this.#client.overrideHost);
    if (overridden !== undefined) {
      if (overridden === null) this.onNoHost('none');
      else this.onHost(overridden);
      return;
    }
    if (destinations !== null) {
      this.#state = WAITING;
      this.#host = null;
      destinations.choose(this.#pickContext, this.cluster.breakerFor(this.#priority), this);
      return;
    }
    const host = this.cluster.chooseHost(this.#pickContext, this.#selection);
    if (host === null) this.onNoHost('none');
    else this.onHost(host);
  }

  /** As it is sent to a host. */
  #headFor({ hostname }: Host): string {
    const head = this.#trace === null ? this.head : this.#trace.carry(this.head);
    if (this.#attemptEdits === null) return head;
    // A CONNECT names the end of its tunnel, which is not the host that it is sent to.
    const own = this.#client.methodId === Method.CONNECT ? '' : hostname;
    return this.#attemptEdits.apply(head, own, this.attempts);
  }

  /** Nobody gets the response; what is left of it ends with its connection. */
  #turnDown(head: ResponseHead, verdict: Verdict, isEnd: boolean): void {
    const { status } = head;
    if (verdict !== Verdict.followed) this.#countHost(rq_error);
    this.#host!.outlier?.answered(this.#client.isGrpc ? (grpcHeadStatus(head) ?? status) : status);
    if (verdict === Verdict.retried) this.cluster.responseCodes.retry.count(status);
    this.#trace?.finish('');
    if (isEnd) this.#end();
    else this.#abort(false);
  }

  #mayRetry(stream: UpstreamStream, failure: UpstreamFailure): boolean {
    const { isReused, hasResponseBytes, wasLeftBehind, wereOthersTaken } = stream;
    const isWhole = this.#isRequestDone || this.#client.awaitsTunnel;
    if (hasResponseBytes || this.#hasSentBody || !isWhole) return false;
    if (!wereOthersTaken && this.#fruitlessResends >= (wasLeftBehind ? MAX_FRUITLESS_RESENDS : 1)) return false;
    // The upstream has not begun with it (RFC 9113 section 8.7).
    if (failure === 'remote refused stream reset') return wasLeftBehind || !this.#leavesRefused;
    return failure === 'connection termination' && isReused && IDEMPOTENT.has(this.#client.methodId);
  }

  #abort(isReset: boolean): void {
    if (this.#state === WAITING) {
      this.#trace?.finish('canceled');
      this.#end();
      if (this.#host === null) this.cluster.destinations?.cancel(this);
      else this.#pool!.cancel(this);
    } else if (this.#state === SENDING) {
      const stream = this.#stream!;
      this.#trace?.finish('canceled');
      this.#end();
      this.#count(upstream_rq_tx_reset);
      stream.abort(isReset);
    }
  }

  /** @returns null while it is open how the request has ended. */
  #judgeGrpc(head: ResponseHead): number | null {
    const judged = grpcHeadStatus(head);
    if (judged !== undefined || head.status >= 500) return judged ?? head.status;
    this.#awaitsGrpcStatus = true;
    return null;
  }

  /** The response is complete. Its time counts from the request's end, as far as there has been one. */
  #complete(nowMs: number): void {
    const { isRequestComplete, requestCompleteMs, timeoutMs } = this.#client;
    if (this.#awaitsGrpcStatus) countGrpcEnd(this.#context, this.#host!, this.#client.responseTrailers);
    if (isRequestComplete) {
      const elapsedMs = nowMs - requestCompleteMs;
      recordResponseTime(this.#context, this.cluster, this.#host!, elapsedMs, this.#client, this.#isCanary);
      this.cluster.measures?.recordBudget(elapsedMs, timeoutMs);
    }
    this.#end();
  }

  #end(): void {
    this.#state = DONE;
    this.#stream = null;
    this.#meter?.end(this.#client.perTryTimeoutMs);
    this.#trace?.finish('');
    this.#entry?.finish();
  }

  #noteFailureInLog(failure: UpstreamFailure, transport: string): void {
    if (this.#entry === null) return;
    const { flag, details } = upstreamReset(failure, transport, false);
    this.#entry.failed(flag as ResponseFlagName, details, transport);
  }

  #noteSent(isSent: boolean): boolean {
    if (!isSent) this.#isBackedUp = true;
    return isSent;
  }

  /** There was no connection, or it ended under the request. */
  #noteFailure(): void {
    this.#countHost(rq_error);
    this.#host!.outlier?.failed();
  }

  #count(stat: number): void {
    this.#context.stats.values[this.cluster.statBase + stat]! += 1;
  }

  #countHost(stat: number): void {
    this.#context.stats.values[this.#host!.statBase + stat]! += 1;
  }
}

/** Which end of which connection the request goes out to. */
function noteConnection(trace: AttemptTrace, { remoteAddress, protocol = '' }: ConnectionEnds): void {
  trace.remote = remoteAddress.kind === 'pipe' ? { ip: remoteAddress.path, port: 0 } : remoteAddress;
  trace.protocol = protocol;
}
