// The exports of assembly/stats/index.ts. Addresses in bytes, counts as u32; `which` is a HistogramSpan.

import type { WasmExports } from './instantiate.ts';

export interface StatsExports extends WasmExports {
  sumCells(cells: number, count: number, slabCount: number, out: number): void;
  resetCells(cells: number, count: number, slabCount: number): void;
  zeroTouchedCells(cells: number, count: number): void;
  record(cell: number, value: number, arena: number): number;
  recordMany(cell: number, values: number, length: number, arena: number): number;
  recordManyIntegers(cell: number, values: number, length: number, arena: number): number;
  mergeHistogram(cell: number, slabCount: number, sources: number): number;
  totalCount(head: number, which: number): number;
  quantiles(head: number, which: number, qs: number, length: number, out: number): void;
  bucketCounts(head: number, which: number, positions: number, length: number, out: number): void;
  sampleSum(head: number, which: number): number;
}

/** Samples between the last two merges, or all since the start. */
export const HistogramSpan = { interval: 0, cumulative: 1 } as const;
export type HistogramSpan = (typeof HistogramSpan)[keyof typeof HistogramSpan];
