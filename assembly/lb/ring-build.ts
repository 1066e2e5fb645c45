// Building a ring. Hashes of one bucket are few, so a counting sort by buckets and an insertion within them order the
// ring in two passes, and the buckets' starts, which lookups need, come with it.

import {
  RING_BUCKET_SHIFT,
  RING_BUCKETS,
  RING_HOST_COUNT,
  RING_HOST_KEY,
  RING_HOST_KEY_LENGTH,
  RING_HOST_SIZE,
  RING_OWNERS,
  RING_OWNER_SHIFT,
  RING_SIZE,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../layout/lb';
import { murmur2 } from './hash/murmur2';
import { xxh64 } from './hash/xxhash64';

const MURMUR_HASH_2: u32 = 1;
const STD_HASH_SEED: u64 = 0xc70f6907;
const UNDERSCORE: u8 = 0x5f;
const DIGIT_0: u8 = 0x30;
const DIGIT_9: u8 = 0x39;

/**
 * Fills hashes, buckets and owners of a table whose header is written.
 * @param hosts   records of the hosts, with room behind each key for what tells its entries apart.
 * @param hashes  one u64 per entry: work space.
 */
export function buildRing(table: usize, hosts: usize, hashes: usize, hashFunction: u32): void {
  const size = load<u32>(table + RING_SIZE) as usize;
  const end = hosts + (load<u32>(table + TABLE_HOSTS) as usize) * RING_HOST_SIZE;
  const buckets = table + (load<u32>(table + RING_BUCKETS) as usize);
  const bucketShift = load<u32>(table + RING_BUCKET_SHIFT) as u64;
  // Behind the last bucket stands the size, as the start of one more.
  const bucketsEnd = buckets + (((1 as usize) << ((64 - bucketShift) as usize)) << 2) + 4;
  memory.fill(buckets, 0, bucketsEnd - buckets);
  const counts = buckets + 4;
  let out = hashes;
  for (let host = hosts; host < end; host += RING_HOST_SIZE) out = hashEntries(host, out, hashFunction, counts, bucketShift);
  countsToStarts(counts, bucketsEnd);
  // Places not yet filled must not look larger than what comes to stand behind them.
  memory.fill(table + TABLE_BODY, 0, size << 3);
  let from = hashes;
  let index: u32 = 0;
  for (let host = hosts; host < end; host += RING_HOST_SIZE) {
    const to = from + ((load<u32>(host + RING_HOST_COUNT) as usize) << 3);
    placeEntries(table, counts, bucketShift, from, to, index++);
    from = to;
  }
}

/** Hashes key_0, key_1, … of a host to `out` and counts their buckets; returns where the next host's go. */
function hashEntries(host: usize, out: usize, hashFunction: u32, counts: usize, bucketShift: u64): usize {
  const key = load<u32>(host + RING_HOST_KEY) as usize;
  const digits = key + (load<u32>(host + RING_HOST_KEY_LENGTH) as usize) + 1;
  const end = out + ((load<u32>(host + RING_HOST_COUNT) as usize) << 3);
  store<u8>(digits - 1, UNDERSCORE);
  store<u8>(digits, DIGIT_0);
  let last = digits;
  for (; out < end; out += 8) {
    const length = (last + 1 - key) as u32;
    const hash = hashFunction == MURMUR_HASH_2 ? murmur2(key, length, STD_HASH_SEED) : xxh64(key, length, 0);
    store<u64>(out, hash);
    const count = counts + (((hash >> bucketShift) as usize) << 2);
    store<u32>(count, load<u32>(count) + 1);
    last = countUp(digits, last);
  }
  return out;
}

/** Adds one to a decimal number in text; returns the place of its last digit. */
// @ts-ignore: decorator
@inline
function countUp(first: usize, last: usize): usize {
  for (let at = last; at >= first; at--) {
    const digit = load<u8>(at);
    if (digit < DIGIT_9) {
      store<u8>(at, digit + 1);
      return last;
    }
    store<u8>(at, DIGIT_0);
  }
  // All nines: the first digit becomes 1 and one more 0 follows the others.
  store<u8>(first, DIGIT_0 + 1);
  store<u8>(last + 1, DIGIT_0);
  return last + 1;
}

/** Turns the number of entries in each bucket into the number of entries before it. */
function countsToStarts(counts: usize, end: usize): void {
  let start: u32 = 0;
  for (let at = counts; at < end; at += 4) {
    const count = load<u32>(at);
    store<u32>(at, start);
    start += count;
  }
}

/** Puts a host's hashes in their places; each bucket's start moves on to become the start of the next. */
function placeEntries(table: usize, starts: usize, bucketShift: u64, from: usize, to: usize, host: u32): void {
  const hashes = table + TABLE_BODY;
  const owners = table + (load<u32>(table + RING_OWNERS) as usize);
  const isNarrow = load<u32>(table + RING_OWNER_SHIFT) == 1;
  for (; from < to; from += 8) {
    const hash = load<u64>(from);
    const start = starts + (((hash >> bucketShift) as usize) << 2);
    let entry = load<u32>(start) as usize;
    store<u32>(start, (entry as u32) + 1);
    for (; entry > 0; entry--) {
      const before = load<u64>(hashes + ((entry - 1) << 3));
      if (before <= hash) break;
      store<u64>(hashes + (entry << 3), before);
      if (isNarrow) store<u16>(owners + (entry << 1), load<u16>(owners + ((entry - 1) << 1)));
      else store<u32>(owners + (entry << 2), load<u32>(owners + ((entry - 1) << 2)));
    }
    store<u64>(hashes + (entry << 3), hash);
    if (isNarrow) store<u16>(owners + (entry << 1), host as u16);
    else store<u32>(owners + (entry << 2), host);
  }
}
