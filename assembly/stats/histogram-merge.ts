// Merging, on main: what the workers have counted since the last merge becomes the interval and is added
// to the cumulative counts. The workers' counts are read while they run and never cleared, so there is
// nothing to hand over: a sample that arrives meanwhile is seen by the next merge.

import {
  HISTOGRAM_GROUP_BINS,
  HISTOGRAM_GROUPS,
  MERGED_CUMULATIVE_SUMS,
  MERGED_CUMULATIVE_TOTAL,
  MERGED_HEAD_BIT,
  MERGED_HIGH_WORDS,
  MERGED_INTERVAL_BINS,
  MERGED_INTERVAL_SUMS,
  MERGED_INTERVAL_TOTAL,
  MERGED_LOW_WORDS,
  SLAB_SIZE,
} from '../layout/shared-memory';

const GROUPS: usize = HISTOGRAM_GROUPS;
const GROUP_BYTES: usize = HISTOGRAM_GROUP_BINS * 4;
const HEAD_BIT: u32 = MERGED_HEAD_BIT;

/**
 * Merges one histogram. Reads the workers' heads and bins, writes the merged pages; `sources` is room for
 * `slabCount` u32 addresses.
 * @param cell  address of the histogram's cell in the first slab; the merged head hangs on the cell behind
 *              the last slab.
 * @returns 0 when merged, otherwise what is missing for it: bit p for page p, MERGED_HEAD_BIT for the head.
 *          Nothing is merged then; a histogram that was never recorded misses nothing.
 */
export function mergeHistogram(cell: usize, slabCount: u32, sources: usize): u32 {
  const mergedCell: usize = cell + (slabCount as usize) * SLAB_SIZE;
  let used: u32 = 0;
  for (let at = cell; at < mergedCell; at += SLAB_SIZE) {
    const head: usize = load<u32>(at);
    if (head != 0) used |= pagesOf(head);
  }
  if (used == 0) return 0;
  const merged: usize = load<u32>(mergedCell);
  if (merged == 0) return used | HEAD_BIT;
  const missing = used & ~pagesOf(merged);
  if (missing != 0) return missing;
  for (let left = used; left != 0; left &= left - 1) {
    const place = (ctz<u32>(left) as usize) << 2;
    const end = collectSources(cell, mergedCell, place, sources);
    mergePage(sources, end, load<u32>(merged + place));
  }
  return 0;
}

/** Bit p of the result is set when a head has page p. */
// @ts-ignore: decorator
@inline
function pagesOf(head: usize): u32 {
  const none = i32x4.splat(0);
  return (
    i32x4.bitmask(i32x4.ne(v128.load(head), none)) |
    (i32x4.bitmask(i32x4.ne(v128.load(head, 16), none)) << 4) |
    (i32x4.bitmask(i32x4.ne(v128.load(head, 32), none)) << 8) |
    (i32x4.bitmask(i32x4.ne(v128.load(head, 48), none)) << 12)
  );
}

/** Writes the addresses of all slabs' bins of one page from `sources` on; returns the end of the list. */
// @ts-ignore: decorator
@inline
function collectSources(cell: usize, end: usize, place: usize, sources: usize): usize {
  for (let at = cell; at < end; at += SLAB_SIZE) {
    const head: usize = load<u32>(at);
    if (head == 0) continue;
    const bins = load<u32>(head + place);
    if (bins == 0) continue;
    store<u32>(sources, bins);
    sources += 4;
  }
  return sources;
}

function mergePage(sources: usize, sourcesEnd: usize, merged: usize): void {
  let total: u64 = 0;
  for (let group: usize = 0; group < GROUPS; group++) {
    const added = mergeGroup(sources, sourcesEnd, merged, group * GROUP_BYTES);
    const sums = merged + (group << 3);
    store<u64>(sums + MERGED_INTERVAL_SUMS, added);
    store<u64>(sums + MERGED_CUMULATIVE_SUMS, load<u64>(sums + MERGED_CUMULATIVE_SUMS) + added);
    total += added;
  }
  store<u64>(merged + MERGED_INTERVAL_TOTAL, total);
  store<u64>(merged + MERGED_CUMULATIVE_TOTAL, load<u64>(merged + MERGED_CUMULATIVE_TOTAL) + total);
}

