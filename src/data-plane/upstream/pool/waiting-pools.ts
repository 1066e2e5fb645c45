// Pools of one cluster and routing priority that want more connections than they have, first come, first served. They
// get one each in turn, as soon as the limit of connections, which all workers share, has a place for it.
//
// Of a place that this worker gives back the line hears at once. Workers never talk to each other: for places that
// others give back it looks again every few milliseconds, as long as somebody waits (docs/decisions/0018).

import { type TimeoutOwner, TimerEntry } from '../../network/timer-wheel.ts';
import type { WorkerContext } from '../../worker-context.ts';

/** New connections of one pool for one cause, be it a request or a place that has become free. */
export const CONNECTS_PER_CALL = 3;
const LOOK_AGAIN_MS = 16;

export interface WaitingPool {
  /** More requests wait than connections are on their way. */
  readonly lacksConnection: boolean;
  /** Opens one; its place under the limit has been acquired. */
  openConnection(): void;
}

export class WaitingPools implements TimeoutOwner {
  readonly #context: WorkerContext;
  readonly #tryAcquire: () => boolean;
  readonly #line = new Set<WaitingPool>();
  readonly #timer = new TimerEntry(this);
  #isWoken = false;

  /** @param tryAcquire takes a place for a connection, if there is one. */
  constructor(context: WorkerContext, tryAcquire: () => boolean) {
    this.#context = context;
    this.#tryAcquire = tryAcquire;
  }

  /**
   * Opens the connections that the pool lacks as soon as there are places; those who wait already come first.
   * @param most that it may open now.
   * @returns false when the limit makes it wait.
   */
  add(pool: WaitingPool, most: number): boolean {
    this.#line.add(pool);
    return this.#serve(most) || !this.#line.has(pool);
  }

  /** Whoever has given the place back may still be at its books: the line moves when that is done. */
  onPlaceFreed(): void {
    if (this.#isWoken || this.#line.size === 0) return;
    this.#isWoken = true;
    queueMicrotask(() => this.#context.faults.run('opening connections', () => this.#wake()));
  }

  /** Time to look again. */
  onTimeout(): void {
    this.#serve(CONNECTS_PER_CALL);
  }

  #wake(): void {
    this.#isWoken = false;
    this.#serve(CONNECTS_PER_CALL);
  }

  /** @param most of each pool. @returns false when the limit is met. */
  #serve(most: number): boolean {
    let hasPlaces = true;
    for (let round = 0; round < most && hasPlaces && this.#line.size > 0; round++) hasPlaces = this.#serveEach();
    const { wheel, clock } = this.#context;
    if (this.#line.size > 0) wheel.arm(this.#timer, clock.monotonicMs() + LOOK_AGAIN_MS);
    return hasPlaces;
  }

  /** One connection for each. @returns false when the limit is met; who comes first keeps its place in the line. */
  #serveEach(): boolean {
    let turns = this.#line.size;
    for (const pool of this.#line) {
      if (turns-- === 0) break;
      if (pool.lacksConnection) {
        if (!this.#tryAcquire()) return false;
        pool.openConnection();
      }
      this.#line.delete(pool);
      if (pool.lacksConnection) this.#line.add(pool);
    }
    return true;
  }
}
