// One access log file as one worker writes it. Entries gather in a buffer; a full buffer, or the flush interval,
// sends it to the file, one write at a time. Nothing here ever stops a request: what cannot be written waits within a
// bound and is then dropped, and both are counted. Nor does it stop other files: none waits for a reader, and a file is
// written outside of this thread.
//
//   write ──► buffer ──full, time, close──► queue ──► LogOutput ──► file
//                                             └──► reopen: the entries before it go to the file opened before, if it
//                                                  takes them; if not, the reopening comes first, and they follow
//
//   idle ──work──► busy ──done──► idle        busy: a write, an opening or the closing of the former file is under way
//                    └──refused──► waiting ──time, reopen, close──► idle
//
// Workers share a file without talking: each write is whole entries, and the kernel appends each at one go. A pipe
// only promises that for small pieces, so there a buffer leaves in pieces that end with an entry.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import {
  countLines,
  isReaderBehind,
  type Logger,
  LogOutput,
  type LogTarget,
  lineStart,
  RetryDelay,
  type WriteError,
} from '../../log/index.ts';
import { FILESYSTEM_STATS, type WorkerStats } from '../../stats/index.ts';

const { flushed_by_timer, reopen_failed, write_buffered, write_completed, write_failed, write_total_buffered } =
  FILESYSTEM_STATS.index;

/** Entries that together are longer are written in several goes. */
export const BUFFER_BYTES = 64 * 1024;
/** Entries that wait while the disk or the reader refuses them; beyond this new ones are dropped. */
export const MAX_WAITING_BYTES = 1024 * 1024;
/** At the end: for all that waits, whatever the system does. */
export const FINAL_FLUSH_MS = 1000;
/** At the end: before a reader that is behind is tried again. */
const FINAL_RETRY_MS = 10;
const LINE_FEED = 10;

export interface LogFileOptions {
  readonly stats: WorkerStats;
  /** First cell of FILESYSTEM_STATS in this worker's slab. */
  readonly statBase: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly flushIntervalMs: number;
}

/** A stretch of whole entries on its way to the file. */
interface Piece {
  readonly bytes: Buffer;
  start: number;
  readonly end: number;
  /** Of which something is left to write. */
  entries: number;
}

const REOPEN = 'reopen';

export class LogFile {
  readonly #options: LogFileOptions;
  readonly #target: LogTarget;
  readonly #name: string;
  /** Null while the target cannot be opened. */
  #output: LogOutput | null = null;
  #buffer: Buffer | null = null;
  #length = 0;
  #entries = 0;
  readonly #queue: (Piece | typeof REOPEN)[] = [];
  #waitingBytes = 0;
  #state: 'idle' | 'busy' | 'waiting' | 'closed' = 'idle';
  readonly #retry = new RetryDelay();
  #cancelRetry: (() => void) | null = null;
  /** Of the last write or opening; null when it went well. */
  #failure: WriteError | null = null;
  /** Entries have been dropped since the queue was last empty. */
  #isDropping = false;
  #cancelTimer: (() => void) | null = null;
  #onIdle: (() => void)[] = [];
  #isClosing = false;

  /** Opens the target: what is wrong with it is told at once. */
  constructor(target: LogTarget, options: LogFileOptions) {
    this.#options = options;
    this.#target = target;
    this.#name = typeof target === 'string' ? `'${target}'` : `descriptor ${target}`;
    this.#open();
  }

