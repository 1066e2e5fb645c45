// The deadlines of one HTTP/1.1 connection from a client, and of the stream on it, over one entry of the worker's
// wheel. Moving a deadline is a store or two; of those that have passed the first in the order below is told.
//
// A request begins with the first byte of its head: from there on the request timeout runs, and the stream idle timeout,
// which only a complete head starts anew. A head that trickles in is no progress.

import type { Clock } from '../../../../base/clock.ts';
import type { HttpConnectionManagerSettings } from '../../../../snapshot/index.ts';
import { type TimeoutOwner, TimerEntry, type TimerWheel } from '../../../network/timer-wheel.ts';
import type { Overload } from '../../../overload.ts';
import { ROUTE_LIMIT, type StreamLimit } from '../../stream-limits.ts';
import type { StreamDeadlines } from '../downstream-stream.ts';

const NEVER = Number.POSITIVE_INFINITY;

interface DeadlineTools {
  readonly wheel: TimerWheel;
  readonly clock: Clock;
}

/** Told of each deadline that has passed, once. */
export interface DeadlineOwner {
  /** The peer has not closed a connection that was closed from this side. */
  onCloseDeadline(): void;
  onStreamLimit(limit: StreamLimit): void;
  /** The request has not arrived in full; perhaps not even its head. */
  onRequestDeadline(): void;
  /** Of a stream, or of a head that has begun and not ended. */
  onStreamIdle(): void;
  /** A head has begun and not ended. */
  onHeadersDeadline(): void;
  /** No request has come. */
  onIdle(): void;
}

export class ServerDeadlines implements StreamDeadlines, TimeoutOwner {
  readonly #owner: DeadlineOwner;
  readonly #settings: HttpConnectionManagerSettings;
  readonly #overload: Overload;
  readonly #wheel: TimerWheel;
  readonly #clock: Clock;
  readonly #timer: TimerEntry;
  flushTimeoutMs: number;
  #closeMs = NEVER;
  #limitMs = NEVER;
  #limit: StreamLimit = ROUTE_LIMIT;
  #requestMs = NEVER;
  #streamIdleMs = NEVER;
  /** Of the stream at hand, as it is configured and as it is now. */
  #streamIdleConfiguredMs = 0;
  #streamIdleTimeoutMs = 0;
  /** When the first byte came of a head that has not ended. */
  #headStartMs = NEVER;
  #headersMs = NEVER;
  #idleMs = NEVER;
  #idleTimeoutMs = 0;

  constructor(
    owner: DeadlineOwner,
    settings: HttpConnectionManagerSettings,
    overload: Overload,
    { wheel, clock }: DeadlineTools,
  ) {
    this.#owner = owner;
    this.#settings = settings;
    this.flushTimeoutMs = settings.streamFlushTimeoutMs;
    this.#overload = overload;
    this.#wheel = wheel;
    this.#clock = clock;
    this.#timer = new TimerEntry(this);
  }

  /** Nothing runs on the connection. */
  awaitRequest(nowMs: number): void {
    this.#idleTimeoutMs = this.#idleTimeout();
    this.#idleMs = deadline(nowMs, this.#idleTimeoutMs);
    this.#schedule(this.#idleMs);
  }

