// The file of admin.profile_path. Main thread. A profile comes whole or not at all: it is written beside its place and then
// moved there, so that a full disk costs nothing that was there before. A path that is no plain file (a pipe, a terminal) is
// written as it is.

import { constants } from 'node:fs';
import { open, rename, stat, unlink } from 'node:fs/promises';
import { errorMessage, WeirError } from '../../base/errors.ts';

/** A pipe that nobody reads is refused rather than waited for. */
const AS_IT_IS = constants.O_WRONLY | constants.O_NONBLOCK;

/** @throws WeirError WEIR_PROFILE_FILE when nothing could be written there. */
export async function checkProfileFile(path: string): Promise<void> {
  await explained(path, async () => {
    const { place, isPart } = await writtenAt(path);
    const handle = await open(place, isPart ? 'w' : AS_IT_IS);
    await handle.close();
    if (isPart) await unlink(place);
  });
}

/** @throws WeirError WEIR_PROFILE_FILE; what was there before is there still. */
export async function writeProfileFile(path: string, bytes: Uint8Array): Promise<void> {
  await explained(path, async () => {
    const { place, isPart } = await writtenAt(path);
    try {
      const handle = await open(place, isPart ? 'w' : AS_IT_IS);
      try {
        await handle.writeFile(bytes);
      } finally {
        await handle.close();
      }
      if (isPart) await rename(place, path);
    } catch (error) {
      if (isPart) await unlink(place).catch(() => {});
      throw error;
    }
  });
}

async function writtenAt(path: string): Promise<{ readonly place: string; readonly isPart: boolean }> {
  const isPart = await stat(path).then(
    (file) => file.isFile(),
    () => true,
  );
  return { place: isPart ? `${path}.${process.pid}.part` : path, isPart };
}

async function explained(path: string, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    throw new WeirError('WEIR_PROFILE_FILE', `cannot write a profile to ${path}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}
