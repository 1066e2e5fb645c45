// A disk that is soon full. A file system of its own where this process may mount one; otherwise the device that is
// always full, which no rotation frees.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const SIZE = '64k';
const ALWAYS_FULL = '/dev/full';

export class SmallDisk {
  readonly #folder: string;
  readonly isMounted: boolean;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder);
    this.isMounted = attempt('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'weir-test', folder]);
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

  unmount(): void {
    if (this.isMounted) attempt('umount', ['-l', this.#folder]);
  }
}

function attempt(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
