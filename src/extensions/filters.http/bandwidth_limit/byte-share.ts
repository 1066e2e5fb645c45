// Shares the bytes of a bucket out among the bodies of this worker that wait for them. Worker thread; one for each
// configuration that limits.
//
// All of them are served together, whenever the bucket is filled: each gets the same part of what this worker may take,
// and what one has no use for goes to those behind it. Whoever got something is at the end of the row next time. What a
// worker may take is by the share of all waiting bodies that are its own, so that the first to wake does not take all.

import { TokenBucket } from '../../../base/token-bucket.ts';
import type { FilterContext } from '../../../data-plane/index.ts';
import type { ByteBucketSettings } from './settings.ts';

/** A body that waits. */
export interface WaitingBody {
  /** Of the bytes that are held back, how many may go on by now: a slice with each fill. */
  wanted(): number;
  /** So many go on, perhaps none. @returns false when the wait is over. */
  letPass(bytes: number): boolean;
}

export class ByteShare {
  readonly #context: Pick<FilterContext, 'clock' | 'sharedNowMs'>;
  readonly #bucket: TokenBucket;
  /** What one body gets of one fill, at most. */
  readonly #sliceBytes: number;
  /** One i32, of all workers. */
  readonly #waitingOfAll: Int32Array<ArrayBufferLike>;
  /** Those of this worker, in the order in which they are served. */
  readonly #waiting = new Set<WaitingBody>();
  #cancelTimer: (() => void) | null = null;

  constructor({ tokens, waiting }: ByteBucketSettings, context: Pick<FilterContext, 'clock' | 'sharedNowMs'>) {
    this.#context = context;
    this.#bucket = new TokenBucket(tokens);
    this.#sliceBytes = Math.ceil(tokens.tokensPerFill);
    this.#waitingOfAll = new Int32Array(waiting);
  }

  get sliceBytes(): number {
    return this.#sliceBytes;
  }

  /** Takes bytes for a body that need not wait. @returns false where it must, as others do. */
  takeAtOnce(bytes: number): boolean {
    return Atomics.load(this.#waitingOfAll, 0) === 0 && this.#bucket.take(bytes, this.#context.sharedNowMs());
  }

  /** Number of the last fill. With each a body may have another slice. */
  fillNow(): number {
    return this.#bucket.fillsBy(this.#context.sharedNowMs());
  }

  join(body: WaitingBody): void {
    Atomics.add(this.#waitingOfAll, 0, 1);
    this.#waiting.add(body);
    // What comes is held only once the filter has returned.
    if (this.#cancelTimer === null) this.#wakeIn(0);
  }

  /** Idempotent. */
  leave(body: WaitingBody): void {
    if (!this.#waiting.delete(body)) return;
    Atomics.sub(this.#waitingOfAll, 0, 1);
    if (this.#waiting.size > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #wakeIn(delayMs: number): void {
    this.#cancelTimer = this.#context.clock.after(delayMs, () => this.#serve());
  }

  #serve(): void {
    const nowMs = this.#context.sharedNowMs();
    this.#cancelTimer = null;
    const bodies = [...this.#waiting];
    const wanted = bodies.map((body) => body.wanted());
    const given = shareOut(wanted, this.#takeFor(wanted, nowMs));
    for (const [index, body] of bodies.entries()) {
      const bytes = given[index]!;
      // What one of them did may have ended another.
      if (!this.#waiting.has(body) || (bytes === 0 && wanted[index]! > 0)) continue;
      this.#waiting.delete(body);
      this.#waiting.add(body);
      if (!body.letPass(bytes)) this.leave(body);
    }
    if (this.#waiting.size > 0 && this.#cancelTimer === null) this.#wakeIn(this.#bucket.msToFill(nowMs));
  }

  #takeFor(wanted: readonly number[], nowMs: number): number {
    const sum = wanted.reduce((all, one) => all + one, 0);
    if (sum === 0) return 0;
    const ofAll = Math.max(wanted.length, Atomics.load(this.#waitingOfAll, 0));
    const filled = Math.max(this.#sliceBytes, this.#bucket.remaining(nowMs));
    return this.#bucket.takeUpTo(Math.min(sum, Math.ceil((filled * wanted.length) / ofAll)), nowMs);
  }
}

/** Equal parts, but for those who want less; the first in the row get what cannot be parted. @param total not more than all want. */
export function shareOut(wanted: readonly number[], total: number): number[] {
  const given = wanted.map(() => 0);
  let left = total;
  let open = [...wanted.keys()];
  while (left > 0) {
    open = open.filter((index) => given[index]! < wanted[index]!);
    const part = Math.max(1, Math.floor(left / open.length));
    for (const index of open) {
      const bytes = Math.min(part, wanted[index]! - given[index]!, left);
      given[index]! += bytes;
      left -= bytes;
    }
  }
  return given;
}
