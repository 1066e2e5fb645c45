// How long a proxied TCP connection may be silent: both sides together, and each for itself. Limits begin when the connection says
// what has happened, and are only read by its timer. Worker thread.

import type { Clock } from '../../base/clock.ts';
import { QUIET_MS } from '../network/terminal-filter.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** Milliseconds; 0 for any time. */
export interface SideTimeouts {
  readonly clientIdleTimeoutMs: number;
  readonly upstreamIdleTimeoutMs: number;
}

export class SilenceLimits {
  isShort = false;
  readonly #clock: Clock;
  readonly #timeouts: SideTimeouts;
  /** Of both sides together. */
  #idleTimeoutMs: number;
  #idleEndMs = NEVER;
  /** Whatever the other side does; NEVER for one that has ended, or may be silent. */
  #clientEndMs = NEVER;
  #upstreamEndMs = NEVER;

  /** @param idleTimeoutMs of both sides together; 0 for any time. */
  constructor(clock: Clock, idleTimeoutMs: number, timeouts: SideTimeouts) {
    this.#clock = clock;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#timeouts = timeouts;
  }

  /** Monotonic: when there has been too much of any silence, unless something comes; Infinity for never. */
  get endMs(): number {
    return Math.min(this.#idleEndMs, this.#clientEndMs, this.#upstreamEndMs);
  }

  /** Both sides together have been silent for as long as they may. */
  isIdle(nowMs: number): boolean {
    return nowMs >= this.#idleEndMs;
  }

  /** Something moves, or is waited for anew, and neither side has spoken. */
  noteProgress(): void {
    this.#note(this.#clock.monotonicMs());
  }

  noteClient(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#note(nowMs);
    this.#clientEndMs = endOf(nowMs, this.#timeouts.clientIdleTimeoutMs);
  }

  noteUpstream(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#note(nowMs);
    this.#upstreamEndMs = endOf(nowMs, this.#timeouts.upstreamIdleTimeoutMs);
  }

  clientEnded(): void {
    this.#clientEndMs = NEVER;
  }

  upstreamEnded(): void {
    this.#upstreamEndMs = NEVER;
  }

  /** One side has gone: what the other is sent has a time of its own to be taken. */
  sidesEnded(): void {
    this.clientEnded();
    this.upstreamEnded();
  }

  /** Nobody is to speak for now. */
  pause(): void {
    this.#idleEndMs = NEVER;
  }

  /** The process ends: both sides together may be silent for a moment only, whatever is configured, from the next progress on. */
  shorten(): void {
    this.isShort = true;
    this.#idleTimeoutMs = QUIET_MS;
  }

  #note(nowMs: number): void {
    this.#idleEndMs = endOf(nowMs, this.#idleTimeoutMs);
  }
}

function endOf(nowMs: number, timeoutMs: number): number {
  return timeoutMs > 0 ? nowMs + timeoutMs : NEVER;
}
