// Statistics of merged histograms, on main. `which` is 0 for the interval, 1 for the cumulative counts.
// Results are bit for bit those of the C library whose bins these are, hence expressions are evaluated in
// exactly the order they are written in, also where another order would be cheaper. Counting is done in
// integers: sums of doubles would be the same up to 2^53 samples, and slower.

import {
  HISTOGRAM_BINS,
  HISTOGRAM_GROUP_BINS,
  HISTOGRAM_PAGES,
  MERGED_CUMULATIVE_SUMS,
  MERGED_CUMULATIVE_TOTAL,
  MERGED_HIGH_WORDS,
  MERGED_INTERVAL_BINS,
  MERGED_INTERVAL_SUMS,
  MERGED_INTERVAL_TOTAL,
  MERGED_LOW_WORDS,
  POWERS_OF_TEN_AT,
} from '../layout/shared-memory';

const PAGES: u32 = HISTOGRAM_PAGES;
const BINS: u32 = HISTOGRAM_BINS;
const GROUP: u32 = HISTOGRAM_GROUP_BINS;

/** All samples. */
export function totalCount(head: usize, which: u32): f64 {
  return samplesOf(head, which) as f64;
}

/**
 * Values at `length` quantiles, 0 to 1 and ascending from `qs` on, f64 each, written to `out`; NaN when
 * there are no samples. Rule: the bin that holds the sample of rank ceil(q * count), and in it the expected
 * place of that sample if the bin's samples lay evenly. One pass: whole pages, then whole groups, then bins.
 */
export function quantiles(head: usize, which: u32, qs: usize, length: u32, out: usize): void {
  const samples = samplesOf(head, which);
  const end = qs + ((length as usize) << 3);
  let page: u32 = 0;
  let group: u32 = 0;
  let entry: u32 = 0;
  let beforePage: u64 = 0;
  let beforeGroup: u64 = 0;
  let before: u64 = 0;
  let address = pageAddress(head, 0);
  for (; qs < end; qs += 8, out += 8) {
    if (samples == 0) {
      store<f64>(out, NaN);
      continue;
    }
    // The rank is at least 1, so that bins without samples are passed over.
    let rank = Math.ceil((samples as f64) * load<f64>(qs)) as u64;
    rank += (rank == 0) as u64;
    let upper = beforePage + pageTotal(address, which);
    if (upper < rank) {
      do {
        beforePage = upper;
        page += 1;
        address = pageAddress(head, page);
        upper += pageTotal(address, which);
      } while (upper < rank);
      group = 0;
      entry = 0;
      beforeGroup = beforePage;
      before = beforePage;
    }
    upper = beforeGroup + groupSum(address, group, which);
    if (upper < rank) {
      do {
        beforeGroup = upper;
        group += 1;
        upper += groupSum(address, group, which);
      } while (upper < rank);
      entry = group * GROUP;
      before = beforeGroup;
    }
    let count = binCount(address, entry, which);
    while (before + count < rank) {
      before += count;
      entry += 1;
      count = binCount(address, entry, which);
    }
    store<f64>(out, valueAt(page, entry, (rank - before) as f64, count as f64));
  }
}

/**
 * Samples in the bins before each of `length` positions (page * HISTOGRAM_BINS + entry), ascending u32 from
 * `positions` on; f64 each, written to `out`. One pass over all bins, whole pages and groups at once.
 */
export function bucketCounts(head: usize, which: u32, positions: usize, length: u32, out: usize): void {
  const end = positions + ((length as usize) << 2);
  let pageStart: u32 = 0;
  let group: u32 = 0;
  let beforePage: u64 = 0;
  let beforeGroup: u64 = 0;
  let address = pageAddress(head, 0);
  for (; positions < end; positions += 4, out += 8) {
    let target = load<u32>(positions) - pageStart;
    if (target > BINS) {
      do {
        beforePage += pageTotal(address, which);
        pageStart += BINS;
        target -= BINS;
        address = pageAddress(head, pageStart / BINS);
      } while (target > BINS);
      group = 0;
      beforeGroup = beforePage;
    }
    let before = beforeGroup;
    if (address != 0) {
      for (; group < target / GROUP; group++) beforeGroup += groupSum(address, group, which);
      before = beforeGroup + beginningOfGroup(address, group, target - group * GROUP, which);
    }
    store<f64>(out, before as f64);
  }
}

/** Samples in the first bins of a group, fewer than all of them. */
// @ts-ignore: decorator
@inline
function beginningOfGroup(address: usize, group: u32, length: u32, which: u32): u64 {
  const first = group * GROUP;
  // With fewer samples in the page no sum of low words can overflow, and the high words are all 0.
  if (pageTotal(address, which) <= (u32.MAX_VALUE as u64)) {
    const bins = address + ((first as usize) << 2) + (which == 0 ? MERGED_INTERVAL_BINS : MERGED_LOW_WORDS);
    return lowWordsOf(bins, length) as u64;
  }
  let sum: u64 = 0;
  for (let entry = first; entry < first + length; entry++) sum += binCount(address, entry, which);
  return sum;
}

