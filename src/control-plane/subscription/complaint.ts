// What is wrong with a management server for the time being: said once in the log, however often it is found. Main thread.

import type { Logger } from '../../log/index.ts';

const FILE = 'src/control-plane/subscription/complaint.ts';

export class Complaint {
  readonly #log: Logger;
  #last = '';

  constructor(log: Logger) {
    this.#log = log.ofFile(FILE);
  }

  say(text: string): void {
    if (text === this.#last) this.#log.debug(text);
    else this.#log.warning(text);
    this.#last = text;
  }

  /** What is wrong now; empty for nothing. */
  get text(): string {
    return this.#last;
  }

  /** It is well again. */
  end(): void {
    this.#last = '';
  }
}
