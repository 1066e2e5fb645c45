// Pings that find out whether a peer is still there (Http2ProtocolOptions.connection_keepalive): from time to time, and
// before a request on a connection from which nothing has come for long. One that is not answered in time ends it.
//
//   QUIET ──interval over, or a stream after silence: ping──► ASKED ──answer──► QUIET
//                                                              └──timeout──► the owner is told

import type { Http2KeepaliveSettings } from '../../../../snapshot/index.ts';
import { type TimeoutOwner, TimerEntry } from '../../../network/timer-wheel.ts';
import type { WorkerContext } from '../../../worker-context.ts';

export interface KeepaliveOwner {
  sendPing(): void;
  /** The answer has not come in time. */
  onPingTimeout(): void;
}

export class Keepalive implements TimeoutOwner {
  readonly #context: Pick<WorkerContext, 'wheel' | 'random'>;
  readonly #owner: KeepaliveOwner;
  readonly #settings: Http2KeepaliveSettings;
  readonly #timer = new TimerEntry(this);
  #isAsked = false;
  #lastReceivedMs = 0;

  constructor(
    context: Pick<WorkerContext, 'wheel' | 'random'>,
    owner: KeepaliveOwner,
    settings: Http2KeepaliveSettings,
  ) {
    this.#context = context;
    this.#owner = owner;
    this.#settings = settings;
  }

  start(nowMs: number): void {
    this.#lastReceivedMs = nowMs;
    this.#wait(nowMs);
  }

  /** Anything has come. */
  received(nowMs: number): void {
    this.#lastReceivedMs = nowMs;
  }

  /** A stream is about to begin. */
  beforeStream(nowMs: number): void {
    const { idleIntervalMs } = this.#settings;
    if (idleIntervalMs === 0 || this.#isAsked || nowMs - this.#lastReceivedMs < idleIntervalMs) return;
    this.#ask(nowMs);
  }

  onPong(nowMs: number): void {
    this.#isAsked = false;
    this.#wait(nowMs);
  }

  onTimeout(nowMs: number): void {
    if (this.#isAsked) this.#owner.onPingTimeout();
    else this.#ask(nowMs);
  }

  /** The connection is over. */
  remove(): void {
    this.#context.wheel.remove(this.#timer);
  }

  #ask(nowMs: number): void {
    this.#isAsked = true;
    this.#context.wheel.arm(this.#timer, nowMs + this.#settings.timeoutMs);
    this.#owner.sendPing();
  }

  /** An interval, longer by a random part of the jitter, so that connections do not ping together. */
  #wait(nowMs: number): void {
    const { intervalMs, jitterPercent } = this.#settings;
    if (intervalMs === 0) {
      this.#context.wheel.disarm(this.#timer);
      return;
    }
    const jitter = (intervalMs * jitterPercent * this.#context.random.u32()) / 2 ** 32 / 100;
    this.#context.wheel.arm(this.#timer, nowMs + intervalMs + jitter);
  }
}
