// What Node keeps of large writes. It makes a buffer as large as a write of 16 KiB or more for what OpenSSL makes of it, and keeps that as long
// as the connection lives: one that has once been sent a long answer in pieces of 256 KiB would take that much from then on, idle or
// not. Smaller pieces cost a turn of the event loop each. So connections of a worker may write large pieces as long as what is kept of all of
// them is little; beyond that they write as much as a buffer of 16 KiB takes.

/** Node's own sizes: beyond the first a buffer is made for a write, in steps of a record with what frames it. */
export const SMALL_BUFFER_BYTES = 16 * 1024;
const RECORD_BYTES = SMALL_BUFFER_BYTES + 37;
/** 256 KiB of a body with what frames it. Larger pieces cost as much for each byte. */
const LARGEST_PIECE_BYTES = 17 * SMALL_BUFFER_BYTES - 1;
/** Of all connections of a worker. */
const WORKER_BYTES = 32 * 1024 * 1024;

/** A connection. */
export interface BufferKeeper {
  /** What is kept of it beyond the buffers that all have. */
  readonly keptBytes: number;
  /** It is so much from now on, until the connection has gone, which says so by `release`. */
  charge(keptBytes: number): void;
}

/** How much is kept of all connections together, and how much may be. */
export class KeptBuffers {
  #leftBytes: number;

  constructor(mostBytes = WORKER_BYTES) {
    this.#leftBytes = mostBytes;
  }

  get leftBytes(): number {
    return this.#leftBytes;
  }

  /** How much of so many bytes the connection may write at once. */
  pieceOf(length: number, keeper: BufferKeeper): number {
    if (length < SMALL_BUFFER_BYTES) return length;
    const wanted = Math.min(length, LARGEST_PIECE_BYTES);
    const bytes = bufferBytes(wanted);
    const { keptBytes } = keeper;
    if (bytes <= keptBytes) return wanted;
    if (bytes - keptBytes > this.#leftBytes) return Math.min(wanted, largestPieceIn(keptBytes));
    this.#leftBytes -= bytes - keptBytes;
    keeper.charge(bytes);
    return wanted;
  }

  /** The connection has gone. */
  release(keptBytes: number): void {
    this.#leftBytes += keptBytes;
  }
}

/** @param length of a write that is not small. */
function bufferBytes(length: number): number {
  return (Math.floor(length / SMALL_BUFFER_BYTES) + 1) * RECORD_BYTES;
}

function largestPieceIn(keptBytes: number): number {
  return Math.max(1, keptBytes / RECORD_BYTES) * SMALL_BUFFER_BYTES - 1;
}
