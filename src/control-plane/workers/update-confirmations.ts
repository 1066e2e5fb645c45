// Which workers have yet to confirm which update of clusters. A worker confirms when nothing of it uses what the update
// has removed; a long connection may delay one update, and later ones are confirmed before it. Main thread; what follows from many
// confirmations at once is done in slices.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { TimeSlice } from '../../base/time-slice.ts';

interface Unconfirmed {
  readonly workers: Set<number>;
  readonly onConfirmed: () => void;
}

export class UpdateConfirmations {
  readonly #faults: FaultBoundary;
  readonly #unconfirmed = new Map<number, Unconfirmed>();
  /** Of those that everybody has confirmed, in this order: a worker that was busy confirms thousands in one message. */
  #confirmed: (() => void)[] = [];
  /** Of those. */
  #done = 0;
  #isFollowing = false;
  #generation = 0;

  constructor(faults: FaultBoundary) {
    this.#faults = faults;
  }

  /** Updates that some worker has not confirmed. */
  get size(): number {
    return this.#unconfirmed.size;
  }

  /**
   * Begins to wait for an update that these workers are sent.
   * @param onConfirmed called once, at once when there are no workers.
   * @returns the update's generation.
   */
  begin(workers: Iterable<number>, onConfirmed: () => void): number {
    const generation = ++this.#generation;
    const waitingFor = new Set(workers);
    if (waitingFor.size === 0) onConfirmed();
    else this.#unconfirmed.set(generation, { workers: waitingFor, onConfirmed });
    return generation;
  }

  confirm(generation: number, worker: number): void {
    this.confirmAll([generation], worker);
  }

  confirmAll(generations: Iterable<number>, worker: number): void {
    for (const generation of generations) {
      const update = this.#unconfirmed.get(generation);
      if (!update?.workers.delete(worker) || update.workers.size > 0) continue;
      this.#unconfirmed.delete(generation);
      this.#confirmed.push(update.onConfirmed);
    }
    if (!this.#isFollowing) this.#follow();
  }

  /** A worker has ended, and uses nothing any more. */
  drop(worker: number): void {
    this.confirmAll([...this.#unconfirmed.keys()], worker);
  }

  /** A few at once, and many in slices. */
  #follow(): void {
    this.#isFollowing = true;
    this.#faults.run('what follows from updates that are in force', async () => {
      const slice = new TimeSlice();
      // Others may come on the way.
      for (const onConfirmed of this.#confirmed) {
        this.#faults.run('what follows from an update that is in force', onConfirmed);
        this.#done += 1;
        if (this.#done < this.#confirmed.length && slice.isOverNow()) await slice.rest();
      }
      this.#confirmed = [];
      this.#done = 0;
      this.#isFollowing = false;
    });
  }
}
