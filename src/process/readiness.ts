// Tells whoever has started this process that it serves, or serves again: a line on the descriptor of WEIR_READY_FD, which
// weir-hot-restarter opens for it. Main thread.

import { writeSync } from 'node:fs';

/** @returns false where somebody listened there who has gone. */
export function sayReady(descriptor: string | undefined): boolean {
  if (descriptor === undefined || !/^\d{1,4}$/.test(descriptor)) return true;
  try {
    writeSync(Number(descriptor), 'ready\n');
    return true;
  } catch (error) {
    // Any other failure says that there has never been anybody.
    return (error as NodeJS.ErrnoException).code !== 'EPIPE';
  }
}
