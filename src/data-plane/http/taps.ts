// The tap under way, as this worker knows it, and the way of what it records to main. Worker thread. A port between threads has
// no bound of its own, so main confirms what it has taken: what is recorded beyond that is dropped, and counted.

import type { TapSession, TapTrace, WorkerToMain } from '../../snapshot/index.ts';
import { tapTraceCost } from '../../snapshot/index.ts';

/** Recorded and not yet taken by main. */
const MAX_UNDER_WAY_BYTES = 4 * 1024 * 1024;
/** Kept for exchanges that are under way, all of them together. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024;

export class Taps {
  readonly #post: (message: WorkerToMain) => void;
  #session: TapSession | null = null;
  #bytesUnderWay = 0;
  #bytesKept = 0;
  /** Traces lost that main does not know of. */
  #dropped = 0;
  #exchanges = 0;

  constructor(post: (message: WorkerToMain) => void) {
    this.#post = post;
  }

  /** Begins or, with null, ends. What is under way for another one is recorded no further. */
  replace(session: TapSession | null): void {
    this.#session = session;
    this.#dropped = 0;
  }

  /** Asked with each request of a filter. */
  find(configId: string): TapSession | null {
    return this.#session !== null && this.#session.settings.configId === configId ? this.#session : null;
  }

  isUnderWay(session: TapSession): boolean {
    return this.#session === session;
  }

  /** Another number for each exchange of this worker. */
  nextExchange(): number {
    this.#exchanges += 1;
    return this.#exchanges;
  }

  /** @returns how many of the bytes there is room for; `release` gives them back. */
  keep(bytes: number): number {
    const granted = Math.min(bytes, MAX_KEPT_BYTES - this.#bytesKept);
    this.#bytesKept += granted;
    return granted;
  }

  release(bytes: number): void {
    this.#bytesKept -= bytes;
  }

  send(session: TapSession, trace: TapTrace): void {
    if (!this.isUnderWay(session)) return;
    const cost = tapTraceCost(trace);
    if (this.#bytesUnderWay > 0 && this.#bytesUnderWay + cost > MAX_UNDER_WAY_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#bytesUnderWay += cost;
    this.#post({ type: 'tap-trace', sessionId: session.id, trace, cost, dropped: this.#dropped });
    this.#dropped = 0;
  }

  /** Main has taken, or thrown away, traces of this cost. */
  confirm(cost: number): void {
    this.#bytesUnderWay -= cost;
    if (this.#dropped === 0 || this.#session === null) return;
    this.#post({ type: 'tap-dropped', sessionId: this.#session.id, count: this.#dropped });
    this.#dropped = 0;
  }
}
