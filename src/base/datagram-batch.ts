// Datagrams side by side in memory, as one system call sends them (SystemCalls.sendMany): a call for each costs more than the
// datagram does. Owns its memory; may be filled again and again.
//
//   headers   struct mmsghdr, 64 bytes each: … iov pointer, iov length 1 …          vectors   struct iovec: pointer, length
//   bytes     datagram | datagram | …

/** The layouts of 64-bit Linux. */
export const MESSAGE_BYTES = 64;
const VECTOR_AT = 16;
const VECTOR_COUNT_AT = 24;
const VECTOR_BYTES = 16;
const LENGTH_AT = 8;

/** A call takes a fraction of a millisecond for so many. */
const MOST_DATAGRAMS = 64;
/** One of them may be as long as a datagram can be. */
const MOST_BYTES = 64 * 1024;

export class DatagramBatch {
  readonly headers = Buffer.alloc(MOST_DATAGRAMS * MESSAGE_BYTES);
  readonly #vectors = Buffer.alloc(MOST_DATAGRAMS * VECTOR_BYTES);
  readonly #bytes = Buffer.alloc(MOST_BYTES);
  readonly #bytesAddress: bigint;
  #count = 0;
  #filled = 0;

  /** @param addressOf where a buffer lies. */
  constructor(addressOf: (buffer: Buffer) => bigint) {
    const vectors = addressOf(this.#vectors);
    for (let at = 0; at < MOST_DATAGRAMS; at++) {
      this.headers.writeBigUInt64LE(vectors + BigInt(at * VECTOR_BYTES), at * MESSAGE_BYTES + VECTOR_AT);
      this.headers.writeBigUInt64LE(1n, at * MESSAGE_BYTES + VECTOR_COUNT_AT);
    }
    this.#bytesAddress = addressOf(this.#bytes);
  }

  get count(): number {
    return this.#count;
  }

  /** @returns false when there is no room for it. */
  add(datagram: string): boolean {
    // No character takes more than three bytes.
    if (this.#count === MOST_DATAGRAMS || this.#filled + 3 * datagram.length > MOST_BYTES) return false;
    const length = this.#bytes.write(datagram, this.#filled);
    const at = this.#count * VECTOR_BYTES;
    this.#vectors.writeBigUInt64LE(this.#bytesAddress + BigInt(this.#filled), at);
    this.#vectors.writeUInt32LE(length, at + LENGTH_AT);
    this.#filled += length;
    this.#count += 1;
    return true;
  }

  clear(): void {
    this.#count = 0;
    this.#filled = 0;
  }
}
