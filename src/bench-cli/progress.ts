// One line that says how far the run is, rewritten in place. Only on a terminal: a log gets nothing of it.

import type { OutputStream } from './run.ts';

const CLEAR_LINE = '\r\x1b[K';

export class Progress {
  readonly #stream: OutputStream;
  readonly #total: number;
  #done = 0;

  constructor(stream: OutputStream, total: number) {
    this.#stream = stream;
    this.#total = total;
  }

  /** Shows what is being worked on now. */
  next(what: string): void {
    this.#done += 1;
    if (this.#stream.isTTY) this.#stream.write(`${CLEAR_LINE}[${this.#done}/${this.#total}] ${what}`);
  }

  clear(): void {
    if (this.#stream.isTTY) this.#stream.write(CLEAR_LINE);
  }
}
