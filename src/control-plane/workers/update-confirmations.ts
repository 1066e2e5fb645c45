// Which workers have yet to confirm which update of clusters. A worker confirms when nothing of it uses what the update
// has removed; a long connection may delay one update, and later ones are confirmed before it. Main thread.

interface Unconfirmed {
  readonly workers: Set<number>;
  readonly onConfirmed: () => void;
}

export class UpdateConfirmations {
  readonly #unconfirmed = new Map<number, Unconfirmed>();
  #generation = 0;

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
    const update = this.#unconfirmed.get(generation);
    if (!update?.workers.delete(worker) || update.workers.size > 0) return;
    this.#unconfirmed.delete(generation);
    update.onConfirmed();
  }

  /** A worker has ended, and uses nothing any more. */
  drop(worker: number): void {
    for (const generation of [...this.#unconfirmed.keys()]) this.confirm(generation, worker);
  }
}
