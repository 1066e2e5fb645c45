// The streams of a session that are not closed, and what is known of those that are (RFC 9113 section 5.1.1): numbers only
// rise, so that a stream without an entry is idle above the last one, and closed below it.

import { LARGEST_WINDOW } from './frames.ts';
import type { SessionStream } from './session-stream.ts';

/** Streams reset by this side, whose frames may still be on their way. */
const RECENT_LIMIT = 1024;

export class StreamSet {
  readonly #isServer: boolean;
  readonly #streams = new Map<number, SessionStream>();
  readonly #recent = new Set<number>();
  /** Highest stream that the peer has opened. */
  lastRemoteId = 0;
  #nextLocalId = 1;

  constructor(isServer: boolean) {
    this.#isServer = isServer;
  }

  get size(): number {
    return this.#streams.size;
  }

  get(streamId: number): SessionStream | undefined {
    return this.#streams.get(streamId);
  }

  has(stream: SessionStream): boolean {
    return this.#streams.get(stream.id) === stream;
  }

  add(stream: SessionStream): void {
    this.#streams.set(stream.id, stream);
    if (stream.id === this.#nextLocalId) this.#nextLocalId += 2;
  }

  delete(stream: SessionStream): void {
    this.#streams.delete(stream.id);
  }

  all(): SessionStream[] {
    return [...this.#streams.values()];
  }

  /** Number of the next stream of this client; 0 when there are no more. */
  get nextId(): number {
    return this.#nextLocalId > LARGEST_WINDOW ? 0 : this.#nextLocalId;
  }

  /** Neither side has opened it. */
  isIdle(streamId: number): boolean {
    const isRemote = (streamId % 2 === 1) === this.#isServer;
    return isRemote ? streamId > this.lastRemoteId : streamId >= this.#nextLocalId;
  }

  /** This side has ended it, or never taken it: its peer may not know that yet. */
  endedHere(streamId: number): void {
    this.#recent.add(streamId);
    if (this.#recent.size <= RECENT_LIMIT) return;
    for (const oldest of this.#recent) {
      this.#recent.delete(oldest);
      return;
    }
  }

  hasEndedHere(streamId: number): boolean {
    return this.#recent.has(streamId);
  }
}
