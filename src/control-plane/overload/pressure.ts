// How much of a resource is in use, as 0 to 1 and beyond. Main thread.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { errorMessage } from '../../base/errors.ts';
import type { MonitoredResource } from '../../config/index.ts';

/** What the process knows of itself. */
export interface ProcessResources {
  heapBytes(): Promise<number>;
  /** From clients, over all listeners. */
  connections(): number;
}

/** Of the root of the container's groups: version 2, then 1. */
const GROUP_FILES = [
  { used: 'memory.current', limit: 'memory.max' },
  { used: 'memory/memory.usage_in_bytes', limit: 'memory/memory.limit_in_bytes' },
] as const;
const GROUPS_FOLDER = '/sys/fs/cgroup';
const LONGEST_NUMBER = 64;

/** @param groupsFolder where the system shows control groups. @throws when it cannot be found out now. */
export async function pressureOf(
  resource: MonitoredResource,
  process: ProcessResources,
  groupsFolder = GROUPS_FOLDER,
): Promise<number> {
  switch (resource.kind) {
    case 'heap':
      return (await process.heapBytes()) / resource.maxBytes;
    case 'connections':
      return process.connections() / resource.max;
    case 'file':
      return await readShare(resource.path);
    case 'group-memory':
      return await groupPressure(resource.maxBytes, groupsFolder);
  }
}

async function readShare(path: string): Promise<number> {
  const share = await readNumber(path);
  if (share >= 0 && share <= 1) return share;
  throw new Error(`${path} holds ${share}, not a number from 0 to 1`);
}

async function groupPressure(maxBytes: number, folder: string): Promise<number> {
  const failures: string[] = [];
  for (const { used, limit } of GROUP_FILES) {
    try {
      // `max` is no number: then there is no limit.
      const limitBytes = await readNumber(`${folder}/${limit}`, Number.POSITIVE_INFINITY);
      return (await readNumber(`${folder}/${used}`)) / Math.min(limitBytes, maxBytes);
    } catch (error) {
      failures.push(errorMessage(error));
    }
  }
  throw new Error(failures.join('; '));
}

/** @param otherwise for a text that is no number; such a text is a failure without. */
async function readNumber(path: string, otherwise?: number): Promise<number> {
  // Whoever writes into a pipe, or does not, holds nothing up.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LONGEST_NUMBER), 0, LONGEST_NUMBER, 0);
    const text = buffer.toString('latin1', 0, bytesRead).trim();
    const number = text === '' ? Number.NaN : Number(text);
    if (!Number.isNaN(number)) return number;
    if (otherwise !== undefined) return otherwise;
    throw new Error(`${path} holds no number`);
  } finally {
    await file.close();
  }
}
