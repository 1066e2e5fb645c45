// Pools of one cluster and routing priority that want more connections than they have, first come, first served. They
// get one each in turn, as soon as the limit of connections, which all workers share, has a place for it. A pool whose
// host has all the connections that it may have keeps its place in the line, and holds nobody back.
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
  /** Its host takes no more connections. */
  readonly isHostFull: boolean;
  /** Opens one, if there is a place for it. */
  tryOpenConnection(): boolean;
}

export class WaitingPools implements TimeoutOwner {
  readonly #context: WorkerContext;
  readonly #line = new Set<WaitingPool>();
  readonly #timer = new TimerEntry(this);
  #isWoken = false;

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /**
   * Opens the connections that the pool lacks as soon as there are places; those who wait already come first.
   * @param most that it may open now.
   * @returns false when a limit makes it wait.
   */
  add(pool: WaitingPool, most: number): boolean {
    this.#line.add(pool);
    const hasPlaces = this.#serve(most);
    return !this.#line.has(pool) || (hasPlaces && !pool.isHostFull);
  }

  get isAwaited(): boolean {
    return this.#line.size > 0;
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

  /** @param most of each pool. @returns false when the limit of the cluster is met. */
  #serve(most: number): boolean {
    let hasPlaces = true;
    for (let round = 0; round < most && hasPlaces && this.#line.size > 0; round++) hasPlaces = this.#serveEach();
    const { wheel, clock } = this.#context;
    if (this.#line.size > 0) wheel.arm(this.#timer, clock.monotonicMs() + LOOK_AGAIN_MS);
    return hasPlaces;
  }

  /** One connection for each. @returns false when that limit is met; who comes first keeps its place in the line. */
  #serveEach(): boolean {
    let turns = this.#line.size;
    for (const pool of this.#line) {
      if (turns-- === 0) break;
      if (pool.lacksConnection && !pool.tryOpenConnection()) {
        if (pool.isHostFull) continue;
        return false;
      }
      this.#line.delete(pool);
      if (pool.lacksConnection) this.#line.add(pool);
    }
    return true;
  }
}
