// One of several attempts, with what bounds it: the time for its response's head, the time without progress, and the
// time for all of it. Stands between the attempt and the request that it is made for (RequestTries).
//
//   RUNNING ──response that passes──► ANSWERED ──► over        RUNNING ──turned down, failed, out of time──► over

import type { WireBytes } from '../format/wire-bytes.ts';
import type { UpstreamLimit } from '../http/stream-limits.ts';
import { DURATION_LIMIT, PER_TRY_IDLE_LIMIT, PER_TRY_LIMIT } from '../http/stream-limits.ts';
import type { Trailers } from '../http/trailers.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { RequestTally } from '../route/request-tally.ts';
import type { AttemptTrace } from '../tracing/attempt-trace.ts';
import type { CircuitBreaker } from '../upstream/circuit-breaker.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';
import type { OverrideHost } from '../upstream/override-hosts.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { AttemptClient, RequestClient, Verdict } from './attempt-client.ts';
import type { AttemptEntry } from './attempt-entry.ts';
import type { UpstreamAttempt } from './upstream-attempt.ts';

/** The request, as its tries see it. */
export interface TryOwner {
  readonly client: RequestClient;
  onTryHost(host: Host, attempts: number): void;
  onTryConnection(attempt: TimedTry, connection: ConnectionEnds, head: string): void;
  judge(attempt: TimedTry): Verdict;
  onTryFailure(attempt: TimedTry, failure: UpstreamFailure, transport: string): void;
  onTryWithoutHost(attempt: TimedTry, isUnresolved: boolean): void;
  /** As AttemptClient.onInterimHead. */
  onTryInterimHead(attempt: TimedTry): boolean;
  onTryLimit(attempt: TimedTry, limit: UpstreamLimit): void;
}

export interface TryTimeouts {
  /** 0 for none. */
  readonly perTryTimeoutMs: number;
  readonly perTryIdleTimeoutMs: number;
  readonly maxTryDurationMs: number;
}

/** Why there is a try: as the request's first, at once beside that, or because one before it was not good enough. */
export type TryKind = 'first' | 'companion' | 'retry';

export class TimedTry implements AttemptClient, TimeoutOwner {
  readonly kind: TryKind;
  /** Where it holds a place for retries; null for the first, which needs none. Set before it starts. */
  place: CircuitBreaker | null = null;
  /** A retry was made because this one is slow: there is none for it any more. */
  isHedged = false;
  /** Set once, before it starts. */
  attempt!: UpstreamAttempt;
  readonly #context: WorkerContext;
  readonly #owner: TryOwner;
  readonly #timeouts: TryTimeouts;
  /** Lent; null before the head is waited for. */
  #timer: TimerEntry | null = null;
  #hasHead = false;
  #idleTimer: TimerEntry | null = null;
  #durationTimer: TimerEntry | null = null;
  /** Null before the request has one, and what went out on it. */
  #connection: ConnectionEnds | null = null;
  #head = '';

  constructor(context: WorkerContext, owner: TryOwner, timeouts: TryTimeouts, kind: TryKind) {
    this.#context = context;
    this.#owner = owner;
    this.#timeouts = timeouts;
    this.kind = kind;
  }

  /** Null before the request has one. */
  get connection(): ConnectionEnds | null {
    return this.#connection;
  }

  /** A byte of the request may have reached the upstream. */
  get isConnected(): boolean {
    return this.#connection !== null;
  }

