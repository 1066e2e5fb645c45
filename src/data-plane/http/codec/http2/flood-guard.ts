// Frames that cost this side more than the peer: each kind has a bound, beyond which the session ends.

import { Fault, type Http2Options, type SessionFault } from './options.ts';

/** Window updates that are free, and those that each stream brings. */
const FREE_WINDOW_UPDATES = 5;
const WINDOW_UPDATES_PER_STREAM = 2;
/** With fewer streams than this, nothing is said about how they end. */
const RESETS_LEAST_STREAMS = 500;
/** CONTINUATIONs of one block; the largest that is served needs four. */
const CONTINUATION_LIMIT = 64;

export class FloodGuard {
  readonly #options: Http2Options;
  #emptyFrames = 0;
  #priorityFrames = 0;
  #windowUpdates = 0;
  #continuations = 0;
  #streams = 0;
  #dataFramesSent = 0;
  #resets = 0;

  constructor(options: Http2Options) {
    this.#options = options;
  }

  onStream(): void {
    this.#streams += 1;
  }

  onDataSent(): void {
    this.#dataFramesSent += 1;
  }

  /** A frame of a block or body. */
  onContent(length: number, isEnd: boolean): SessionFault | null {
    if (length > 0 || isEnd) {
      this.#emptyFrames = 0;
      return null;
    }
    this.#emptyFrames += 1;
    return this.#emptyFrames > this.#options.maxConsecutiveEmptyFrames ? Fault.emptyFrames : null;
  }

  onPriority(): SessionFault | null {
    this.#priorityFrames += 1;
    const limit = this.#options.maxPriorityFramesPerStream * (1 + this.#streams);
    return this.#priorityFrames > limit ? Fault.priorityFrames : null;
  }

  onWindowUpdate(): SessionFault | null {
    this.#windowUpdates += 1;
    const earned = this.#options.maxWindowUpdatesPerDataFrame * this.#dataFramesSent;
    const limit = FREE_WINDOW_UPDATES + WINDOW_UPDATES_PER_STREAM * (this.#streams + earned);
    return this.#windowUpdates > limit ? Fault.windowUpdates : null;
  }

  beginBlock(): void {
    this.#continuations = 0;
  }

  onContinuation(): SessionFault | null {
    this.#continuations += 1;
    return this.#continuations > CONTINUATION_LIMIT ? Fault.blockTooLarge : null;
  }

  /** A stream that the peer broke off, or made this side break off, before it had an answer: most may not end so. */
  onPrematureReset(): SessionFault | null {
    this.#resets += 1;
    return this.#streams >= RESETS_LEAST_STREAMS && this.#resets * 2 > this.#streams ? Fault.resets : null;
  }
}
