// Sums and clears of stretches of cells, two at a time. A stretch lies within one slab, so the same cells
// of the next slab are SLAB_SIZE bytes further; behind the last slab lies the baseline, what counters stood
// at when they were last reset. Cells of a running worker are read while it writes them: aligned 64-bit
// reads do not tear.

import { CELL_SIZE, SLAB_SIZE } from '../layout/shared-memory';

const PAIR_SIZE: usize = 2 * CELL_SIZE;

/**
 * Writes the totals of `count` cells to `out`: all slabs, less the baseline where there is one.
 * Reads `slabCount` slabs and the baseline from `cells` on, writes count * 8 bytes at `out`.
 */
export function sumCells(cells: usize, count: u32, slabCount: u32, out: usize): void {
  const end: usize = cells + ((count & ~1) as usize) * CELL_SIZE;
  let at = cells;
  while (at < end) {
    v128.store(out, f64x2.sub(sumPair(at, slabCount), baselinePair(at, slabCount)));
    at += PAIR_SIZE;
    out += PAIR_SIZE;
  }
  if (count & 1) store<f64>(out, sumOne(at, slabCount) - baselineOne(at, slabCount));
}

/** Copies the totals of `count` cells into their baseline. Writes the baseline only. */
export function resetCells(cells: usize, count: u32, slabCount: u32): void {
  const baseline: usize = (slabCount as usize) * SLAB_SIZE;
  const end: usize = cells + (count as usize) * CELL_SIZE;
  for (let at = cells; at < end; at += CELL_SIZE) store<f64>(at + baseline, sumOne(at, slabCount));
}

/** Sets `count` cells of one slab to 0 where they were ever touched; -0 stays -0. */
export function zeroTouchedCells(cells: usize, count: u32): void {
  const untouched = f64x2.splat(-0.0);
  const end: usize = cells + ((count & ~1) as usize) * CELL_SIZE;
  let at = cells;
  for (; at < end; at += PAIR_SIZE) {
    v128.store(at, v128.and(i64x2.eq(v128.load(at), untouched), untouched));
  }
  if (count & 1 && load<u64>(at) != reinterpret<u64>(-0.0)) store<f64>(at, 0);
}

// @ts-ignore: decorator
@inline
function sumPair(at: usize, slabCount: u32): v128 {
  let sum = v128.load(at);
  for (let slab: u32 = 1; slab < slabCount; slab++) sum = f64x2.add(sum, v128.load(at + (slab as usize) * SLAB_SIZE));
  return sum;
}

// @ts-ignore: decorator
@inline
function sumOne(at: usize, slabCount: u32): f64 {
  let sum = load<f64>(at);
  for (let slab: u32 = 1; slab < slabCount; slab++) sum += load<f64>(at + (slab as usize) * SLAB_SIZE);
  return sum;
}

/** The baseline with -0 read as 0: -0 less 0 is -0, so that an untouched sum stays one. */
// @ts-ignore: decorator
@inline
function baselinePair(at: usize, slabCount: u32): v128 {
  return f64x2.add(v128.load(at + (slabCount as usize) * SLAB_SIZE), f64x2.splat(0.0));
}

// @ts-ignore: decorator
@inline
function baselineOne(at: usize, slabCount: u32): f64 {
  return load<f64>(at + (slabCount as usize) * SLAB_SIZE) + 0.0;
}