  /** The request has arrived in full, and has a connection: its times run. */
  startTimes(): void {
    const { perTryTimeoutMs } = this.#timeouts;
    if (!this.isConnected) return;
    if (perTryTimeoutMs > 0 && this.#timer === null && !this.#hasHead) {
      this.#timer = this.#context.wheel.lend(this);
      this.#context.wheel.arm(this.#timer, this.#context.clock.monotonicMs() + perTryTimeoutMs);
    }
    if (this.#idleTimer === null) this.#noteProgress();
  }

  /** The head has come in time. */
  endHeadTime(): void {
    this.#hasHead = true;
    if (this.#timer === null) return;
    this.#context.wheel.takeBack(this.#timer);
    this.#timer = null;
  }

  /** Nothing bounds it any more. */
  endTimes(): void {
    this.endHeadTime();
    if (this.#idleTimer !== null) this.#context.wheel.remove(this.#idleTimer);
    if (this.#durationTimer !== null) this.#context.wheel.remove(this.#durationTimer);
  }

  /** Of the time for the head. */
  onTimeout(): void {
    this.#owner.onTryLimit(this, PER_TRY_LIMIT);
  }

  /** Its host and connection are those of the request again, after those of another try. */
  noteAgain(attempts: number): void {
    const { client } = this.#owner;
    client.onUpstreamHost(this.attempt.host!, attempts);
    client.onUpstreamConnection(this.#connection!, this.#head);
  }

  // ---- What the attempt asks ----

  get methodId(): number {
    return this.#owner.client.methodId;
  }

  get isGrpc(): boolean {
    return this.#owner.client.isGrpc;
  }

  get downstream(): DownstreamConnection | null {
    return this.#owner.client.downstream;
  }

  get tally(): RequestTally | null {
    return this.#owner.client.tally;
  }

  get overrideHost(): OverrideHost | null {
    return this.kind === 'first' ? this.#owner.client.overrideHost : null;
  }

  get isInternal(): boolean {
    return this.#owner.client.isInternal;
  }

  get timeoutMs(): number {
    return this.#owner.client.timeoutMs;
  }

  get perTryTimeoutMs(): number {
    return this.#timeouts.perTryTimeoutMs;
  }

  get bufferLimitBytes(): number {
    return this.#owner.client.bufferLimitBytes;
  }

  get awaitsTunnel(): boolean {
    return this.#owner.client.awaitsTunnel;
  }

  get upstreamWire(): WireBytes | null {
    return this.#owner.client.upstreamWire;
  }

  get matchesUpstreamScheme(): boolean {
    return this.#owner.client.matchesUpstreamScheme;
  }

  get awaitsUpgrade(): boolean {
    return this.#owner.client.awaitsUpgrade;
  }

  get isRequestComplete(): boolean {
    return this.#owner.client.isRequestComplete;
  }

  get requestCompleteMs(): number {
    return this.#owner.client.requestCompleteMs;
  }

  get requestFraming(): number {
    return this.#owner.client.requestFraming;
  }

  get requestTrailers(): Trailers | null {
    return this.#owner.client.requestTrailers;
  }

  set responseTrailers(trailers: Trailers | null) {
    this.#owner.client.responseTrailers = trailers;
  }

  // ---- What the attempt tells ----

  onUpstreamHost(host: Host, attempts: number): void {
    this.#owner.onTryHost(host, attempts);
  }

  onUpstreamConnection(connection: ConnectionEnds, head: string): void {
    this.#connection = connection;
    this.#head = head;
    this.#startDuration();
    this.#owner.onTryConnection(this, connection, head);
  }

  traceAttempt(cluster: Cluster, number: number): AttemptTrace | null {
    return this.#owner.client.traceAttempt(cluster, number);
  }

  logAttempt(): AttemptEntry | null {
    return this.#owner.client.logAttempt();
  }

  onUpstreamWritable(): void {
    this.#noteProgress();
    this.#owner.client.onUpstreamWritable();
  }

  onInterimHead(): boolean {
    this.#noteProgress();
    return this.#owner.onTryInterimHead(this);
  }

  judgeResponse(): Verdict {
    return this.#owner.judge(this);
  }

  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    if (isEnd) this.endTimes();
    else this.#noteProgress();
    return this.#owner.client.onResponseHead(bytes, start, end, isEnd, nowMs);
  }

  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean {
    if (isEnd) this.endTimes();
    else this.#noteProgress();
    return this.#owner.client.onResponseBody(bytes, start, end, isEnd, isSlab, nowMs);
  }

  onNoHealthyUpstream(isUnresolved: boolean): void {
    this.#owner.onTryWithoutHost(this, isUnresolved);
  }

  onUpstreamFailure(failure: UpstreamFailure, transport: string): void {
    this.#owner.onTryFailure(this, failure, transport);
  }

  #startDuration(): void {
    const { maxTryDurationMs } = this.#timeouts;
    if (maxTryDurationMs === 0) return;
    this.#durationTimer ??= new TimerEntry({ onTimeout: () => this.#owner.onTryLimit(this, DURATION_LIMIT) });
    this.#context.wheel.arm(this.#durationTimer, this.#context.clock.monotonicMs() + maxTryDurationMs);
  }

  #noteProgress(): void {
    const { perTryIdleTimeoutMs } = this.#timeouts;
    if (perTryIdleTimeoutMs === 0 || !this.isRequestComplete) return;
    this.#idleTimer ??= new TimerEntry({ onTimeout: () => this.#owner.onTryLimit(this, PER_TRY_IDLE_LIMIT) });
    this.#context.wheel.arm(this.#idleTimer, this.#context.clock.monotonicMs() + perTryIdleTimeoutMs);
  }
}
