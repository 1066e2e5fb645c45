// The share of one connection in a gauge of bytes that wait: to be used, or to be sent.

/** Where a worker counts. */
interface Counting {
  readonly stats: { readonly values: { [cell: number]: number } };
}

export class BufferedBytes {
  readonly #context: Counting;
  readonly #cell: number;
  #bytes = 0;

  /** @param cell of the gauge, in this worker's slab. */
  constructor(context: Counting, cell: number) {
    this.#context = context;
    this.#cell = cell;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** So many wait now; none at the end of the connection. */
  note(bytes: number): void {
    if (bytes === this.#bytes) return;
    this.#context.stats.values[this.#cell]! += bytes - this.#bytes;
    this.#bytes = bytes;
  }
}
