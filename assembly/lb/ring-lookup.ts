// Lookup on a ring: the first entry whose hash is the key's or above, the first of all when there is none. The top bits
// of a hash name a bucket, which says where to begin; hashes are even, so that a probe or two suffice.

import { RING_BUCKET_SHIFT, RING_BUCKETS, RING_OWNERS, RING_OWNER_SHIFT, RING_SIZE, TABLE_BODY } from '../layout/lb';
import { xxh64 } from './hash/xxhash64';
import { word } from './words';

/** Host of a hash; retry number `attempt` takes the entry so many places further on. Reads the table only. */
export function ringLookup(table: usize, hashHi: u32, hashLo: u32, attempt: u32): u32 {
  return find(table, word(hashHi, hashLo), attempt);
}

/** Host of a key, by its XXH64. Reads the key and the table. */
export function ringLookupKey(table: usize, key: usize, length: u32, attempt: u32): u32 {
  return find(table, xxh64(key, length, 0), attempt);
}

// @ts-ignore: decorator
@inline
function find(table: usize, hash: u64, attempt: u32): u32 {
  const size = load<u32>(table + RING_SIZE);
  const bucket = (hash >> (load<u32>(table + RING_BUCKET_SHIFT) as u64)) as usize;
  let entry = load<u32>(table + (load<u32>(table + RING_BUCKETS) as usize) + (bucket << 2));
  const hashes = table + TABLE_BODY;
  while (entry < size && load<u64>(hashes + ((entry as usize) << 3)) < hash) entry++;
  if (entry == size) entry = 0;
  if (attempt > 0) entry = (((entry as u64) + (attempt as u64)) % (size as u64)) as u32;
  const owners = table + (load<u32>(table + RING_OWNERS) as usize);
  return load<u32>(table + RING_OWNER_SHIFT) == 1
    ? load<u16>(owners + ((entry as usize) << 1))
    : load<u32>(owners + ((entry as usize) << 2));
}
