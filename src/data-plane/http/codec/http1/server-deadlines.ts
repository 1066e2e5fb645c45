// The deadlines of one HTTP/1.1 connection from a client, and of the stream on it, over one entry of the worker's
// wheel. Moving a deadline is a store or two; of those that have passed the first in the order below is told.

import type { HttpConnectionManagerSettings } from '../../../../snapshot/index.ts';
import { type TimeoutOwner, TimerEntry, type TimerWheel } from '../../../network/timer-wheel.ts';
import type { StreamDeadlines } from '../../downstream-codec.ts';
import { ROUTE_LIMIT, type StreamLimit } from '../../stream-limits.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** Told of each deadline that has passed, once. */
export interface DeadlineOwner {
  /** The peer has not closed a connection that was closed from this side. */
  onCloseDeadline(): void;
  onStreamLimit(limit: StreamLimit): void;
  /** The request has not arrived in full. */
  onRequestDeadline(): void;
  onStreamIdle(): void;
  /** A head has begun and not ended. */
  onHeadersDeadline(): void;
  /** No request has come. */
  onIdle(): void;
}

export class ServerDeadlines implements StreamDeadlines, TimeoutOwner {
  readonly #owner: DeadlineOwner;
  readonly #settings: HttpConnectionManagerSettings;
  readonly #wheel: TimerWheel;
  readonly #timer: TimerEntry;
  #closeMs = NEVER;
  #limitMs = NEVER;
  #limit: StreamLimit = ROUTE_LIMIT;
  #requestMs = NEVER;
  #streamIdleMs = NEVER;
  #streamIdleTimeoutMs = 0;
  #headersMs = NEVER;
  #idleMs = NEVER;

  constructor(owner: DeadlineOwner, settings: HttpConnectionManagerSettings, wheel: TimerWheel) {
    this.#owner = owner;
    this.#settings = settings;
    this.#wheel = wheel;
    this.#timer = new TimerEntry(this);
  }

  /** Nothing runs on the connection. */
  awaitRequest(nowMs: number): void {
    this.#idleMs = deadline(nowMs, this.#settings.idleTimeoutMs);
    this.#schedule(this.#idleMs);
  }

  /** The start of a head is there; only the first call of a head counts. */
  awaitHead(nowMs: number): void {
    if (this.#headersMs !== NEVER) return;
    this.#headersMs = deadline(nowMs, this.#settings.requestHeadersTimeoutMs);
    this.#schedule(this.#headersMs);
  }

  /** A head is complete. */
  endHead(): void {
    this.#headersMs = NEVER;
    this.#idleMs = NEVER;
  }

  startStream(nowMs: number, isRequestDone: boolean): void {
    this.setStreamIdleTimeout(this.#settings.streamIdleTimeoutMs, nowMs);
    if (isRequestDone) return;
    this.#requestMs = deadline(nowMs, this.#settings.requestTimeoutMs);
    this.#schedule(this.#requestMs);
  }

  /** Replaces, for the stream at hand, the time after which it counts as idle; 0 for never. */
  setStreamIdleTimeout(timeoutMs: number, nowMs: number): void {
    this.#streamIdleTimeoutMs = timeoutMs;
    this.#streamIdleMs = deadline(nowMs, timeoutMs);
    this.#schedule(this.#streamIdleMs);
  }

  /** Something moved: the stream is not idle. A later deadline needs no new place in the wheel. */
  touchStream(nowMs: number): void {
    if (this.#streamIdleMs !== NEVER) this.#streamIdleMs = deadline(nowMs, this.#streamIdleTimeoutMs);
  }

  /** True while `touchStream` has an effect. */
  get hasStreamIdle(): boolean {
    return this.#streamIdleMs !== NEVER;
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

  /** The connection takes no further request. What runs on it is not concerned. */
  endRequests(): void {
    this.#idleMs = NEVER;
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
    this.endStream();
    this.endHead();
    this.#wheel.remove(this.#timer);
  }

  onTimeout(nowMs: number): void {
    this.#tell(nowMs);
    this.#schedule(
      Math.min(this.#closeMs, this.#limitMs, this.#requestMs, this.#streamIdleMs, this.#headersMs, this.#idleMs),
    );
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
