// Which files this process has open, as the system knows it.

import { readdirSync, readlinkSync } from 'node:fs';

/** @param path without symbolic links. */
export function isOpenFile(path: string): boolean {
  return readdirSync('/proc/self/fd').some((descriptor) => target(descriptor) === path);
}

/** Undefined for the descriptor of the listing itself, which is gone by now. */
function target(descriptor: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return undefined;
  }
}
