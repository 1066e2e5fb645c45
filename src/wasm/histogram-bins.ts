// The bins of a histogram as numbers, for what is not computed in WASM: places of bounds and listings of
// bins. A position is page * HISTOGRAM_BINS + entry, and positions ascend with the values they stand for.

import { HISTOGRAM_BINS, HISTOGRAM_PAGES } from '../../assembly/layout/shared-memory.ts';
import { POWERS_OF_TEN } from './decade-tables.ts';

/** Left edge of a bin: (value / 10) * 10^exponent in doubles, which is not always the exact decimal. */
export function leftEdge(position: number): number {
  const page = Math.floor(position / HISTOGRAM_BINS);
  const entry = position % HISTOGRAM_BINS;
  if (page === 0 && entry < 10) return entry;
  return (entry / 10) * POWERS_OF_TEN[page + 1]!;
}

/** The zero bin has no width. */
export function binWidth(position: number): number {
  if (position === 0) return 0;
  const exponent = position < 10 ? 0 : Math.floor(position / HISTOGRAM_BINS) + 1;
  return POWERS_OF_TEN[exponent]! / 10;
}

/** Positions of the bins that a value can fall into; pages after the first have none below 10. */
function isBin(position: number): boolean {
  return position < HISTOGRAM_BINS || position % HISTOGRAM_BINS >= 10;
}

const BIN_POSITIONS: readonly number[] = Array.from({ length: HISTOGRAM_PAGES * HISTOGRAM_BINS }, (_, at) => at).filter(
  isBin,
);
const LEFT_EDGES = Float64Array.from(BIN_POSITIONS, leftEdge);

/** First position whose bin lies wholly above `bound`: those before it begin at the bound or below. */
export function positionAfter(bound: number): number {
  let low = 0;
  let high = LEFT_EDGES.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (LEFT_EDGES[middle]! <= bound) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : BIN_POSITIONS[low - 1]! + 1;
}

/** The largest double below a positive one; 0 for 0. */
export function largestBelow(value: number): number {
  const bits = new BigUint64Array(1);
  const view = new Float64Array(bits.buffer);
  view[0] = value;
  if (value > 0) bits[0]! -= 1n;
  return view[0];
}
