// One access log file as one worker writes it. Entries gather in a buffer; a full buffer, or the flush interval,
// sends it to the file, one write at a time. Nothing here ever stops a request: what cannot be written waits within a
// bound and is then dropped, and both are counted.
//
//   write ──► buffer ──full, time, close──► queue ──► fs.write (O_APPEND) ──► file
//                                             └──► reopen: the entries before it went to the file opened before
//
// Workers share a file without talking: each write is whole entries, and the kernel appends each at one go. A pipe
// only promises that for small pieces, so there a buffer leaves in pieces that end with an entry.

import { close, fstat, open, write } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { Logger } from '../../log/index.ts';
import { FILESYSTEM_STATS, type WorkerStats } from '../../stats/index.ts';

const { flushed_by_timer, reopen_failed, write_buffered, write_completed, write_failed, write_total_buffered } =
  FILESYSTEM_STATS.index;

/** Entries that together are longer are written in several goes. */
export const BUFFER_BYTES = 64 * 1024;
/** Entries that wait while the disk refuses them; beyond this new ones are dropped. */
export const MAX_WAITING_BYTES = 1024 * 1024;
/** PIPE_BUF on Linux: as much as a pipe takes without mixing it with what others write. */
const ATOMIC_PIPE_BYTES = 4096;
/** Before a write that failed is tried again. */
const RETRY_MS = 1000;
/** Before a pipe that was full is tried again. */
const FULL_PIPE_RETRY_MS = 10;
/** As often at the end; then nobody is reading. */
const MAX_FINAL_RETRIES = 50;
const APPEND = 'a';
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
}

const REOPEN = 'reopen';

export class LogFile {
  readonly #options: LogFileOptions;
  /** A path, or a descriptor that is open already. */
  readonly #target: string | number;
  readonly #name: string;
  #descriptor: number | null = null;
  #isPipe = false;
  #buffer: Buffer | null = null;
  #length = 0;
  readonly #queue: (Piece | typeof REOPEN)[] = [];
  #waitingBytes = 0;
  #isBusy = false;
  #hasFailed = false;
  #cancelTimer: (() => void) | null = null;
  #onIdle: (() => void)[] = [];
  #isClosing = false;
  #finalRetries = 0;

  /** @param target a path, or the descriptor of standard output or standard error. */
  constructor(target: string | number, options: LogFileOptions) {
    this.#options = options;
    this.#target = target;
    this.#name = typeof target === 'string' ? `'${target}'` : `descriptor ${target}`;
  }

