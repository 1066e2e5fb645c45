// What each counter stood at when a flush last took its increment. By cell, in pages that are made when a counter of theirs is
// first flushed: eight bytes a counter, and nothing without a sink. Main thread.

const PAGE_BITS = 12;
const PAGE_CELLS = 1 << PAGE_BITS;

export class CounterLatch {
  readonly #counted: (cell: number) => number;
  readonly #pages: (Float64Array | undefined)[] = [];

  /** @param counted total of a cell since it was made, whatever has been reset. */
  constructor(counted: (cell: number) => number) {
    this.#counted = counted;
  }

  /** What has been counted since the last call for the cell. */
  take(cell: number): number {
    const page = this.#pages[cell >>> PAGE_BITS] ?? new Float64Array(PAGE_CELLS);
    this.#pages[cell >>> PAGE_BITS] = page;
    const at = cell & (PAGE_CELLS - 1);
    const counted = this.#counted(cell) + 0;
    const increment = counted - page[at]!;
    page[at] = counted;
    return increment;
  }

  /** What `take` would return. */
  peek(cell: number): number {
    return this.#counted(cell) + 0 - (this.#pages[cell >>> PAGE_BITS]?.[cell & (PAGE_CELLS - 1)] ?? 0);
  }

  /** A part of what the cell will have counted is no increment: it has been told of before. */
  skip(cell: number, count: number): void {
    const page = this.#pages[cell >>> PAGE_BITS] ?? new Float64Array(PAGE_CELLS);
    this.#pages[cell >>> PAGE_BITS] = page;
    page[cell & (PAGE_CELLS - 1)]! += count;
  }

  /** The cells will count something else from 0 on. */
  forget(cell: number, count: number): void {
    for (let at = cell; at < cell + count; at++) {
      const page = this.#pages[at >>> PAGE_BITS];
      if (page !== undefined) page[at & (PAGE_CELLS - 1)] = 0;
    }
  }
}
