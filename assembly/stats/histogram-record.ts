// Recording into the histograms of one slab. Only the slab's owner calls this. Bins are made on first use
// from the owner's chain of blocks; when that and main's offer are used up, the sample is not taken and the
// facade keeps it for later.
//
// The bin of a whole number is found without a branch or a division that depends on it: leading zeros tell the
// decade up to one comparison, which is made by an addition, and a multiplication takes the place of the
// division. Turning a double into an integer is the dearer part, so batches do that for two at a time.

import {
  ARENA_CHAIN,
  ARENA_OFFER,
  ARENA_REFUSED,
  DECADES_AT,
  HISTOGRAM_BINS_AT,
  PAGE_FACTORS_AT,
  PAGE_FACTOR_BITS,
} from '../layout/shared-memory';

const LARGEST_VALUE: f64 = 9007199254740992;
/** Below it, truncation to a signed 32-bit integer is exact. */
const SMALL_LIMIT: f64 = 2147483648;
const PAIR_SIZE: usize = 16;
const EIGHT_DIGITS: u64 = 100000000;

/**
 * Counts one value. Touches the cell, the histogram's blocks and the arena record.
 * @param cell   address of the slab's copy of the histogram's cell.
 * @param value  0 to 2^53; fractions are cut off.
 * @returns 1, or 0 when a block was needed and there was none.
 */
export function record(cell: usize, value: f64, arena: usize): i32 {
  const head: usize = load<u32>(cell);
  if (value < SMALL_LIMIT) {
    const small = i32x4.extract_lane(i32x4.trunc_sat_f64x2_s_zero(f64x2.splat(value)), 0);
    return countOrMake(cell, head, small, arena) != 0 ? 1 : 0;
  }
  return countLarge(cell, value as u64, arena) != 0 ? 1 : 0;
}

/**
 * Counts `length` f64 values from `values` on. What is not 0 to 2^53 is passed over and counted in
 * ARENA_REFUSED.
 * @returns how many were seen before blocks ran out.
 */
export function recordMany(cell: usize, values: usize, length: u32, arena: usize): u32 {
  const zero = f64x2.splat(0);
  const limit = f64x2.splat(SMALL_LIMIT);
  const end = values + ((length as usize) << 3);
  let head: usize = load<u32>(cell);
  let at = values;
  for (; at + PAIR_SIZE <= end; at += PAIR_SIZE) {
    const pair = v128.load(at);
    if (i64x2.all_true(v128.and(f64x2.ge(pair, zero), f64x2.lt(pair, limit)))) {
      const whole = i32x4.trunc_sat_f64x2_s_zero(pair);
      const first: u32 = i32x4.extract_lane(whole, 0);
      const second: u32 = i32x4.extract_lane(whole, 1);
      const firstPage = pageOf(first);
      const secondPage = pageOf(second);
      const firstBins = binsOf(head, firstPage);
      const secondBins = binsOf(head, secondPage);
      if (head != 0 && firstBins != 0 && secondBins != 0) {
        const firstEntry = entryOf(first, firstPage);
        const secondEntry = entryOf(second, secondPage);
        bump(firstBins, firstEntry);
        bump(secondBins, secondEntry);
        continue;
      }
      head = countOrMake(cell, head, first, arena);
      if (head == 0) return seen(values, at, 3);
      head = countOrMake(cell, head, second, arena);
      if (head == 0) return seen(values, at + 8, 3);
    } else {
      if (!countAny(cell, f64x2.extract_lane(pair, 0), arena)) return seen(values, at, 3);
      if (!countAny(cell, f64x2.extract_lane(pair, 1), arena)) return seen(values, at + 8, 3);
      head = load<u32>(cell);
    }
  }
  if (at < end && !countAny(cell, load<f64>(at), arena)) return seen(values, at, 3);
  return length;
}

/** Counts `length` u32 values from `values` on, all of which have a bin; returns as recordMany. */
export function recordManyIntegers(cell: usize, values: usize, length: u32, arena: usize): u32 {
  const end = values + ((length as usize) << 2);
  let head: usize = load<u32>(cell);
  for (let at = values; at < end; at += 4) {
    head = countOrMake(cell, head, load<u32>(at), arena);
    if (head == 0) return seen(values, at, 2);
  }
  return length;
}

