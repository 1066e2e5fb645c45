// Unix sockets leave a file behind when their process is killed, and no later bind succeeds while it is there.

import { lstat, unlink } from 'node:fs/promises';

/** Removes the file at `path` if it is a socket; anything else is left for bind to complain of. */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSocket()) await unlink(path);
}
