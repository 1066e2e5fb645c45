// The deadlines of one stream of an HTTP/2 client: limits of its route, the whole request, and a time without anything
// moving; behind its response, until the client has taken that.

import type { HttpConnectionManagerSettings } from '../../../../snapshot/index.ts';
import type { TimerWheel } from '../../../network/timer-wheel.ts';
import type { Overload } from '../../../overload.ts';
import { ROUTE_LIMIT, type StreamLimit } from '../../stream-limits.ts';
import type { StreamDeadlines } from '../downstream-stream.ts';
import { Deadlines, type DeadlinesOwner } from './deadlines.ts';

const LIMIT = 0;
const REQUEST = 1;
const IDLE = 2;
const KINDS = 3;

/** Told of each deadline that has passed, once. */
export interface StreamDeadlineOwner {
  onStreamLimit(limit: StreamLimit): void;
  /** The request has not arrived in full. */
  onRequestDeadline(): void;
  onStreamIdle(): void;
}

export class Http2StreamDeadlines implements StreamDeadlines, DeadlinesOwner {
  flushTimeoutMs: number;
  readonly #owner: StreamDeadlineOwner;
  readonly #overload: Overload;
  readonly #deadlines: Deadlines;
  #limit: StreamLimit = ROUTE_LIMIT;
  /** As it is configured and as it is now; 0 for never. */
  #idleConfiguredMs = 0;
  #idleTimeoutMs = 0;

  constructor(owner: StreamDeadlineOwner, overload: Overload, wheel: TimerWheel, flushTimeoutMs: number) {
    this.flushTimeoutMs = flushTimeoutMs;
    this.#owner = owner;
    this.#overload = overload;
    this.#deadlines = new Deadlines(this, wheel, KINDS);
  }

  start(settings: HttpConnectionManagerSettings, nowMs: number, isRequestDone: boolean): void {
    this.setStreamIdleTimeout(settings.streamIdleTimeoutMs, nowMs);
    if (!isRequestDone) this.#deadlines.set(REQUEST, nowMs, settings.requestTimeoutMs);
  }

  /** Of several limits of a stream the first is the one that counts. */
  limitStream(limit: StreamLimit, atMs: number): void {
    if (atMs >= this.#deadlines.dueMs(LIMIT)) return;
    this.#limit = limit;
    this.#deadlines.setAt(LIMIT, atMs);
  }

  clearLimits(): void {
    this.#deadlines.clear(LIMIT);
  }

  setStreamIdleTimeout(timeoutMs: number, nowMs: number): void {
    this.#setIdle(timeoutMs);
    this.#deadlines.set(IDLE, nowMs, this.#idleTimeoutMs);
  }

  /** Something moved. */
  touch(nowMs: number): void {
    if (this.#deadlines.isSet(IDLE)) this.#deadlines.set(IDLE, nowMs, this.#idleTimeoutMs);
  }

  /** The request has arrived in full. */
  endRequest(): void {
    this.#deadlines.clear(REQUEST);
  }

  /** The stream is over. */
  remove(): void {
    this.#deadlines.remove();
  }

  /** Timeouts may have become shorter or longer, also those that run. */
  rescale(): void {
    if (!this.#deadlines.isSet(IDLE)) return;
    const sinceMs = this.#deadlines.dueMs(IDLE) - this.#idleTimeoutMs;
    this.#setIdle(this.#idleConfiguredMs);
    this.#deadlines.set(IDLE, sinceMs, this.#idleTimeoutMs);
  }

  onDeadline(kind: number): void {
    if (kind === LIMIT) this.#owner.onStreamLimit(this.#limit);
    else if (kind === REQUEST) this.#owner.onRequestDeadline();
    else this.#owner.onStreamIdle();
  }

  #setIdle(configuredMs: number): void {
    this.#idleConfiguredMs = configuredMs;
    this.#idleTimeoutMs = this.#overload.timeoutMs('HTTP_DOWNSTREAM_STREAM_IDLE', configuredMs);
  }
}