  /** Adds one entry, byte text with its line end. Costs a copy of its bytes. */
  write(entry: string): void {
    const { length } = entry;
    if (this.#state === 'closed' || this.#length + this.#waitingBytes + length > MAX_WAITING_BYTES) {
      this.#dropNewest();
      return;
    }
    if (this.#length + length > BUFFER_BYTES) this.#flushBuffer();
    if (length > BUFFER_BYTES) {
      this.#enqueue({ bytes: Buffer.from(entry, 'latin1'), start: 0, end: length, entries: 1 });
    } else {
      this.#buffer ??= Buffer.allocUnsafeSlow(BUFFER_BYTES);
      this.#buffer.write(entry, this.#length, 'latin1');
      this.#length += length;
      this.#entries += 1;
    }
    this.#count(write_buffered);
    this.#gauge(length);
    this.#cancelTimer ??= this.#options.clock.after(this.#options.flushIntervalMs, () => this.#onTimer());
  }

  /** Sends what is buffered on its way. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#flushBuffer();
    this.#work();
  }

  /**
   * Opens the path anew behind what has been logged so far: a renamed file can then be taken away. A file that refuses
   * its entries is left at once, because it may be what fills the disk; they go to the new one.
   */
  reopen(): void {
    if (typeof this.#target === 'number') return;
    this.#flushBuffer();
    if (!this.#queue.includes(REOPEN)) this.#queue.push(REOPEN);
    if (this.#state === 'waiting') this.#reopenFirst();
    this.#work();
  }

  /** Writes what is left, for a second at most, and closes the file. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#state === 'waiting') this.#stopWaiting();
    this.flush();
    if (this.#state !== 'idle') await this.#untilIdle(FINAL_FLUSH_MS);
    // What is still under way needs its descriptor, and closes it.
    if (this.#state !== 'busy') this.#output?.close();
    this.#cancelRetry?.();
    this.#state = 'closed';
    this.#dropWaiting();
    this.#output = null;
  }

  #onTimer(): void {
    this.#cancelTimer = null;
    this.#count(flushed_by_timer);
    this.flush();
  }

  #flushBuffer(): void {
    if (this.#buffer === null || this.#length === 0) return;
    const piece = { bytes: this.#buffer, start: 0, end: this.#length, entries: this.#entries };
    this.#buffer = null;
    this.#length = 0;
    this.#entries = 0;
    this.#enqueue(piece);
  }

  #enqueue(piece: Piece): void {
    this.#queue.push(piece);
    this.#waitingBytes += piece.end - piece.start;
    this.#work();
  }

  #dropNewest(): void {
    this.#count(write_failed);
    if (this.#isDropping) return;
    this.#isDropping = true;
    const reason = isReaderBehind(this.#failure) ? 'its reader is behind' : 'they cannot be written in time';
    this.#options.log.error(`access log ${this.#name} loses entries: ${reason}`);
  }

  // ---- One step at a time: open, write, reopen ----

  #work(): void {
    while (this.#state === 'idle') {
      const next = this.#queue[0];
      if (next === undefined) {
        this.#isDropping = false;
        for (const resolve of this.#onIdle.splice(0)) resolve();
        return;
      }
      if (next === REOPEN) this.#openAnew();
      else if (this.#output === null) this.#open();
      else this.#writePiece(this.#output, next);
    }
  }

  #open(): void {
    this.#openLater((error, output) => {
      if (error === null) this.#replaceOutput(output!);
      else this.#fail(error, 'open');
    });
  }

  #openAnew(): void {
    this.#queue.shift();
    this.#openLater((error, output) => {
      if (error === null) {
        this.#replaceOutput(output!);
        return;
      }
      this.#count(reopen_failed);
      this.#options.log.error(`cannot reopen access log ${this.#name}: ${errorMessage(error)}`);
      // Entries go on to the file that is open, better there than nowhere; but not to one that takes none.
      if (this.#failure !== null && !isReaderBehind(this.#failure)) this.#replaceOutput(null);
    });
  }

  #openLater(done: (error: WriteError | null, output?: LogOutput) => void): void {
    this.#state = 'busy';
    LogOutput.openLater(this.#target, (error, output) => {
      if (this.#state === 'closed') {
        output?.close();
        return;
      }
      this.#state = 'idle';
      done(error, output);
      this.#work();
    });
  }

  /** An entry of which the old output has a part begins anew in the next one. */
  #replaceOutput(output: LogOutput | null): void {
    if (this.#output !== null) this.#leave(this.#output, output);
    this.#output = output;
    const first = this.#queue[0];
    if (first === undefined || first === REOPEN) return;
    const start = lineStart(first.bytes, first.start);
    this.#changeWaiting(first.start - start);
    first.start = start;
  }

  /** Nothing is written before that is done: a deleted file fills its disk for as long as it is open. */
  #leave(former: LogOutput, next: LogOutput | null): void {
    this.#state = 'busy';
    former.close(() => {
      if (this.#state === 'closed') {
        next?.close();
        return;
      }
      this.#state = 'idle';
      this.#work();
    });
  }

  #writePiece(output: LogOutput, piece: Piece): void {
    const { bytes, start } = piece;
    const length = wholeEntries(piece, output.wholeBytes);
    if (output.isFile) {
      this.#state = 'busy';
      output.writeLater(bytes, start, length, (error, taken) => {
        if (this.#state === 'closed') {
          output.close();
          return;
        }
        this.#state = 'idle';
        if (error === null) this.#taken(piece, taken);
        else this.#fail(error, 'write');
        this.#work();
      });
      return;
    }
    let taken: number;
    try {
      taken = output.write(bytes, start, length);
    } catch (error) {
      this.#fail(error as WriteError, 'write');
      return;
    }
    this.#taken(piece, taken);
  }

  #taken(piece: Piece, bytes: number): void {
    this.#count(write_completed);
    const { start } = piece;
    piece.start += bytes;
    this.#changeWaiting(-bytes);
    if (piece.start === piece.end) this.#queue.shift();
    else piece.entries = Math.max(1, piece.entries - countLines(piece.bytes, start, piece.start));
    this.#failure = null;
    this.#retry.reset();
  }

  // ---- What is refused ----

  /** What could not be written stays in the queue; it is tried again later. */
  #fail(error: WriteError, step: 'open' | 'write'): void {
    const isNews = this.#failure === null || isReaderBehind(this.#failure);
    this.#failure = error;
    if (!isReaderBehind(error)) {
      if (this.#queue.length > 0) this.#count(write_failed);
      if (isNews) this.#options.log.error(`cannot ${step} access log ${this.#name}: ${reasonOf(error)}`);
    }
    if (this.#queue.length === 0) return;
    if (this.#queue.includes(REOPEN)) this.#reopenFirst();
    else if (!this.#isClosing) this.#wait(this.#retry.next(error));
    else if (isReaderBehind(error)) this.#wait(FINAL_RETRY_MS);
    else this.#dropWaiting();
  }

  #wait(delayMs: number): void {
    this.#state = 'waiting';
    this.#cancelRetry = this.#options.clock.after(delayMs, () => {
      this.#stopWaiting();
      this.#work();
    });
  }

  #stopWaiting(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    this.#state = 'idle';
  }

