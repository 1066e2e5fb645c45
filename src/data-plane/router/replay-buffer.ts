// The body of a request as far as it has come, kept to be sent once more. What is kept is a copy, and what is sent is a
// copy of it: memory that a socket has been given belongs to the kernel (I8).

export class ReplayBuffer {
  readonly #limitBytes: number;
  #pieces: Buffer[] = [];
  #length = 0;

  /** @param limitBytes of what is kept. */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Keeps a copy of bytes[start..end). @returns false when that is too much; nothing can be sent again then. */
  add(bytes: Buffer, start: number, end: number): boolean {
    if (this.#length + end - start > this.#limitBytes) return false;
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
    this.#length += end - start;
    return true;
  }

  /** All of it, in memory that may be given away. */
  copy(): Buffer {
    return Buffer.concat(this.#pieces, this.#length);
  }
}
