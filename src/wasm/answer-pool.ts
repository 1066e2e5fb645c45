// Small arrays for answers. An array of more than 8 doubles gets memory of its own from the system, which takes
// longer than working out 10 quantiles does, so answers are cut from larger pieces, as Node.js does for its
// small Buffers. Who takes an answer owns it: no place is handed out twice.

const PIECE_VALUES = 1024;

export class AnswerPool {
  #piece = new ArrayBuffer(PIECE_VALUES * 8);
  #used = 0;

  /** An array of zeros. */
  take(length: number): Float64Array<ArrayBuffer> {
    if (length > PIECE_VALUES / 8) return new Float64Array(length);
    if (this.#used + length > PIECE_VALUES) {
      this.#piece = new ArrayBuffer(PIECE_VALUES * 8);
      this.#used = 0;
    }
    const answer = new Float64Array(this.#piece, this.#used * 8, length);
    this.#used += length;
    return answer;
  }
}
