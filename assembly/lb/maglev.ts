// Maglev tables: building, and lookup by keys; who has a hash reads the slots without a call. Source: Maglev, NSDI
// 2016, section 3.4; a key's slot is its hash modulo the size.

import {
  MAGLEV_HOST_COUNT,
  MAGLEV_HOST_INDEX,
  MAGLEV_HOST_KEY,
  MAGLEV_HOST_KEY_LENGTH,
  MAGLEV_HOST_POSITION,
  MAGLEV_HOST_SIZE,
  MAGLEV_HOST_SKIP,
  MAGLEV_HOST_TARGET,
  MAGLEV_HOST_WEIGHT,
  MAGLEV_MAX_ENTRIES,
  MAGLEV_MIN_ENTRIES,
  MAGLEV_SIZE,
  MAGLEV_SLOT_SHIFT,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../layout/lb';
import { xxh64 } from './hash/xxhash64';

/**
 * Fills the slots of a table and the gauges of its header; the rest of the header is written already.
 * @param hosts  records of the hosts in the order of their keys: key, weight and index are read, the rest is work space.
 * @param taken  one byte per slot: work space. A bit would do, but costs a third more time below a million slots.
 */
export function buildMaglev(table: usize, hosts: usize, taken: usize): void {
  const size = load<u32>(table + MAGLEV_SIZE);
  const hostCount = load<u32>(table + TABLE_HOSTS);
  const end = hosts + (hostCount as usize) * MAGLEV_HOST_SIZE;
  if (hostCount == 1) {
    store<u8>(table + TABLE_BODY, 0);
    store<u32>(table + MAGLEV_MIN_ENTRIES, 1);
    store<u32>(table + MAGLEV_MAX_ENTRIES, 1);
    return;
  }
  const largest = prepareHosts(hosts, end, size);
  memory.fill(taken, 0, size);
  fillSlots(table, hosts, end, taken, size, largest);
  measure(table, hosts, end);
}

/** Sets each host to its first preference; returns the largest weight. */
function prepareHosts(hosts: usize, end: usize, size: u32): f64 {
  let largest: f64 = 0;
  for (let host = hosts; host < end; host += MAGLEV_HOST_SIZE) {
    const key = load<u32>(host + MAGLEV_HOST_KEY) as usize;
    const length = load<u32>(host + MAGLEV_HOST_KEY_LENGTH);
    store<u32>(host + MAGLEV_HOST_POSITION, (xxh64(key, length, 0) % (size as u64)) as u32);
    store<u32>(host + MAGLEV_HOST_SKIP, ((xxh64(key, length, 1) % ((size - 1) as u64)) as u32) + 1);
    store<u32>(host + MAGLEV_HOST_COUNT, 0);
    store<f64>(host + MAGLEV_HOST_TARGET, 0);
    largest = Math.max(largest, load<f64>(host + MAGLEV_HOST_WEIGHT));
  }
  return largest;
}

/** Rounds until all is taken: each host whose turn it is takes its next free preference. */
function fillSlots(table: usize, hosts: usize, end: usize, taken: usize, size: u32, largest: f64): void {
  const slots = table + TABLE_BODY;
  const shift = load<u32>(table + MAGLEV_SLOT_SHIFT);
  let free = size;
  for (let round: f64 = 1; ; round += 1) {
    for (let host = hosts; host < end; host += MAGLEV_HOST_SIZE) {
      const target = load<f64>(host + MAGLEV_HOST_TARGET);
      if (round * load<f64>(host + MAGLEV_HOST_WEIGHT) < target) continue;
      store<f64>(host + MAGLEV_HOST_TARGET, target + largest);
      const skip = load<u32>(host + MAGLEV_HOST_SKIP);
      const slot = firstFree(taken, load<u32>(host + MAGLEV_HOST_POSITION), skip, size);
      store<u32>(host + MAGLEV_HOST_POSITION, step(slot, skip, size));
      store<u32>(host + MAGLEV_HOST_COUNT, load<u32>(host + MAGLEV_HOST_COUNT) + 1);
      writeSlot(slots, shift, slot, load<u32>(host + MAGLEV_HOST_INDEX));
      if (--free == 0) return;
    }
  }
}

/** Walks a host's preferences to the first free one, and takes it. There is one: the size is prime. */
// @ts-ignore: decorator
@inline
function firstFree(taken: usize, slot: u32, skip: u32, size: u32): u32 {
  while (load<u8>(taken + (slot as usize)) != 0) slot = step(slot, skip, size);
  store<u8>(taken + (slot as usize), 1);
  return slot;
}

/** slot + skip modulo size, both below size. */
// @ts-ignore: decorator
@inline
function step(slot: u32, skip: u32, size: u32): u32 {
  const next = slot + skip;
  return min(next, next - size);
}

// @ts-ignore: decorator
@inline
function writeSlot(slots: usize, shift: u32, slot: u32, host: u32): void {
  if (shift == 0) store<u8>(slots + (slot as usize), host as u8);
  else if (shift == 1) store<u16>(slots + ((slot as usize) << 1), host as u16);
  else store<u32>(slots + ((slot as usize) << 2), host);
}

function measure(table: usize, hosts: usize, end: usize): void {
  let least = u32.MAX_VALUE;
  let most: u32 = 0;
  for (let host = hosts; host < end; host += MAGLEV_HOST_SIZE) {
    const count = load<u32>(host + MAGLEV_HOST_COUNT);
    least = min(least, count);
    most = max(most, count);
  }
  store<u32>(table + MAGLEV_MIN_ENTRIES, least);
  store<u32>(table + MAGLEV_MAX_ENTRIES, most);
}

/** Host of a key, by its XXH64; retry number `attempt` looks under another hash. Reads the key and the table. */
export function maglevLookupKey(table: usize, key: usize, length: u32, attempt: u32): u32 {
  let hash = xxh64(key, length, 0);
  if (attempt > 0) hash ^= 0 - (attempt as u64);
  const slot = (hash % (load<u32>(table + MAGLEV_SIZE) as u64)) as usize;
  const slots = table + TABLE_BODY;
  const shift = load<u32>(table + MAGLEV_SLOT_SHIFT);
  if (shift == 0) return load<u8>(slots + slot);
  return shift == 1 ? load<u16>(slots + (slot << 1)) : load<u32>(slots + (slot << 2));
}
