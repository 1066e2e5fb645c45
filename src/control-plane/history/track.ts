// The last minutes of one listener or cluster: some series of one point a second, in one array of a fixed size. Main thread.
//
//   points:   series 0 ┃ 0 1 2 … 309 ┃ series 1 ┃ 0 1 2 … 309 ┃ …        tick t stands at t mod 310

/** Five minutes, one point a second. */
export const HISTORY_POINTS = 300;
/** Some more, so that what has been promised stays while it is being read, second by second. */
export const RING_POINTS = HISTORY_POINTS + 10;

export class Track {
  /** Of the first point; none is known before it. */
  readonly firstTick: number;
  readonly #points: Float32Array;
  /** Of counters at the last point, by series. */
  readonly #totals: Float64Array;

  /** @param firstTick of the point that is recorded next. */
  constructor(seriesCount: number, firstTick: number) {
    this.firstTick = firstTick;
    this.#points = new Float32Array(seriesCount * RING_POINTS).fill(Number.NaN);
    this.#totals = new Float64Array(seriesCount).fill(Number.NaN);
  }

  /** Notes a value as it is now. */
  record(tick: number, series: number, value: number): void {
    this.#points[series * RING_POINTS + (tick % RING_POINTS)] = value;
  }

  /** Notes how fast a counter has grown since the last point; NaN for the first, and when it was reset. */
  recordRate(tick: number, series: number, total: number, seconds: number): void {
    const grown = total - this.#totals[series]!;
    this.#totals[series] = total;
    this.record(tick, series, grown >= 0 ? grown / seconds : Number.NaN);
  }

  /** Points of `from` to `to`, both included, of which none is older than the array; NaN where nothing is known. */
  read(series: number, from: number, to: number): Float32Array {
    const points = new Float32Array(Math.max(0, to - from + 1));
    for (let tick = from; tick <= to; tick++) {
      const isKnown = tick >= this.firstTick;
      points[tick - from] = isKnown ? this.#points[series * RING_POINTS + (tick % RING_POINTS)]! : Number.NaN;
    }
    return points;
  }

  /** Whether all that is known of the series is 0. */
  isQuiet(series: number): boolean {
    const start = series * RING_POINTS;
    return !this.#points.subarray(start, start + RING_POINTS).some((value) => value > 0);
  }
}
