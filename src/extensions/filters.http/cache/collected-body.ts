// A body on its way that is to be kept once it is whole. All of a worker and a connection manager have one budget, so that clients
// that stop reading in the middle cannot have more collected than there would be kept.

export class CollectingBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns false when there is no room for so many more bytes. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
  }
}

export class CollectedBody {
  readonly #budget: CollectingBudget;
  readonly #maxBytes: number;
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  /** @param maxBytes of this body alone. */
  constructor(budget: CollectingBudget, maxBytes: number) {
    this.#budget = budget;
    this.#maxBytes = maxBytes;
  }

  /** @param bytes borrowed. @returns false when it has become too large to be kept; `drop` then. */
  add(bytes: Buffer): boolean {
    const { length } = bytes;
    if (length === 0) return true;
    if (this.#bytes + length > this.#maxBytes || !this.#budget.take(length)) return false;
    this.#bytes += length;
    this.#parts.push(Buffer.from(bytes));
    return true;
  }

  /** It is whole: nothing of it is on its way any more. */
  take(): Buffer {
    const body = Buffer.concat(this.#parts);
    this.drop();
    return body;
  }

  /** Idempotent. */
  drop(): void {
    this.#budget.giveBack(this.#bytes);
    this.#bytes = 0;
    this.#parts.length = 0;
  }
}
