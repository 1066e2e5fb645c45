// What the log of the process and access logs do alike about writes that were refused: when to try again, and where a
// line that was cut begins.

import { statSync } from 'node:fs';
import type { LogTarget, WriteError } from './log-output.ts';

/** After a reader that is behind; doubled with each refusal, because one that stands still should cost nothing. */
const FIRST_RETRY_MS = 10;
const LAST_RETRY_MS = 500;
/** After anything else, such as a full disk. */
const FAILURE_RETRY_MS = 1000;
const LINE_FEED = 10;

export class RetryDelay {
  #fullMs = FIRST_RETRY_MS;

  /** Milliseconds until the next try. */
  next(failure: WriteError | null): number {
    if (!isReaderBehind(failure)) return FAILURE_RETRY_MS;
    const delayMs = this.#fullMs;
    this.#fullMs = Math.min(2 * delayMs, LAST_RETRY_MS);
    return delayMs;
  }

  /** A write went well. */
  reset(): void {
    this.#fullMs = FIRST_RETRY_MS;
  }
}

/** The pipe, terminal or socket is full: nothing is wrong yet. */
export function isReaderBehind(failure: WriteError | null): boolean {
  return failure?.code === 'EAGAIN';
}

/** The path is a FIFO that nobody has opened for reading. */
export function isReaderMissing(failure: WriteError, target: LogTarget): boolean {
  return failure.code === 'ENXIO' && typeof target === 'string' && statSync(target).isFIFO();
}

/** Where the line of `bytes` begins that goes on at `position`. */
export function lineStart(bytes: Buffer, position: number): number {
  return position === 0 ? 0 : bytes.lastIndexOf(LINE_FEED, position - 1) + 1;
}

/** Line feeds in a stretch. */
export function countLines(bytes: Buffer, start: number, end: number): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED, start); at !== -1 && at < end; at = bytes.indexOf(LINE_FEED, at + 1)) lines++;
  return lines;
}
