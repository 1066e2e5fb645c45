// An open place for log lines: a file, FIFO, terminal or socket, opened so that a write never waits for a reader. Either
// thread. Owns its descriptor, but not the standard streams of the process.
//
//   a path                 opened non-blocking; a FIFO that nobody reads cannot be opened yet (ENXIO)
//   standard output, standard error, and the paths that stand for them:
//     a file               as inherited: opened anew it would be written from its start, where the shell does not append
//     a pipe, a terminal   opened anew through /proc, so that non-blocking is our own and not the shell's that shares it
//     a socket             sent to with MSG_DONTWAIT, for the same reason
//     what does not open   (a pipe of another user, a system without /proc) asked by poll before each write
//
// What remains can wait: a file on a network file system that is gone, and on systems other than Linux a pipe or terminal.

import { close, constants, fstat, fstatSync, open, openSync, type Stats, write, writeSync } from 'node:fs';
import { constants as systemConstants } from 'node:os';
import { getSystemErrorMessage, getSystemErrorName } from 'node:util';
import { SystemCalls } from '../base/system-calls.ts';

export const STANDARD_OUTPUT = 1;
export const STANDARD_ERROR = 2;

/** A path, or the descriptor of a standard stream. */
export type LogTarget = string | number;

export type WriteError = NodeJS.ErrnoException;
export type WriteDone = (error: WriteError | null, taken: number) => void;

const STANDARD_STREAMS: Readonly<Record<string, number>> = {
  '/dev/stdout': STANDARD_OUTPUT,
  '/dev/stderr': STANDARD_ERROR,
};

/** Paths that stand for a standard stream are that stream: as paths, a socket could not be opened. */
export function logTarget(path: string): LogTarget {
  return Object.hasOwn(STANDARD_STREAMS, path) ? STANDARD_STREAMS[path]! : path;
}

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;
const ANEW = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY;
const MODE = 0o666;
/** PIPE_BUF on Linux: as much as a pipe takes whole or not at all, unmixed with what others write. */
const WHOLE_BYTES = 4096;

type Way = 'write' | 'send' | 'ask';

export class LogOutput {
  /** Writes to a file reach its end whole, but may wait for the disk. */
  readonly isFile: boolean;
  readonly #descriptor: number;
  readonly #isOwned: boolean;
  readonly #way: Way;
  readonly #calls: SystemCalls | undefined;

  private constructor(target: LogTarget, descriptor: number, stats: Stats) {
    this.isFile = stats.isFile();
    const anew = typeof target === 'number' && !this.isFile ? openAnew(target) : undefined;
    this.#descriptor = anew ?? descriptor;
    this.#isOwned = typeof target === 'string' || anew !== undefined;
    // What is owned is non-blocking, and a file is written as it is.
    const mustNotWait = !this.#isOwned && !this.isFile;
    this.#calls = mustNotWait ? SystemCalls.open() : undefined;
    this.#way = this.#calls === undefined ? 'write' : stats.isSocket() ? 'send' : 'ask';
  }

  /** @throws WriteError when the path cannot be opened, ENXIO when it is a FIFO without a reader. */
  static open(target: LogTarget): LogOutput {
    const descriptor = typeof target === 'number' ? target : openSync(target, ANEW | O_CREAT, MODE);
    return new LogOutput(target, descriptor, fstatSync(descriptor));
  }

  /** As `open`, while the thread goes on. */
  static openLater(target: LogTarget, done: (error: WriteError | null, output?: LogOutput) => void): void {
    const inspect = (descriptor: number): void =>
      fstat(descriptor, (error, stats) => {
        if (error !== null) done(error);
        else done(null, new LogOutput(target, descriptor, stats));
      });
    if (typeof target === 'number') inspect(target);
    else
      open(target, ANEW | O_CREAT, MODE, (error, descriptor) => (error === null ? inspect(descriptor) : done(error)));
  }

  /** Bytes that arrive in one piece, whoever else writes there; more may be taken in part. */
  get wholeBytes(): number {
    return this.isFile ? Number.POSITIVE_INFINITY : WHOLE_BYTES;
  }

  /**
   * @param bytes borrowed until the return.
   * @returns bytes taken, at least one.
   * @throws WriteError EAGAIN when the reader has to catch up first.
   */
  write(bytes: Uint8Array, start: number, length: number): number {
    if (this.#way === 'write') return writeSync(this.#descriptor, bytes, start, length, null);
    // Where others write too, what poll has promised may be gone for more than this.
    const piece = bytes.subarray(start, start + Math.min(length, WHOLE_BYTES));
    if (this.#way === 'send') return sent(this.#calls!.sendNow(this.#descriptor, piece));
    if (!this.#calls!.isWritable(this.#descriptor)) throw systemError(-systemConstants.errno.EAGAIN);
    return writeSync(this.#descriptor, piece);
  }

  /** As `write` to a file, while the thread goes on: `bytes` are borrowed until `done`. */
  writeLater(bytes: Uint8Array, start: number, length: number, done: WriteDone): void {
    write(this.#descriptor, bytes, start, length, null, done);
  }

  /** @param done called when what a deleted file has held is free again; never before the return. */
  close(done: () => void = () => {}): void {
    if (this.#isOwned) close(this.#descriptor, done);
    else process.nextTick(done);
  }
}

/** A second, non-blocking opening of what a standard stream is; undefined when the system does not let us. */
function openAnew(descriptor: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${descriptor}`, ANEW);
  } catch {
    return undefined;
  }
}

/** @param result bytes, or minus an error number. */
function sent(result: number): number {
  if (result < 0) throw systemError(result);
  return result;
}

function systemError(number: number): WriteError {
  const code = getSystemErrorName(number);
  return Object.assign(new Error(`${code}: ${getSystemErrorMessage(number)}, write`), { code, errno: number });
}
