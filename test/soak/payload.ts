// Bodies that both ends can make and check without having them: noise, stamped with where it belongs, so that bytes of
// another body, or of another place of the same, are told apart.

const PIECE_BYTES = 64 * 1024;
const STAMP_EVERY_BYTES = 4096;
/** Any odd constants: a small generator that both ends run alike. */
const [MULTIPLIER, INCREMENT] = [1_664_525, 1_013_904_223];

const NOISE = Buffer.alloc(PIECE_BYTES);
for (let at = 0, state = 1; at < PIECE_BYTES; at += 4) {
  state = (Math.imul(state, MULTIPLIER) + INCREMENT) >>> 0;
  NOISE.writeUInt32LE(state, at);
}

function piece(seed: number, index: number): Buffer {
  const bytes = Buffer.from(NOISE);
  for (let at = 0; at < PIECE_BYTES; at += STAMP_EVERY_BYTES) {
    bytes.writeUInt32LE(seed, at);
    bytes.writeUInt32LE(index * PIECE_BYTES + at, at + 4);
  }
  return bytes;
}

/** The body of this seed in pieces of 64 KiB, the last one shorter. */
export function* payload(seed: number, length: number): Generator<Buffer> {
  for (let start = 0; start < length; start += PIECE_BYTES) {
    yield piece(seed, start / PIECE_BYTES).subarray(0, length - start);
  }
}

/** Takes a body as it arrives. */
export class PayloadCheck {
  readonly #seed: number;
  readonly #length: number;
  #received = 0;
  #expected: Buffer = Buffer.alloc(0);
  #firstWrong = -1;

  constructor(seed: number, length: number) {
    this.#seed = seed;
    this.#length = length;
  }

  accept(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const within = this.#received % PIECE_BYTES;
      if (within === 0) this.#expected = piece(this.#seed, this.#received / PIECE_BYTES);
      const count = Math.min(PIECE_BYTES - within, chunk.length - at);
      const isEqual = chunk.compare(this.#expected, within, within + count, at, at + count) === 0;
      if (!isEqual && this.#firstWrong === -1) this.#firstWrong = this.#received;
      this.#received += count;
      at += count;
    }
  }

  /** What is wrong with the whole body; empty when nothing is. */
  verdict(): string {
    if (this.#firstWrong !== -1) return `wrong bytes behind byte ${this.#firstWrong} of ${this.#length}`;
    return this.#received === this.#length ? '' : `${this.#received} of ${this.#length} bytes`;
  }
}
