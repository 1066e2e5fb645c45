// A counter that a worker names at run time. Main makes the cell; the way there is short, and what is
// counted on it is kept here.
//
//   asking ──resolve(cell)──> counting        adds go into the cell
//      └─────resolve(0)─────> refused         main has no such scope any more, or no room: adds go nowhere

/** The part of WorkerStats that a counter writes through. */
export interface CellView {
  readonly values: Float64Array<ArrayBufferLike>;
  base(block: number): number;
}

const ASKING = 0;
const REFUSED = -1;

export class DynamicCounter {
  readonly #view: CellView;
  /** Index in `values`, or one of the states above. */
  #index = ASKING;
  /** Counted while asking. */
  #waiting = 0;

  constructor(view: CellView) {
    this.#view = view;
  }

  add(n = 1): void {
    if (this.#index > ASKING) this.#view.values[this.#index]! += n;
    else if (this.#index === ASKING) this.#waiting += n;
  }

  /** Main's answer; 0 refuses. A second answer is ignored. */
  resolve(cell: number): void {
    if (this.#index !== ASKING) return;
    if (cell === 0) {
      this.#index = REFUSED;
      return;
    }
    this.#index = this.#view.base(cell);
    if (this.#waiting > 0) this.#view.values[this.#index]! += this.#waiting;
    this.#waiting = 0;
  }
}
