// Whether blocks of bytes occur in a stream, one behind the other, with anything between them. Keeps no more of the
// stream than the next block is long.

export class PayloadMatch {
  readonly #blocks: readonly Buffer[];
  #next = 0;
  /** The end of what has come, in which a block may have begun. */
  #tail: Buffer = Buffer.alloc(0);

  constructor(blocks: readonly Buffer[]) {
    this.#blocks = blocks;
  }

  get isMatched(): boolean {
    return this.#next === this.#blocks.length;
  }

  /** Takes in what comes next; the bytes are borrowed until return. */
  read(chunk: Buffer): void {
    if (this.isMatched) return;
    let rest: Buffer = Buffer.concat([this.#tail, chunk]);
    while (!this.isMatched) {
      const block = this.#blocks[this.#next]!;
      const at = rest.indexOf(block);
      if (at === -1) {
        const kept = Math.min(rest.length, block.length - 1);
        this.#tail = Buffer.from(rest.subarray(rest.length - kept));
        return;
      }
      rest = rest.subarray(at + block.length);
      this.#next++;
    }
  }
}
