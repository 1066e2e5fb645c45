// WASM module "stats": counter and gauge cells, histograms. Every thread may run it over the one shared
// memory, so it owns nothing: no data segment, no allocator, no mutable global; addresses come from outside.

export { resetCells, sumCells, zeroTouchedCells } from './cells';
export { mergeHistogram } from './histogram-merge';
export { bucketCounts, quantiles, sampleSum, totalCount } from './histogram-read';
export { record, recordMany, recordManyIntegers } from './histogram-record';
export { layoutVersion } from './layout-version';
