// A named pipe for a log whose reader stalls, and reads on when told.

import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';

const CHUNK = Buffer.alloc(64 * 1024);

export class StalledPipe {
  readonly path: string;
  readonly #descriptor: number;

  constructor(path: string) {
    this.path = path;
    execFileSync('mkfifo', [path]);
    this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  }

  /** Reads all that is there. */
  drain(): void {
    whileReady(() => readSync(this.#descriptor, CHUNK));
  }

  /** Leaves no room for a byte. */
  fill(): void {
    const writer = openSync(this.path, constants.O_WRONLY | constants.O_NONBLOCK);
    for (const bytes of [CHUNK, CHUNK.subarray(0, 1)]) whileReady(() => writeSync(writer, bytes));
    closeSync(writer);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** Until it would have to wait, or nothing came of it. */
function whileReady(step: () => number): void {
  try {
    while (step() > 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
  }
}