  /** Adds one entry, byte text with its line end. Costs a copy of its bytes. */
  write(entry: string): void {
    const { length } = entry;
    if (this.#length + this.#waitingBytes + length > MAX_WAITING_BYTES) {
      this.#count(write_failed);
      return;
    }
    if (this.#length + length > BUFFER_BYTES) this.#flushBuffer();
    if (length > BUFFER_BYTES) this.#enqueue({ bytes: Buffer.from(entry, 'latin1'), start: 0, end: length });
    else {
      this.#buffer ??= Buffer.allocUnsafeSlow(BUFFER_BYTES);
      this.#buffer.write(entry, this.#length, 'latin1');
      this.#length += length;
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

  /** Opens the path anew behind what has been logged so far: a renamed file can then be taken away. */
  reopen(): void {
    if (typeof this.#target === 'number') return;
    this.#flushBuffer();
    this.#queue.push(REOPEN);
    this.#work();
  }

  /** Writes what is left, once, and closes the file. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.flush();
    if (this.#isBusy) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    this.#dropWaiting();
    if (this.#descriptor !== null && typeof this.#target === 'string') close(this.#descriptor, () => {});
    this.#descriptor = null;
  }

  #onTimer(): void {
    this.#cancelTimer = null;
    this.#count(flushed_by_timer);
    this.flush();
  }

  #flushBuffer(): void {
    if (this.#buffer === null || this.#length === 0) return;
    const piece = { bytes: this.#buffer, start: 0, end: this.#length };
    this.#buffer = null;
    this.#length = 0;
    this.#enqueue(piece);
  }

  #enqueue(piece: Piece): void {
    this.#queue.push(piece);
    this.#waitingBytes += piece.end - piece.start;
    this.#work();
  }

  // ---- One step at a time: open, write, reopen ----

  #work(): void {
    if (this.#isBusy) return;
    const next = this.#queue[0];
    if (next === undefined) {
      for (const resolve of this.#onIdle.splice(0)) resolve();
      return;
    }
    this.#isBusy = true;
    if (this.#descriptor === null) this.#open();
    else if (next === REOPEN) this.#openAnew(this.#descriptor);
    else this.#writePiece(this.#descriptor, next);
  }

  #open(): void {
    if (typeof this.#target === 'number') this.#inspect(this.#target);
    else
      open(this.#target, APPEND, (error, descriptor) => {
        if (error === null) this.#inspect(descriptor);
        else this.#fail(error);
      });
  }

  #inspect(descriptor: number): void {
    fstat(descriptor, (error, stats) => {
      this.#isPipe = error !== null || stats.isFIFO() || stats.isSocket();
      this.#descriptor = descriptor;
      this.#done();
    });
  }

  #openAnew(before: number): void {
    open(this.#target as string, APPEND, (error, descriptor) => {
      this.#queue.shift();
      if (error === null) {
        close(before, () => {});
        this.#inspect(descriptor);
        return;
      }
      // Lines go on to the file that is open: better there than nowhere.
      this.#count(reopen_failed);
      this.#options.log.error(`cannot reopen access log ${this.#name}: ${errorMessage(error)}`);
      this.#done();
    });
  }

  #writePiece(descriptor: number, piece: Piece): void {
    const length = this.#isPipe ? pipeLength(piece) : piece.end - piece.start;
    write(descriptor, piece.bytes, piece.start, length, null, (error, written) => {
      if (error !== null) {
        this.#fail(error);
        return;
      }
      this.#count(write_completed);
      piece.start += written;
      this.#waitingBytes -= written;
      this.#gauge(-written);
      if (piece.start === piece.end) this.#queue.shift();
      this.#hasFailed = false;
      this.#done();
    });
  }

  #done(): void {
    this.#isBusy = false;
    this.#work();
  }

  /** What could not be written stays in the queue; it is tried again later. */
  #fail(error: NodeJS.ErrnoException): void {
    const isFullPipe = error.code === 'EAGAIN';
    if (!isFullPipe) {
      this.#count(write_failed);
      if (!this.#hasFailed) this.#options.log.error(`cannot write access log ${this.#name}: ${errorMessage(error)}`);
      this.#hasFailed = true;
    }
    if (this.#isClosing) this.#finalRetries += isFullPipe ? 1 : MAX_FINAL_RETRIES;
    if (this.#finalRetries >= MAX_FINAL_RETRIES) {
      this.#dropWaiting();
      this.#done();
      return;
    }
    this.#options.clock.after(isFullPipe ? FULL_PIPE_RETRY_MS : RETRY_MS, () => this.#done());
  }

  #dropWaiting(): void {
    this.#queue.length = 0;
    this.#gauge(-this.#waitingBytes);
    this.#waitingBytes = 0;
  }

  #count(stat: number): void {
    this.#options.stats.values[this.#options.statBase + stat]! += 1;
  }

  #gauge(change: number): void {
    this.#options.stats.values[this.#options.statBase + write_total_buffered]! += change;
  }
}

/** As many whole entries as a pipe takes at one go; an entry longer than that goes alone. */
function pipeLength({ bytes, start, end }: Piece): number {
  if (end - start <= ATOMIC_PIPE_BYTES) return end - start;
  const lastEnd = bytes.lastIndexOf(LINE_FEED, start + ATOMIC_PIPE_BYTES - 1);
  if (lastEnd >= start) return lastEnd + 1 - start;
  const firstEnd = bytes.indexOf(LINE_FEED, start);
  return (firstEnd === -1 || firstEnd >= end ? end : firstEnd + 1) - start;
}
