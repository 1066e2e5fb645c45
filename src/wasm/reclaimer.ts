// Places in shared memory that nothing new refers to, but that workers may still write: they are freed only
// when every worker has confirmed a snapshot that was published after they were retired. Main only.
//
//   retire(free) ──> waiting ──mark()──> waiting below the mark ──reclaim(mark)──> freed
//
// Who publishes snapshots calls mark() before posting one and reclaim(mark) once all workers have confirmed
// it. Who can tell when one update's places are unused, in whatever order, collects them in a batch of their own.
// Without either, retired places are never reused: a leak, but never a wrong count.

interface Retired {
  readonly generation: number;
  readonly free: () => void;
}

export class Reclaimer {
  /** Places of batches that `collect` has given out. */
  #collected = 0;
  /** In the order of their generation. */
  #waiting: Retired[] = [];
  #generation = 0;

  /** Places that wait to be freed. */
  get waitingCount(): number {
    return this.#waiting.length + this.#collected;
  }

  /** Remembers how to free a place that was just taken out of the next snapshot. */
  retire(free: () => void): void {
    this.#waiting.push({ generation: this.#generation, free });
  }

  /**
   * Runs `retireAll` and keeps what it retires apart, as a batch with a life of its own.
   * @returns what frees exactly these places; calling it again does nothing.
   */
  collect(retireAll: () => void): () => void {
    const others = this.#waiting;
    this.#waiting = [];
    let batch: readonly Retired[] = [];
    try {
      retireAll();
    } finally {
      batch = this.#waiting;
      this.#waiting = others;
      this.#collected += batch.length;
    }
    return () => {
      const ready = batch;
      batch = [];
      this.#collected -= ready.length;
      for (const retired of ready) retired.free();
    };
  }

  /** Draws a line under all that was retired so far. */
  mark(): number {
    return this.#generation++;
  }

  /** Frees all that was retired before `mark` was drawn. */
  reclaim(mark: number): void {
    const remaining = this.#waiting.findIndex((retired) => retired.generation > mark);
    const ready = this.#waiting.splice(0, remaining === -1 ? this.#waiting.length : remaining);
    for (const retired of ready) retired.free();
  }
}
