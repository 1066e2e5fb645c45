// Where formatted lines end up: a standard stream or a file. Main thread only. A line is written before the call
// returns, as long as its destination takes it: lines keep their order among other users of the stream and survive the
// death of the process. What is refused (a reader that stalls, a full disk) waits here and is tried again by the clock;
// beyond a bound lines are dropped, and from the first of them all until what waits has left, so that there is one gap
// that can be told of. Nothing here throws but opening. Worker threads have files of their own for access logs.
//
//   write ──► nothing waits ──► LogOutput
//               └── refused ──► waiting ──clock, reopen, close──► LogOutput
//                                 └── full ──► dropped, counted ──► told once it flows again

import { type Clock, SYSTEM_CLOCK, stopThread } from '../base/clock.ts';
import { errorMessage, WeirError } from '../base/errors.ts';
import { LogOutput, type LogTarget, type WriteError } from './log-output.ts';
import { openFailure } from './log-path.ts';
import { countLines, isReaderBehind, isReaderMissing, lineStart, RetryDelay } from './write-retry.ts';

export interface LogDestinationOptions {
  /** The system's clock when absent. */
  readonly clock?: Clock;
  /** Stands still until a reader that is behind goes on: only for a thread that has nothing else to do. */
  readonly isPatient?: boolean;
  /** Told of lines that are lost, when they are. */
  readonly onDropped?: (lines: number) => void;
  /** Lines have been dropped, and the next one follows the gap. */
  readonly onResumed?: () => void;
}

/** Lines that wait; beyond that they are dropped. */
export const MAX_WAITING_BYTES = 1024 * 1024;
/** How often, and after which time, the end looks whether the reader goes on. */
const FINAL_TRIES = { none: 0, second: 100, endless: Number.POSITIVE_INFINITY } as const;
const FINAL_TRY_MS = 10;

interface Piece {
  readonly bytes: Buffer;
  start: number;
}

export class LogDestination {
  readonly #target: LogTarget;
  readonly #options: LogDestinationOptions;
  readonly #clock: Clock;
  readonly #retry = new RetryDelay();
  /** Null while the target cannot be opened. */
  #output: LogOutput | null = null;
  #waiting: Piece[] = [];
  #waitingBytes = 0;
  #isDropping = false;
  /** Of the last write or opening; null when it went well. */
  #failure: WriteError | null = null;
  #cancelRetry: (() => void) | null = null;
  #isClosed = false;

  private constructor(target: LogTarget, options: LogDestinationOptions) {
    this.#target = target;
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
  }

  /**
   * @param target a file to append to, made when missing, or a standard stream.
   * @throws WeirError WEIR_LOG_FILE when the file cannot be opened; a FIFO that nobody reads yet is waited for.
   */
  static open(target: LogTarget, options: LogDestinationOptions = {}): LogDestination {
    const destination = new LogDestination(target, options);
    try {
      destination.#output = LogOutput.open(target);
    } catch (error) {
      if (!isReaderMissing(error as WriteError, target)) throw destination.#openError(error);
      destination.#failure = error as WriteError;
    }
    return destination;
  }

  /** Of the last write or opening; null when it went well. */
  get failure(): WriteError | null {
    return this.#failure;
  }

