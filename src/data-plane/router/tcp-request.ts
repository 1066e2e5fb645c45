// A CONNECT that ends here: what its tunnel carries goes to an upstream as plain TCP. To the stream it looks like a
// request that is answered with 200 once the connection is there. Or a POST, whose body stands for what a tunnel carries, and begins to
// come before the answer. Step 4 of the request flow.
//
//   CONNECTING ──connected: 200──► OPEN ──upstream's last byte, reset, cancel──► DONE
//       └──no host, no connection, overflow, cancel──────────────────────────────►┘

import { type ProxyHeaderSettings, proxyHeader } from '../../base/proxy-header.ts';
import { CLUSTER_STATS, HOST_STATS, ROUTE_STATS } from '../../stats/index.ts';
import { Framing, Method } from '../../wasm/http1.ts';
import type { ClusterPriority } from '../../wasm/shared-records.ts';
import { Dechunker } from '../http/chunk-framing.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { ForwardPlan } from '../route/forward-plan.ts';
import { TcpUpstream, type TcpUpstreamOwner } from '../tcp-proxy/tcp-upstream.ts';
import type { CircuitBreaker } from '../upstream/circuit-breaker.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { HostUser, NoHostReason } from '../upstream/destinations.ts';
import type { Host } from '../upstream/host.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import { countResponse } from '../upstream/response-count.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { AttemptClient } from './attempt-client.ts';
import type { ForwardedRequest } from './forwarded-request.ts';

const {
  upstream_cx_none_healthy,
  upstream_cx_overflow,
  upstream_rq_active,
  upstream_rq_cancelled,
  upstream_rq_pending_active,
  upstream_rq_pending_failure_eject,
  upstream_rq_pending_overflow,
  upstream_rq_pending_total,
  upstream_rq_rx_reset,
  upstream_rq_max_duration_reached,
  upstream_rq_total,
  upstream_rq_tx_reset,
} = CLUSTER_STATS.index;
const { rq_active, rq_error, rq_timeout, rq_total } = HOST_STATS.index;

const CONNECTING = 0;
const OPEN = 1;
const DONE = 2;

const NO_BYTES = Buffer.alloc(0);
/** What the upstream would have said if it spoke HTTP. */
const ESTABLISHED = Buffer.from('HTTP/1.1 200 OK\r\n\r\n');
const LIMITS = { maxHeadBytes: ESTABLISHED.length + 1, maxFields: 1 };

/** The stream, as this request sees it. */
export interface TunnelClient
  extends Pick<AttemptClient, 'methodId' | 'requestFraming' | 'isInternal' | 'tally' | 'overrideHost'> {
  readonly bufferLimitBytes: number;
  readonly downstream: DownstreamConnection | null;
  onUpstreamHost(host: Host, attempts: number): void;
  onUpstreamConnection(connection: ConnectionEnds, head: string): void;
  /** The response head lies in the codec. @returns false when no more should come before `resumeResponse`. */
  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean;
  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;
  onUpstreamWritable(): void;
  /** @param isUnresolved it has a name without an address. */
  onNoHealthyUpstream(isUnresolved: boolean): void;
  onUpstreamFailure(failure: UpstreamFailure, transport: string, wasRetried: boolean): void;
}

export class TcpRequest implements ForwardedRequest, HostUser<Host>, TcpUpstreamOwner, TimeoutOwner {
  cluster: Cluster;
  readonly head: string;
  readonly attempts = 1;
  readonly #context: WorkerContext;
  readonly #client: TunnelClient;
  readonly #priority: ClusterPriority;
  #breaker: CircuitBreaker;
  /** Null for nothing. */
  readonly #header: ProxyHeaderSettings | null;
  readonly #timer: TimerEntry;
  /** What the choice of a host may go by. */
  readonly #pickContext: PickContext | null;
  #state: number = CONNECTING;
  #host: Host | null = null;
  #upstream: TcpUpstream | null = null;
  /** What has come of a body before the connection is there; null for nothing. */
  #early: Buffer[] | null = null;
  #hasEarlyEnd = false;
  /** Of a body in chunks; null for any other. */
  #dechunker: Dechunker | null = null;

  /** @param head for logs; nobody receives it. */
  constructor(
    context: WorkerContext,
    client: TunnelClient,
    cluster: Cluster,
    { priority, connectHeader }: Pick<ForwardPlan, 'priority' | 'connectHeader'>,
    head: string,
    pickContext: PickContext | null,
  ) {
    this.#context = context;
    this.#client = client;
    this.cluster = cluster;
    this.#priority = priority;
    this.#breaker = cluster.breakerFor(priority);
    this.#header = connectHeader;
    this.#timer = new TimerEntry(this);
    this.head = head;
    this.#pickContext = pickContext;
  }

