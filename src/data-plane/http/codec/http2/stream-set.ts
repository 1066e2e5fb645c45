// The streams of a session that are not closed, and what is known of those that are (RFC 9113 section 5.1.1): numbers only
// rise, so that a stream without an entry is idle above the last one, and closed below it.
//
// A table of its own rather than a Map: a Map that entries come to and go from is made anew every few dozen of them, and what it was
// before points to what it is. Once one of those has outlived a collection it keeps all that follow, and every stream that
// was open in one of them, until the next collection of the whole heap (docs/decisions/0067-where-the-time-between-protocols-goes.md).
//
//   buckets: [0] ──► stream ──► stream      by number; as many as streams at least, so that most hold one
//            [1] ──► null

import { LARGEST_WINDOW } from './frames.ts';
import type { SessionStream } from './session-stream.ts';

/** Streams reset by this side, whose frames may still be on their way. */
const RECENT_LIMIT = 1024;
/** A power of two, as all sizes of the table: most sessions have few streams at a time. */
const LEAST_BUCKETS = 4;
/** A larger table is given up when the last of its streams has ended. */
const KEPT_BUCKETS = 128;

/** All streams have odd numbers: those of one session lie side by side. */
function bucketOf(streamId: number, buckets: number): number {
  return (streamId >>> 1) & (buckets - 1);
}

function emptyBuckets(count: number): (SessionStream | null)[] {
  return new Array<SessionStream | null>(count).fill(null);
}

export class StreamSet {
  readonly #isServer: boolean;
  #buckets = emptyBuckets(LEAST_BUCKETS);
  #size = 0;
  readonly #recent = new Set<number>();
  /** Highest stream that the peer has opened. */
  lastRemoteId = 0;
  #nextLocalId = 1;

  constructor(isServer: boolean) {
    this.#isServer = isServer;
  }

  get size(): number {
    return this.#size;
  }

  get(streamId: number): SessionStream | undefined {
    let stream = this.#buckets[bucketOf(streamId, this.#buckets.length)] ?? null;
    while (stream !== null && stream.id !== streamId) stream = stream.nextInBucket;
    return stream ?? undefined;
  }

  /** @param stream of this session. */
  has(stream: SessionStream): boolean {
    return stream.isListed;
  }

  /** @param stream that is in no set. */
  add(stream: SessionStream): void {
    if (this.#size === this.#buckets.length) this.#grow();
    this.#link(stream);
    stream.isListed = true;
    this.#size += 1;
    if (stream.id === this.#nextLocalId) this.#nextLocalId += 2;
  }

  delete(stream: SessionStream): void {
    if (!stream.isListed) return;
    const at = bucketOf(stream.id, this.#buckets.length);
    const first = this.#buckets[at] ?? null;
    if (first === stream) {
      this.#buckets[at] = stream.nextInBucket;
    } else {
      let before = first!;
      while (before.nextInBucket !== stream) before = before.nextInBucket!;
      before.nextInBucket = stream.nextInBucket;
    }
    // What has gone points to nothing that is still there.
    stream.nextInBucket = null;
    stream.isListed = false;
    this.#size -= 1;
    if (this.#size === 0 && this.#buckets.length > KEPT_BUCKETS) this.#buckets = emptyBuckets(LEAST_BUCKETS);
  }

  /** In the order of their numbers. */
  all(): SessionStream[] {
    const streams: SessionStream[] = [];
    for (const first of this.#buckets) {
      for (let stream = first; stream !== null; stream = stream.nextInBucket) streams.push(stream);
    }
    return streams.sort((one, other) => one.id - other.id);
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

  #link(stream: SessionStream): void {
    const at = bucketOf(stream.id, this.#buckets.length);
    stream.nextInBucket = this.#buckets[at] ?? null;
    this.#buckets[at] = stream;
  }

  #grow(): void {
    const streams = this.all();
    this.#buckets = emptyBuckets(this.#buckets.length * 2);
    for (const stream of streams) this.#link(stream);
  }
}