  /** @param text whole lines. @returns false when they are lost. */
  write(text: string): boolean {
    if (this.#isClosed) return false;
    const piece = { bytes: Buffer.from(text), start: 0 };
    if (this.#isDropping) return this.#drop(piece);
    if (this.#waiting.length === 0 && this.#output !== null && this.#tryWrite(this.#output, piece)) return true;
    if (this.#options.isPatient === true && this.#writePatiently(piece)) return true;
    if (this.#waitingBytes >= MAX_WAITING_BYTES) return this.#drop(piece);
    this.#waiting.push(piece);
    this.#waitingBytes += piece.bytes.length - piece.start;
    this.#retryLater();
    return true;
  }

  /**
   * Opens the file anew by its name, so that a renamed one can be taken away; nothing to do for a standard stream.
   * What waits goes to the file opened before if that takes it, or else to the new one.
   * @throws WeirError WEIR_LOG_FILE when the name cannot be opened; lines then go on to the file opened before, and wait
   * for the name where that one has failed.
   */
  reopen(): void {
    if (this.#isClosed || typeof this.#target === 'number') return;
    this.#flush();
    let output: LogOutput;
    try {
      output = LogOutput.open(this.#target);
    } catch (error) {
      // A file that cannot be written is of no use, and may be what fills the disk.
      if (this.#waiting.length > 0 && !isReaderBehind(this.#failure)) this.#replaceOutput(null);
      throw this.#openError(error);
    }
    this.#replaceOutput(output);
    this.#flush();
  }

  /**
   * Writes what waits, and closes a file. Idempotent.
   * @param patience with a reader that is behind: none, a second, or without end for output that a person has asked for.
   */
  close(patience: 'none' | 'second' | 'endless' = 'second'): void {
    if (this.#isClosed) return;
    this.#flush();
    for (let tries = 0; isReaderBehind(this.#failure) && tries < FINAL_TRIES[patience]; tries++) {
      stopThread(FINAL_TRY_MS);
      this.#flush();
    }
    this.#isClosed = true;
    this.#cancelRetry?.();
    for (const piece of this.#waiting) this.#drop(piece);
    this.#waiting = [];
    this.#replaceOutput(null);
  }

  // ---- What waits ----

  /** Writes what waits, as far as it goes. */
  #flush(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    try {
      this.#output ??= LogOutput.open(this.#target);
    } catch (error) {
      this.#failure = error as WriteError;
    }
    while (this.#output !== null && this.#waiting.length > 0) {
      const piece = this.#waiting[0]!;
      const { start } = piece;
      const isWritten = this.#tryWrite(this.#output, piece);
      this.#waitingBytes -= piece.start - start;
      if (!isWritten) break;
      this.#waiting.shift();
    }
    if (this.#waiting.length > 0) this.#retryLater();
    else if (this.#isDropping) this.#resume();
  }

  #resume(): void {
    this.#isDropping = false;
    this.#options.onResumed?.();
  }

  #drop({ bytes, start }: Piece): false {
    this.#isDropping = true;
    this.#options.onDropped?.(countLines(bytes, start, bytes.length));
    return false;
  }

  /** @returns true when all of it has been taken; `start` tells how much otherwise. */
  #tryWrite(output: LogOutput, piece: Piece): boolean {
    const { bytes } = piece;
    try {
      while (piece.start < bytes.length) piece.start += output.write(bytes, piece.start, bytes.length - piece.start);
    } catch (error) {
      this.#failure = error as WriteError;
      return false;
    }
    this.#failure = null;
    this.#retry.reset();
    return true;
  }

  /** @returns false where something else is wrong than a reader that is behind. */
  #writePatiently(piece: Piece): boolean {
    while (this.#output !== null && isReaderBehind(this.#failure)) {
      stopThread(FINAL_TRY_MS);
      if (this.#tryWrite(this.#output, piece)) return true;
    }
    return false;
  }

  #retryLater(): void {
    this.#cancelRetry ??= this.#clock.after(this.#retry.next(this.#failure), () => this.#flush());
  }

  // ---- Opening ----

  /** A line of which the old output has a part begins anew in the next one. */
  #replaceOutput(output: LogOutput | null): void {
    this.#output?.close();
    this.#output = output;
    const first = this.#waiting[0];
    if (first === undefined) return;
    const start = lineStart(first.bytes, first.start);
    this.#waitingBytes += first.start - start;
    first.start = start;
  }

  #openError(error: unknown): WeirError {
    return new WeirError('WEIR_LOG_FILE', openFailure(this.#target, errorMessage(error)), { cause: error });
  }
}
