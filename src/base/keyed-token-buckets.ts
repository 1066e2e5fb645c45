// Token buckets by key that several threads take from, for as many keys as there is room: a key that has none gets the place of
// the one that has not been asked for longest, and begins with a full bucket. The state lies in memory that all of them see.
//
//   16 bytes of a secret     u32 count of uses     4 unused     then places of 32 bytes:
//   u64 digest of the key, 0 for a free place     u32 number of its last use     4 unused     16 of a token bucket
//
// Digests are keyed by the secret, so that nobody can choose keys that share a place. Whoever puts a digest into a place by
// compare and exchange has it; of two threads that do so for one key at the same time, the one with the later place steps back.
// A request that another thread has in between may find the tokens of the key before.

import { hash, randomBytes } from 'node:crypto';
import { bucketState, TokenBucket, type TokenBucketSettings } from './token-bucket.ts';

const SECRET_BYTES = 16;
const HEAD_BYTES = 24;
const USES = SECRET_BYTES / 4;
const PLACE_BYTES = 32;
const PLACE_WORDS = PLACE_BYTES / 4;
const LAST_USE = 2;
const BUCKET_OFFSET = 16;
export const MAX_KEYED_BUCKETS = 65_536;

export interface KeyedTokenBucketsSettings extends TokenBucketSettings {
  /** 1 to MAX_KEYED_BUCKETS. */
  readonly maxKeys: number;
}

/** Memory that threads share. @param nowMs of the system's monotonic clock. */
export function keyedBucketState(maxKeys: number, nowMs: number): SharedArrayBuffer {
  const state = new SharedArrayBuffer(HEAD_BYTES + maxKeys * PLACE_BYTES);
  const bytes = new Uint8Array(state);
  bytes.set(randomBytes(SECRET_BYTES));
  // The time from which fills count is the same for all of them.
  const empty = new Uint8Array(bucketState(0, nowMs));
  for (let place = 0; place < maxKeys; place += 1) bytes.set(empty, bucketOffset(place));
  return state;
}

function bucketOffset(place: number): number {
  return HEAD_BYTES + place * PLACE_BYTES + BUCKET_OFFSET;
}

interface Known {
  readonly place: number;
  readonly digest: bigint;
  readonly bucket: TokenBucket;
}

export class KeyedTokenBuckets {
  readonly #settings: KeyedTokenBucketsSettings;
  readonly #secret: Buffer;
  readonly #head: Int32Array<ArrayBufferLike>;
  /** From the first place on, one for each half of a word of 8 bytes. */
  readonly #words: Int32Array<ArrayBufferLike>;
  readonly #digests: BigInt64Array<ArrayBufferLike>;
  /** Where this thread has found a key; it may have lost its place since. */
  readonly #known = new Map<string, Known>();

  constructor(settings: KeyedTokenBucketsSettings) {
    const { state, maxKeys } = settings;
    this.#settings = settings;
    this.#secret = Buffer.from(new Uint8Array(state, 0, SECRET_BYTES));
    this.#head = new Int32Array(state, 0, HEAD_BYTES / 4);
    this.#words = new Int32Array(state, HEAD_BYTES, maxKeys * PLACE_WORDS);
    this.#digests = new BigInt64Array(state, HEAD_BYTES, (maxKeys * PLACE_WORDS) / 2);
  }

  /** In the long run, of each: the less, the scarcer. */
  get tokensPerMs(): number {
    return this.#settings.tokensPerFill / this.#settings.fillIntervalMs;
  }

  /** @param nowMs of the system's monotonic clock. */
  bucketOf(key: string, nowMs: number): TokenBucket {
    let known = this.#known.get(key);
    if (known === undefined || Atomics.load(this.#digests, digestIndex(known.place)) !== known.digest) {
      known = this.#look(key, nowMs);
      if (this.#known.size >= this.#settings.maxKeys) this.#known.clear();
      this.#known.set(key, known);
    }
    this.#words[known.place * PLACE_WORDS + LAST_USE] = Atomics.add(this.#head, USES, 1);
    return known.bucket;
  }

  #look(key: string, nowMs: number): Known {
    const digest = this.#digestOf(key);
    for (;;) {
      const { found, oldest, before } = this.#scan(digest);
      if (found !== -1) return this.#at(found, digest);
      // Not what stands there by now: another thread may have put this key there, and filled its bucket.
      if (Atomics.compareExchange(this.#digests, digestIndex(oldest), before, digest) !== before) continue;
      this.#words[oldest * PLACE_WORDS + LAST_USE] = Atomics.load(this.#head, USES);
      const made = this.#at(oldest, digest);
      made.bucket.fillUp(nowMs);
      const first = this.#scan(digest).found;
      if (first === oldest || first === -1) return made;
      Atomics.compareExchange(this.#digests, digestIndex(oldest), digest, 0n);
      return this.#at(first, digest);
    }
  }

  /** @returns the first place with this digest, -1 for none; and a free one, else the one that was used longest ago, with its digest. */
  #scan(digest: bigint): { readonly found: number; readonly oldest: number; readonly before: bigint } {
    const words = this.#words;
    const uses = Atomics.load(this.#head, USES);
    const low = Number(BigInt.asIntN(32, digest));
    let oldest = 0;
    let oldestAge = -1;
    let oldestLow = 0;
    let oldestHigh = 0;
    for (let place = 0; place < this.#settings.maxKeys; place += 1) {
      const at = place * PLACE_WORDS;
      // By halves: that needs no BigInt. Another thread writes both at once, perhaps between these two.
      const half = words[at]!;
      const other = words[at + 1]!;
      const mayBeIt = half === low || (half === 0 && other !== 0);
      if (mayBeIt && Atomics.load(this.#digests, digestIndex(place)) === digest)
        return { found: place, oldest, before: digest };
      const age = half === 0 && other === 0 ? Number.POSITIVE_INFINITY : ageOf(words[at + LAST_USE]!, uses);
      if (age > oldestAge) {
        oldest = place;
        oldestAge = age;
        oldestLow = half;
        oldestHigh = other;
      }
    }
    return { found: -1, oldest, before: digestOfHalves(oldestLow, oldestHigh) };
  }

  #at(place: number, digest: bigint): Known {
    return { place, digest, bucket: new TokenBucket(this.#settings, bucketOffset(place)) };
  }

  #digestOf(key: string): bigint {
    const bytes = hash('sha256', Buffer.concat([this.#secret, Buffer.from(key)]), 'buffer');
    return bytes.readBigInt64LE() || 1n;
  }
}

function digestIndex(place: number): number {
  return (place * PLACE_WORDS) / 2;
}

function digestOfHalves(low: number, high: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low >>> 0);
}

/** By the difference, which is right beyond the range of an i32, too; what another thread has used a moment later is not old. */
function ageOf(lastUse: number, uses: number): number {
  return Math.max(0, (uses - lastUse) | 0);
}