  #reopenFirst(): void {
    this.#queue.splice(this.#queue.indexOf(REOPEN), 1);
    this.#queue.unshift(REOPEN);
    this.#stopWaiting();
  }

  async #untilIdle(limitMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(limitMs, resolve);
      this.#onIdle.push(resolve, cancel);
    });
  }

  #dropWaiting(): void {
    for (const waiting of this.#queue.splice(0)) if (waiting !== REOPEN) this.#count(write_failed, waiting.entries);
    this.#changeWaiting(-this.#waitingBytes);
  }

  #changeWaiting(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#gauge(bytes);
  }

  #count(stat: number, times = 1): void {
    this.#options.stats.values[this.#options.statBase + stat]! += times;
  }

  #gauge(change: number): void {
    this.#options.stats.values[this.#options.statBase + write_total_buffered]! += change;
  }
}

/** As many whole entries as are taken at one go; an entry longer than that goes alone. */
function wholeEntries({ bytes, start, end }: Piece, atOneGo: number): number {
  if (end - start <= atOneGo) return end - start;
  const lastEnd = bytes.lastIndexOf(LINE_FEED, start + atOneGo - 1);
  if (lastEnd >= start) return lastEnd + 1 - start;
  const firstEnd = bytes.indexOf(LINE_FEED, start);
  return (firstEnd === -1 || firstEnd >= end ? end : firstEnd + 1) - start;
}

function reasonOf(error: WriteError): string {
  return error.code === 'ENXIO' ? 'nobody reads it' : errorMessage(error);
}
