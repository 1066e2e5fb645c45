// How much some counters have grown over the last flushes: a ring of their values, one row for each flush and one for the moment
// before them. Main thread.
//
//   oldest ─► [ 3 ][ 5 ][ 5 ][ 9 ] ◄─ newest       grown by 6 over three flushes

export class RollingCounts {
  readonly #rows: Float64Array;
  readonly #series: number;
  readonly #rowCount: number;
  #newest = 0;

  /** @param buckets flushes that the window spans, 1 or more. @param now what the counters are at its beginning. */
  constructor(buckets: number, now: readonly number[]) {
    this.#series = now.length;
    this.#rowCount = buckets + 1;
    this.#rows = new Float64Array(this.#series * this.#rowCount);
    for (let row = 0; row < this.#rowCount; row += 1) this.#rows.set(now, row * this.#series);
  }

  /** The flush of the moment. @param values of the counters, as many as at the beginning. */
  push(values: readonly number[]): void {
    this.#newest = (this.#newest + 1) % this.#rowCount;
    this.#rows.set(values, this.#newest * this.#series);
  }

  /** Growth of one counter over the window; 0 where it was set back. */
  grown(series: number): number {
    const oldest = (this.#newest + 1) % this.#rowCount;
    const growth = this.#rows[this.#newest * this.#series + series]! - this.#rows[oldest * this.#series + series]!;
    return Math.max(growth, 0);
  }
}