/** Merges the 20 bins at `offset` bytes of a page, four a step; returns how many samples they got. */
// @ts-ignore: decorator
@inline
function mergeGroup(sources: usize, sourcesEnd: usize, merged: usize, offset: usize): u64 {
  let bins: usize = (load<u32>(sources) as usize) + offset;
  let a = v128.load(bins);
  let b = v128.load(bins, 16);
  let c = v128.load(bins, 32);
  let d = v128.load(bins, 48);
  let e = v128.load(bins, 64);
  for (let at = sources + 4; at < sourcesEnd; at += 4) {
    bins = (load<u32>(at) as usize) + offset;
    a = i32x4.add(a, v128.load(bins));
    b = i32x4.add(b, v128.load(bins, 16));
    c = i32x4.add(c, v128.load(bins, 32));
    d = i32x4.add(d, v128.load(bins, 48));
    e = i32x4.add(e, v128.load(bins, 64));
  }
  // What the bins had before, less what they have now: the samples added, modulo 2^32.
  const at = merged + offset;
  const beforeA = v128.load(at, MERGED_LOW_WORDS);
  const beforeB = v128.load(at, MERGED_LOW_WORDS + 16);
  const beforeC = v128.load(at, MERGED_LOW_WORDS + 32);
  const beforeD = v128.load(at, MERGED_LOW_WORDS + 48);
  const beforeE = v128.load(at, MERGED_LOW_WORDS + 64);
  v128.store(at, a, MERGED_LOW_WORDS);
  v128.store(at, b, MERGED_LOW_WORDS + 16);
  v128.store(at, c, MERGED_LOW_WORDS + 32);
  v128.store(at, d, MERGED_LOW_WORDS + 48);
  v128.store(at, e, MERGED_LOW_WORDS + 64);
  a = i32x4.sub(a, beforeA);
  b = i32x4.sub(b, beforeB);
  c = i32x4.sub(c, beforeC);
  d = i32x4.sub(d, beforeD);
  e = i32x4.sub(e, beforeE);
  v128.store(at, a, MERGED_INTERVAL_BINS);
  v128.store(at, b, MERGED_INTERVAL_BINS + 16);
  v128.store(at, c, MERGED_INTERVAL_BINS + 32);
  v128.store(at, d, MERGED_INTERVAL_BINS + 48);
  v128.store(at, e, MERGED_INTERVAL_BINS + 64);
  // Adding up in 32 bits is right while no bin got 2^29 samples, and no count wraps that was below 2^31.
  const before = v128.or(v128.or(v128.or(beforeA, beforeB), v128.or(beforeC, beforeD)), beforeE);
  const added = v128.or(v128.or(v128.or(a, b), v128.or(c, d)), e);
  const isLarge = v128.or(
    v128.and(before, i32x4.splat(0x80000000)),
    v128.and(added, i32x4.splat(0xe0000000)),
  );
  if (v128.any_true(isLarge)) return carry(merged, offset);
  const sum = i32x4.add(i32x4.add(i32x4.add(a, b), i32x4.add(c, d)), e);
  const halves = i64x2.add(i64x2.extend_low_i32x4_u(sum), i64x2.extend_high_i32x4_u(sum));
  return i64x2.extract_lane(halves, 0) + i64x2.extract_lane(halves, 1);
}

/** Counts up the high words where a low word has wrapped; returns the samples of the group's interval. */
function carry(merged: usize, offset: usize): u64 {
  let total: u64 = 0;
  for (let at = merged + offset; at < merged + offset + GROUP_BYTES; at += 4) {
    const added = load<u32>(at + MERGED_INTERVAL_BINS);
    const hasWrapped = load<u32>(at + MERGED_LOW_WORDS) < added;
    store<u32>(at + MERGED_HIGH_WORDS, load<u32>(at + MERGED_HIGH_WORDS) + (hasWrapped as u32));
    total += added as u64;
  }
  return total;
}