  get host(): Host | null {
    return this.#host;
  }

  get bufferLimitBytes(): number {
    return this.#client.bufferLimitBytes;
  }

  get isSending(): boolean {
    return this.#state === OPEN;
  }

  get canSend(): boolean {
    return this.#state === OPEN;
  }

  get heldBytes(): number {
    const early = this.#early?.reduce((sum, { length }) => sum + length, 0) ?? 0;
    return early + (this.#upstream?.unsentBytes ?? 0);
  }

  /** What a tunnel carries comes by `send`, after the answer. */
  start(bytes: Buffer = NO_BYTES, start = 0, end = 0, isEnd = false): void {
    if (this.#carriesBody) {
      if (this.#client.requestFraming === Framing.CHUNKED) this.#dechunker = new Dechunker();
      this.#keep(bytes, start, end, isEnd);
    }
    const { destinations } = this.cluster;
    const overridden = this.cluster.overriddenHost(this.#client.overrideHost);
    if (overridden !== undefined) {
      if (overridden === null) this.onNoHost('none');
      else this.onHost(overridden);
      return;
    }
    if (destinations !== null) {
      destinations.choose(this.#pickContext, this.#breaker, this);
      return;
    }
    const host = this.cluster.chooseHost(this.#pickContext);
    if (host === null) this.onNoHost('none');
    else this.onHost(host);
  }

  onNoHost(reason: NoHostReason): void {
    this.#state = DONE;
    if (reason === 'overflow') {
      this.#client.onUpstreamFailure('overflow', '', false);
      return;
    }
    this.#count(upstream_cx_none_healthy);
    this.#client.onNoHealthyUpstream(reason === 'dns');
  }

  onHost(host: Host): void {
    this.#host = host;
    // That of an aggregate cluster is another's.
    this.cluster = host.cluster;
    this.#breaker = host.cluster.breakerFor(this.#priority);
    this.#client.onUpstreamHost(host, this.attempts);
    const overflow = this.#acquire();
    if (overflow !== null) {
      this.#state = DONE;
      this.#count(overflow);
      this.#client.onUpstreamFailure('overflow', '', false);
      return;
    }
    const nowMs = this.#context.clock.monotonicMs();
    this.#context.wheel.arm(this.#timer, nowMs + this.cluster.settings.connectTimeoutMs);
    this.#upstream = new TcpUpstream(this.#context, host, this, nowMs, this.#breaker, this.#client.downstream);
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    if (this.#state === CONNECTING && this.#carriesBody) {
      this.#keep(bytes, start, end, isEnd);
      return false;
    }
    if (this.#state !== OPEN) return true;
    if (this.#dechunker === null) return this.#write(bytes, start, end, isEnd);
    const content = Buffer.from(this.#dechunker.decode(bytes, start, end));
    return this.#write(content, 0, content.length, isEnd);
  }

  resumeResponse(): void {
    this.#upstream?.resume();
  }

  cancel(isReset: boolean): void {
    if (this.#state === DONE) return;
    this.#count(this.#state === CONNECTING ? upstream_rq_cancelled : upstream_rq_tx_reset);
    if (isReset) this.#upstream?.reset();
    this.#end();
  }

  timeOut(stat: number): void {
    if (this.#state === DONE) return;
    this.#count(stat);
    if (this.#host !== null) {
      this.#countHost(rq_timeout, 1);
      this.#countHost(rq_error, 1);
      if (stat !== upstream_rq_max_duration_reached) this.#host.outlier?.timedOut();
    }
    this.cancel(true);
  }

  // ---- From the upstream, until it is destroyed or has said that it has closed ----

  /** Of the connection alone. */
  onTimeout(): void {
    this.#upstream!.timeOut();
  }

  onUpstreamConnected(): void {
    this.#leaveQueue();
    this.#state = OPEN;
    this.#context.records.addActiveRequests(this.#host!.record, 1);
    this.#count(upstream_rq_total);
    this.#client.tally?.add(ROUTE_STATS.index.upstream_rq_total);
    this.#count(upstream_rq_active);
    this.#countHost(rq_total, 1);
    this.#countHost(rq_active, 1);
    this.#client.onUpstreamConnection(this.#upstream!, this.head);
    if (this.#header !== null) this.#tellClient(this.#header);
    const { codec, clock } = this.#context;
    codec.parseResponse(ESTABLISHED, 0, ESTABLISHED.length, LIMITS, this.#client.methodId);
    const { status } = codec.response;
    countResponse(this.#context, this.cluster, this.#host!, status, status, this.#client);
    this.#client.onResponseHead(NO_BYTES, 0, 0, false, clock.monotonicMs());
    if (this.#carriesBody && this.#state === OPEN) this.#sendEarly();
  }

  onUpstreamConnectFailed(transportDetail: string, failure: UpstreamFailure): void {
    this.#leaveQueue();
    this.#breaker.releaseRequest();
    this.#state = DONE;
    this.#upstream = null;
    this.#count(upstream_rq_pending_failure_eject);
    this.#countHost(rq_error, 1);
    this.#client.onUpstreamFailure(failure, transportDetail, false);
  }

  onUpstreamBytes(bytes: Buffer, length: number, isSlab: boolean): boolean {
    return this.#client.onResponseBody(bytes, 0, length, false, isSlab, this.#context.clock.monotonicMs());
  }

  onUpstreamEnd(): void {
    this.#end();
    this.#client.onResponseBody(NO_BYTES, 0, 0, true, false, this.#context.clock.monotonicMs());
  }

  onUpstreamDrain(): void {
    this.#client.onUpstreamWritable();
  }

  onUpstreamClosed(): void {
    this.#count(upstream_rq_rx_reset);
    this.#countHost(rq_error, 1);
    this.#host!.outlier?.failed();
    this.#end();
    this.#client.onUpstreamFailure('connection termination', '', false);
  }

  // ---- Inside ----

  /** That of a request, in place of a tunnel. */
  get #carriesBody(): boolean {
    return this.#client.methodId !== Method.CONNECT;
  }

  #keep(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    if (end > start) {
      this.#early ??= [];
      this.#early.push(Buffer.from(bytes.subarray(start, end)));
    }
    this.#hasEarlyEnd = isEnd;
  }

  #sendEarly(): void {
    const bytes = this.#early === null ? NO_BYTES : Buffer.concat(this.#early);
    this.#early = null;
    const isTaken = this.send(bytes, 0, bytes.length, this.#hasEarlyEnd);
    if (isTaken && !this.#hasEarlyEnd) this.#client.onUpstreamWritable();
  }

  #write(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const upstream = this.#upstream!;
    const isTaken = start === end || upstream.write(start === 0 ? bytes : bytes.subarray(start), end - start);
    if (isEnd) upstream.end();
    return isTaken;
  }

  /** Takes the request's places under the circuit breaker. @returns the stat of the limit that is met; null for none. */
  #acquire(): number | null {
    const breaker = this.#breaker;
    if (!breaker.tryAcquirePending()) return upstream_rq_pending_overflow;
    if (!breaker.tryAcquireRequest()) {
      breaker.releasePending();
      return upstream_rq_pending_overflow;
    }
    if (!this.#host!.tryAcquireConnection(breaker)) {
      breaker.releasePending();
      breaker.releaseRequest();
      return upstream_cx_overflow;
    }
    this.#count(upstream_rq_pending_total);
    this.#count(upstream_rq_pending_active);
    return null;
  }

  #tellClient(header: ProxyHeaderSettings): void {
    // What is written is given away.
    const bytes = Buffer.from(proxyHeader(header, this.#client.downstream));
    this.#upstream!.write(bytes, bytes.length);
  }

  #leaveQueue(): void {
    this.#context.wheel.remove(this.#timer);
    this.#breaker.releasePending();
    this.#count(upstream_rq_pending_active, -1);
  }

  #end(): void {
    if (this.#host === null) {
      this.#state = DONE;
      this.cluster.destinations?.cancel(this);
      return;
    }
    if (this.#state === CONNECTING) this.#leaveQueue();
    else this.#leaveActive();
    this.#state = DONE;
    this.#breaker.releaseRequest();
    this.#upstream!.destroy();
    this.#upstream = null;
  }

  #leaveActive(): void {
    this.#context.records.addActiveRequests(this.#host!.record, -1);
    this.#count(upstream_rq_active, -1);
    this.#countHost(rq_active, -1);
  }

  #count(stat: number, change = 1): void {
    this.#context.stats.values[this.cluster.statBase + stat]! += change;
  }

  #countHost(stat: number, change: number): void {
    this.#context.stats.values[this.#host!.statBase + stat]! += change;
  }
}
