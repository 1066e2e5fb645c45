// Tells whoever has started this process that it serves, or serves again: a line on the descriptor of WEIR_READY_FD, which
// weir-hot-restarter opens for it. Main thread.

import { writeSync } from 'node:fs';

export function sayReady(descriptor: string | undefined): void {
  if (descriptor === undefined || !/^\d{1,4}$/.test(descriptor)) return;
  try {
    writeSync(Number(descriptor), 'ready\n');
  } catch {
    // Nobody listens there.
  }
}