// @ts-ignore: decorator
@inline
function seen(from: usize, to: usize, sizeBits: u32): u32 {
  return ((to - from) >>> sizeBits) as u32;
}

/** Counts a whole number; returns the head, or 0 when a block was needed and there was none. */
// @ts-ignore: decorator
@inline
function countOrMake(cell: usize, head: usize, value: u32, arena: usize): usize {
  const page = pageOf(value);
  const entry = entryOf(value, page);
  const bins = binsOf(head, page);
  if (head == 0 || bins == 0) return countAnywhere(cell, page as u32, entry as u32, arena);
  bump(bins, entry);
  return head;
}

// @ts-ignore: decorator
@inline
function pageOf(value: u32): usize {
  const addend = load<u64>(((clz<u32>(value) as usize) << 3) + DECADES_AT);
  return ((addend + (value as u64)) >>> 32) as usize;
}

// @ts-ignore: decorator
@inline
function entryOf(value: u32, page: usize): usize {
  const factor = load<u64>((page << 3) + PAGE_FACTORS_AT);
  return (((value as u64) * factor) >>> PAGE_FACTOR_BITS) as usize;
}

/** 0 where the page is missing. Without a head the first words of the memory are read: the header, never 0. */
// @ts-ignore: decorator
@inline
function binsOf(head: usize, page: usize): usize {
  return load<u32>(head + (page << 2));
}

/** Any value, at leisure; false when a block was needed and there was none. */
function countAny(cell: usize, value: f64, arena: usize): bool {
  if (!(value >= 0 && value <= LARGEST_VALUE)) {
    store<f64>(arena + ARENA_REFUSED, load<f64>(arena + ARENA_REFUSED) + 1);
    return true;
  }
  if (value < SMALL_LIMIT) return countOrMake(cell, load<u32>(cell), value as u32, arena) != 0;
  return countLarge(cell, value as u64, arena) != 0;
}

/** Ten digits and more: each step of the loop takes a digit off. */
function countLarge(cell: usize, value: u64, arena: usize): usize {
  let page: u32 = 8;
  let entry = value / EIGHT_DIGITS;
  while (entry >= 100) {
    entry /= 10;
    page += 1;
  }
  return countAnywhere(cell, page, entry as u32, arena);
}

/** Makes what the bin needs where that is missing, then counts; returns the head or 0. */
function countAnywhere(cell: usize, page: u32, entry: u32, arena: usize): usize {
  let head: usize = load<u32>(cell);
  if (head == 0) {
    head = takeBlock(arena);
    if (head == 0) return 0;
    store<u32>(cell, head as u32);
  }
  const place = head + ((page as usize) << 2);
  if (load<u32>(place) == 0 && !makePage(head, page, arena)) return 0;
  bump(load<u32>(place), entry as usize);
  return head;
}

// @ts-ignore: decorator
@inline
function bump(bins: usize, entry: usize): void {
  const bin = bins + (entry << 2);
  store<u32>(bin, load<u32>(bin) + 1);
}

/** The head's block has room for the bins of one page, whichever is needed first. */
function makePage(head: usize, page: u32, arena: usize): bool {
  let bins = head + HISTOGRAM_BINS_AT;
  if (ownsBins(head, bins)) {
    const block = takeBlock(arena);
    if (block == 0) return false;
    bins = block + HISTOGRAM_BINS_AT;
  }
  store<u32>(head + ((page as usize) << 2), bins as u32);
  return true;
}

/** Whether a page of this head already uses the bins within the head's block. */
function ownsBins(head: usize, bins: usize): bool {
  for (let at = head; at < bins; at += 4) {
    if ((load<u32>(at) as usize) == bins) return true;
  }
  return false;
}

function takeBlock(arena: usize): usize {
  let block: u32 = load<u32>(arena + ARENA_CHAIN);
  if (block == 0) block = atomic.xchg<u32>(arena + ARENA_OFFER, 0);
  if (block == 0) return 0;
  store<u32>(arena + ARENA_CHAIN, load<u32>(block));
  store<u32>(block, 0);
  return block;
}
