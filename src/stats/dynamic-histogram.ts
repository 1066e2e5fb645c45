// A histogram of times that a worker names at run time, as a counter does (dynamic-counter.ts): what is recorded while main
// makes its cell is kept here.

/** The part of WorkerStats that a histogram writes through. */
export interface HistogramView {
  base(block: number): number;
  record(index: number, value: number): void;
}

const ASKING = 0;
const REFUSED = -1;
/** Samples kept while asking; the rest of a burst at the very start goes uncounted. */
const MAX_WAITING = 4096;

export class DynamicHistogram {
  readonly #view: HistogramView;
  /** Index as WorkerStats.record takes it, or one of the states above. */
  #index = ASKING;
  #waiting: number[] = [];

  constructor(view: HistogramView) {
    this.#view = view;
  }

  record(value: number): void {
    if (this.#index > ASKING) this.#view.record(this.#index, value);
    else if (this.#index === ASKING && this.#waiting.length < MAX_WAITING) this.#waiting.push(value);
  }

  /** Main's answer; 0 refuses. A second answer is ignored. */
  resolve(cell: number): void {
    if (this.#index !== ASKING) return;
    this.#index = cell === 0 ? REFUSED : this.#view.base(cell);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const value of waiting) this.record(value);
  }
}