/** The sum of as many of 20 words, without a jump: lanes from `length` on are blanked. */
// @ts-ignore: decorator
@inline
function lowWordsOf(bins: usize, length: u32): u32 {
  const end = i32x4.splat(length);
  let sum = v128.and(v128.load(bins), i32x4.gt_s(end, i32x4(0, 1, 2, 3)));
  sum = i32x4.add(sum, v128.and(v128.load(bins, 16), i32x4.gt_s(end, i32x4(4, 5, 6, 7))));
  sum = i32x4.add(sum, v128.and(v128.load(bins, 32), i32x4.gt_s(end, i32x4(8, 9, 10, 11))));
  sum = i32x4.add(sum, v128.and(v128.load(bins, 48), i32x4.gt_s(end, i32x4(12, 13, 14, 15))));
  sum = i32x4.add(sum, v128.and(v128.load(bins, 64), i32x4.gt_s(end, i32x4(16, 17, 18, 19))));
  const pairs = i32x4.add(sum, v128.shuffle<i32>(sum, sum, 2, 3, 0, 1));
  return i32x4.extract_lane(pairs, 0) + i32x4.extract_lane(pairs, 1);
}

/** Sum of all samples, each taken at the point of its bin that keeps the relative error least. */
export function sampleSum(head: usize, which: u32): f64 {
  let sum: f64 = 0;
  for (let page: u32 = 0; page < PAGES; page++) {
    const address = pageAddress(head, page);
    if (pageTotal(address, which) == 0) continue;
    for (let entry: u32 = 0; entry < BINS; entry++) {
      if (entry % GROUP == 0 && groupSum(address, entry / GROUP, which) == 0) {
        entry += GROUP - 1;
        continue;
      }
      const count = binCount(address, entry, which);
      if (count == 0 || (page == 0 && entry == 0)) continue;
      const left = leftEdge(page, entry);
      const width = binWidth(page, entry);
      sum += (count as f64) * (left + (width * left) / (2.0 * left + width));
    }
  }
  return sum;
}

function samplesOf(head: usize, which: u32): u64 {
  let samples: u64 = 0;
  for (let page: u32 = 0; page < PAGES; page++) samples += pageTotal(pageAddress(head, page), which);
  return samples;
}

/** Of the sample with this rank among the `count` samples of a bin. */
// @ts-ignore: decorator
@inline
function valueAt(page: u32, entry: u32, rank: f64, count: f64): f64 {
  // The zero bin has no width.
  if (page == 0 && entry == 0) return 0;
  return leftEdge(page, entry) + (rank / (count + 1)) * binWidth(page, entry);
}

/** (value / 10) * 10^exponent in doubles, which is not always the exact decimal; the bins are defined so. */
// @ts-ignore: decorator
@inline
function leftEdge(page: u32, entry: u32): f64 {
  if (page == 0 && entry < 10) return entry as f64;
  return ((entry as f64) / 10) * powerOfTen(page + 1);
}

// @ts-ignore: decorator
@inline
function binWidth(page: u32, entry: u32): f64 {
  return powerOfTen(page == 0 && entry < 10 ? 0 : page + 1) / 10;
}

// @ts-ignore: decorator
@inline
function powerOfTen(exponent: u32): f64 {
  return load<f64>(((exponent as usize) << 3) + POWERS_OF_TEN_AT);
}

/** 0 where no sample has ever fallen. */
// @ts-ignore: decorator
@inline
function pageAddress(head: usize, page: u32): usize {
  return load<u32>(head + ((page as usize) << 2));
}

// @ts-ignore: decorator
@inline
function pageTotal(address: usize, which: u32): u64 {
  if (address == 0) return 0;
  return load<u64>(address + (which == 0 ? MERGED_INTERVAL_TOTAL : MERGED_CUMULATIVE_TOTAL));
}

// @ts-ignore: decorator
@inline
function groupSum(address: usize, group: u32, which: u32): u64 {
  return load<u64>(address + ((group as usize) << 3) + (which == 0 ? MERGED_INTERVAL_SUMS : MERGED_CUMULATIVE_SUMS));
}

// @ts-ignore: decorator
@inline
function binCount(address: usize, entry: u32, which: u32): u64 {
  const bin = address + ((entry as usize) << 2);
  if (which == 0) return load<u32>(bin, MERGED_INTERVAL_BINS) as u64;
  return (load<u32>(bin, MERGED_LOW_WORDS) as u64) | ((load<u32>(bin, MERGED_HIGH_WORDS) as u64) << 32);
}
