// A file of the configuration, read whole. What is none, or is too large, is refused before it costs anything: a pipe that nobody
// writes to would hold up its reader for ever, and with it a process that serves.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

export type FileBytes =
  | { readonly bytes: Buffer; readonly problem?: undefined; readonly error?: undefined }
  /** Completes "the file"; it has been found, and is not what it should be. */
  | { readonly problem: string; readonly bytes?: undefined; readonly error?: undefined }
  /** Of the system. */
  | { readonly error: NodeJS.ErrnoException; readonly bytes?: undefined; readonly problem?: undefined };

/** Opening a pipe does not wait for a writer, nor does reading wait for anything. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const CHUNK_BYTES = 64 * 1024;

/** What it held when it was opened, even if somebody appends to it meanwhile. @param mostBytes of a file that is not too large. */
export function readWholeFile(path: string, mostBytes: number): FileBytes {
  try {
    const descriptor = openSync(path, FLAGS);
    try {
      const stats = fstatSync(descriptor);
      if (stats.isDirectory()) return { problem: 'is a directory, not a file' };
      if (!stats.isFile()) return { problem: 'is not a regular file' };
      if (stats.size > mostBytes) return tooLarge(`${stats.size}`, mostBytes);
      // Those of the kernel say that they are empty, also where they have no end.
      return stats.size > 0 ? { bytes: readTo(descriptor, stats.size) } : readToEnd(descriptor, mostBytes);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    return { error: error as NodeJS.ErrnoException };
  }
}

function readTo(descriptor: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(size);
  let length = 0;
  while (length < size) {
    const count = readSync(descriptor, bytes, length, size - length, null);
    if (count === 0) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

function readToEnd(descriptor: number, mostBytes: number): FileBytes {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const chunk = readTo(descriptor, CHUNK_BYTES);
    if (chunk.length === 0) return { bytes: Buffer.concat(chunks) };
    chunks.push(chunk);
    length += chunk.length;
    if (length > mostBytes) return tooLarge(`${mostBytes} and more`, mostBytes);
  }
}

function tooLarge(size: string, mostBytes: number): FileBytes {
  return { problem: `has ${size} bytes, more than the limit ${mostBytes}` };
}
