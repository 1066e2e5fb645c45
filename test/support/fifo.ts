// A FIFO in the file system, as a stalled reader of a log: what is written stays in it until the test reads.

import assert from 'node:assert/strict';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { runProgram } from './child-process.ts';

const READ_BYTES = 1024 * 1024;

export class Fifo {
  readonly path: string;
  readonly #buffer = Buffer.alloc(READ_BYTES);
  #reader: number | undefined;
  readonly #writers: number[] = [];

  private constructor(path: string) {
    this.path = path;
  }

  /** Without a reader. */
  static async make(path: string): Promise<Fifo> {
    const { code, stderr } = await runProgram('mkfifo', [path]);
    assert.equal(code, 0, stderr);
    return new Fifo(path);
  }

  openReader(): void {
    this.#reader = openSync(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
  }

  closeReader(): void {
    if (this.#reader !== undefined) closeSync(this.#reader);
    this.#reader = undefined;
  }

  /** A descriptor for a program to write to, which waits for its reader as that of a shell's pipe does. */
  openWriter(): number {
    const writer = openSync(this.path, 'w');
    this.#writers.push(writer);
    return writer;
  }

  /** What has been written and not read; leaves room for more. */
  read(): string {
    let length = 0;
    try {
      for (;;) {
        const count = readSync(this.#reader!, this.#buffer, length, READ_BYTES - length, null);
        if (count === 0) break;
        length += count;
      }
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN');
    }
    return this.#buffer.toString('utf8', 0, length);
  }

  /** Leaves no room for a byte. */
  fill(): void {
    const writer = openSync(this.path, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      for (const bytes of [this.#buffer, this.#buffer.subarray(0, 1)]) while (writeSync(writer, bytes) > 0);
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN');
    } finally {
      closeSync(writer);
    }
  }

  close(): void {
    this.closeReader();
    for (const writer of this.#writers.splice(0)) closeSync(writer);
  }
}