  /** The same, with less patience where it has more than this. */
  expectSoon(nowMs: number, timeoutMs: number): void {
    if (this.#idleMs <= nowMs + timeoutMs) return;
    this.#idleTimeoutMs = timeoutMs;
    this.#idleMs = nowMs + timeoutMs;
    this.#schedule(this.#idleMs);
  }

  /** The start of a head is there; only the first call of a head counts. */
  awaitHead(nowMs: number): void {
    if (this.#headStartMs !== NEVER) return;
    const { requestHeadersTimeoutMs, requestTimeoutMs, streamIdleTimeoutMs } = this.#settings;
    this.#setStreamIdle(streamIdleTimeoutMs);
    this.#headStartMs = nowMs;
    this.#headersMs = deadline(nowMs, requestHeadersTimeoutMs);
    this.#requestMs = deadline(nowMs, requestTimeoutMs);
    this.#streamIdleMs = deadline(nowMs, this.#streamIdleTimeoutMs);
    const firstMs = Math.min(this.#headersMs, this.#requestMs, this.#streamIdleMs);
    // The connection is not idle any more; but where nothing else bounds the wait, its idle timeout goes on to.
    if (firstMs === NEVER) return;
    this.#idleMs = NEVER;
    this.#schedule(firstMs);
  }

  /** A head is complete, or broken. @returns when its first byte came, which is now if it came in one piece. */
  endHead(nowMs: number): number {
    const startMs = this.#headStartMs;
    this.#idleMs = NEVER;
    if (startMs === NEVER) return nowMs;
    this.#headStartMs = NEVER;
    this.#headersMs = NEVER;
    return startMs;
  }

  /** Behind `endHead`. */
  startStream(nowMs: number, isRequestDone: boolean): void {
    this.setStreamIdleTimeout(this.#settings.streamIdleTimeoutMs, nowMs);
    this.flushTimeoutMs = this.#settings.streamFlushTimeoutMs;
    if (isRequestDone) {
      this.#requestMs = NEVER;
    } else if (this.#requestMs === NEVER) {
      this.#requestMs = deadline(nowMs, this.#settings.requestTimeoutMs);
      this.#schedule(this.#requestMs);
    }
  }

  /** Replaces, for the stream at hand, the time after which it counts as idle; 0 for never. */
  setStreamIdleTimeout(timeoutMs: number, nowMs: number): void {
    this.#setStreamIdle(timeoutMs);
    this.#streamIdleMs = deadline(nowMs, this.#streamIdleTimeoutMs);
    this.#schedule(this.#streamIdleMs);
  }

  /** Something moved: the stream is not idle. A later deadline needs no new place in the wheel. */
  touchStream(nowMs: number): void {
    if (this.#streamIdleMs !== NEVER) this.#streamIdleMs = deadline(nowMs, this.#streamIdleTimeoutMs);
  }

  /** The same for whoever has not asked for the time. */
  touchNow(): void {
    if (this.#streamIdleMs !== NEVER) this.touchStream(this.#clock.monotonicMs());
  }

  /** The request has arrived in full. */
  endRequest(): void {
    this.#requestMs = NEVER;
  }

  /** Of several limits of a stream the first is the one that counts. */
  limitStream(limit: StreamLimit, atMs: number): void {
    if (atMs >= this.#limitMs) return;
    this.#limit = limit;
    this.#limitMs = atMs;
    this.#schedule(atMs);
  }

  clearLimits(): void {
    this.#limitMs = NEVER;
  }

  endStream(): void {
    this.#requestMs = NEVER;
    this.#streamIdleMs = NEVER;
  }

  /** The connection takes no further request, and none runs on it. */
  endRequests(): void {
    this.endStream();
    this.#idleMs = NEVER;
    this.#headStartMs = NEVER;
    this.#headersMs = NEVER;
  }

  /** The peer is to close the connection. @param timeoutMs 0 for no limit. */
  awaitClose(nowMs: number, timeoutMs: number): void {
    this.#closeMs = deadline(nowMs, timeoutMs);
    this.#schedule(this.#closeMs);
  }

  /** The connection is over: the wheel no longer keeps it alive. */
  remove(): void {
    this.#closeMs = NEVER;
    this.#limitMs = NEVER;
    this.endRequests();
    this.#wheel.remove(this.#timer);
  }

  /** Timeouts may have become shorter or longer, also those that run. */
  rescale(): void {
    if (this.#idleMs !== NEVER) {
      this.#idleMs -= this.#idleTimeoutMs;
      this.#idleTimeoutMs = this.#idleTimeout();
      this.#idleMs += this.#idleTimeoutMs;
    }
    if (this.#streamIdleMs !== NEVER) {
      this.#streamIdleMs -= this.#streamIdleTimeoutMs;
      this.#setStreamIdle(this.#streamIdleConfiguredMs);
      this.#streamIdleMs += this.#streamIdleTimeoutMs;
    }
    this.#schedule(Math.min(this.#streamIdleMs, this.#idleMs));
  }

  onTimeout(nowMs: number): void {
    this.#tell(nowMs);
    this.#schedule(
      Math.min(this.#closeMs, this.#limitMs, this.#requestMs, this.#streamIdleMs, this.#headersMs, this.#idleMs),
    );
  }

  #idleTimeout(): number {
    return this.#overload.timeoutMs('HTTP_DOWNSTREAM_CONNECTION_IDLE', this.#settings.idleTimeoutMs);
  }

  #setStreamIdle(configuredMs: number): void {
    this.#streamIdleConfiguredMs = configuredMs;
    this.#streamIdleTimeoutMs = this.#overload.timeoutMs('HTTP_DOWNSTREAM_STREAM_IDLE', configuredMs);
  }

  #tell(nowMs: number): void {
    const owner = this.#owner;
    if (this.#closeMs <= nowMs) {
      this.#closeMs = NEVER;
      owner.onCloseDeadline();
    } else if (this.#limitMs <= nowMs) {
      this.#limitMs = NEVER;
      owner.onStreamLimit(this.#limit);
    } else if (this.#requestMs <= nowMs) {
      this.#requestMs = NEVER;
      owner.onRequestDeadline();
    } else if (this.#streamIdleMs <= nowMs) {
      this.#streamIdleMs = NEVER;
      owner.onStreamIdle();
    } else if (this.#headersMs <= nowMs) {
      this.#headersMs = NEVER;
      owner.onHeadersDeadline();
    } else if (this.#idleMs <= nowMs) {
      this.#idleMs = NEVER;
      owner.onIdle();
    }
  }

  /** Sees to it that the timer looks no later than at the deadline. */
  #schedule(deadlineMs: number): void {
    if (deadlineMs < this.#timer.deadlineMs) this.#wheel.arm(this.#timer, deadlineMs);
  }
}

function deadline(nowMs: number, timeoutMs: number): number {
  return timeoutMs > 0 ? nowMs + timeoutMs : NEVER;
}
