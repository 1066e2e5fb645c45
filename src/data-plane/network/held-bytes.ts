// Bytes of a connection that cannot be used yet: the start of a head, or requests that came before their turn.
// Grows by doubling, so that a peer that sends single bytes does not cost a copy of everything each time.

const FIRST_CAPACITY = 1024;
const EMPTY = Buffer.alloc(0);

export class HeldBytes {
  #buffer: Buffer | null = null;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** All that is held; borrowed until the next `append` or `take`. */
  peek(): Buffer {
    return this.#buffer?.subarray(0, this.#length) ?? EMPTY;
  }

  /** Copies bytes[start..end) to the end. */
  append(bytes: Buffer, start: number, end: number): void {
    const needed = this.#length + end - start;
    if (this.#buffer === null || this.#buffer.length < needed) this.#grow(needed);
    bytes.copy(this.#buffer!, this.#length, start, end);
    this.#length = needed;
  }

  /** Gives away all that is held. */
  take(): Buffer {
    const bytes = this.peek();
    this.#buffer = null;
    this.#length = 0;
    return bytes;
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, FIRST_CAPACITY, 2 * (this.#buffer?.length ?? 0)));
    this.#buffer?.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}
