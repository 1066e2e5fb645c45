// Where formatted log lines end up: standard error or a file. Main thread only. Every line is written before
// the call returns: lines keep their order among other users of the stream and survive the death of the process.
// Worker threads never wait for it, and access logs have buffered files of their own.

import sonicBoom from 'sonic-boom';
import { errorMessage, WeirError } from '../base/errors.ts';

export interface LogDestination {
  /** @param text whole lines. */
  write(text: string): void;
  /**
   * Opens the file anew by its name, so that a renamed one can be taken away; nothing to do for standard error.
   * @throws WeirError WEIR_LOG_FILE when the name cannot be opened; lines then go on to the file opened before.
   */
  reopen(): void;
  /** Hands what a failed write left over to the system once more: for the end of the process. */
  flushSync(): void;
  /** Flushes and closes a file; standard error stays open. Idempotent. */
  close(): void;
}

/** Lines that wait while the disk refuses them (full, for example); beyond that the newest are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

const STANDARD_ERROR = 2;

/**
 * @param path file to append to, made with its folders when missing; empty for standard error.
 * @param onError told of failed writes, which the log itself cannot report.
 * @throws WeirError WEIR_LOG_FILE when the file cannot be opened.
 */
export function openLogDestination(path: string, onError: (error: Error) => void = () => {}): LogDestination {
  const target = path === '' ? { fd: STANDARD_ERROR } : { dest: path, append: true, mkdir: true };
  const stream = orLogFileError(
    path,
    () => new sonicBoom.SonicBoom({ ...target, sync: true, maxLength: MAX_WAITING_BYTES }),
  );
  stream.on('error', onError);
  return new SonicDestination(path, stream);
}

class SonicDestination implements LogDestination {
  readonly #path: string;
  readonly #stream: sonicBoom.SonicBoom;
  #closed = false;

  constructor(path: string, stream: sonicBoom.SonicBoom) {
    this.#path = path;
    this.#stream = stream;
  }

  write(text: string): void {
    if (!this.#closed) this.#stream.write(text);
  }

  reopen(): void {
    if (this.#closed || this.#path === '') return;
    orLogFileError(this.#path, () => this.#stream.reopen());
  }

  flushSync(): void {
    if (!this.#closed) this.#stream.flushSync();
  }

  close(): void {
    if (this.#closed) return;
    this.flushSync();
    this.#closed = true;
    if (this.#path !== '') this.#stream.end();
  }
}

function orLogFileError<Result>(path: string, open: () => Result): Result {
  try {
    return open();
  } catch (error) {
    throw new WeirError('WEIR_LOG_FILE', `failed to open log file '${path}': ${errorMessage(error)}`, { cause: error });
  }
}
