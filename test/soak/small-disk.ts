// A disk that is soon full. A file system of its own where this process may mount one; otherwise the device that is
// always full, which no rotation frees.

import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runProgram } from '../support/child-process.ts';

const SIZE = '64k';
const ALWAYS_FULL = '/dev/full';

export class SmallDisk {
  readonly #folder: string;
  readonly isMounted: boolean;

  private constructor(folder: string, isMounted: boolean) {
    this.#folder = folder;
    this.isMounted = isMounted;
  }

  static async make(folder: string): Promise<SmallDisk> {
    mkdirSync(folder);
    const { code } = await runProgram('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'weir-test', folder]);
    return new SmallDisk(folder, code === 0);
  }

  /** A file on it. */
  file(name: string): string {
    return this.isMounted ? path.join(this.#folder, name) : ALWAYS_FULL;
  }

  /** Takes away what is written, as a rotation does: the room is there again when the files are opened anew. */
  free(): void {
    if (!this.isMounted) return;
    for (const name of readdirSync(this.#folder)) rmSync(path.join(this.#folder, name));
  }

  async unmount(): Promise<void> {
    if (this.isMounted) await runProgram('umount', ['-l', this.#folder]);
  }
}
