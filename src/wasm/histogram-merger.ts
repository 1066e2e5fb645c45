// Facade of merging and reading histograms, on main. Merged counts lie in shared memory too, by decade; the
// baseline slab's copy of a histogram's cell holds the address of their head.

import {
  CELL_SIZE,
  CELLS_PER_SLAB,
  HISTOGRAM_BINS,
  HISTOGRAM_PAGES,
  LAYOUT_VERSION,
  MERGED_HEAD_BIT,
  MERGED_HEAD_SIZE,
  MERGED_HIGH_WORDS,
  MERGED_INTERVAL_BINS,
  MERGED_LOW_WORDS,
  MERGED_PAGE_SIZE,
} from '../../assembly/layout/shared-memory.ts';
import { AnswerPool } from './answer-pool.ts';
import { BucketBounds, checkAscending, MAX_QUESTIONS } from './bucket-bounds.ts';
import { HistogramArenas } from './histogram-arenas.ts';
import { binWidth, largestBelow, leftEdge } from './histogram-bins.ts';
import { instantiateModule } from './instantiate.ts';
import type { SharedMemory } from './shared-memory.ts';
import type { SharedMemoryOwner } from './shared-memory-owner.ts';
import { HistogramSpan, type StatsExports } from './stats-exports.ts';

/** One bin with samples. */
export interface HistogramBin {
  readonly left: number;
  readonly width: number;
  readonly count: number;
}

/** Heads and pages kept for the next histogram rather than given back to the heap. */
const UNUSED_LIMIT = 64;

export class HistogramMerger {
  readonly arenas: HistogramArenas;
  readonly #memory: SharedMemory;
  readonly #owner: SharedMemoryOwner;
  // Each export by itself: a call through a field is inlined, one through the table of exports is not.
  readonly #mergeHistogram: StatsExports['mergeHistogram'];
  readonly #totalCount: StatsExports['totalCount'];
  readonly #quantiles: StatsExports['quantiles'];
  readonly #bucketCounts: StatsExports['bucketCounts'];
  readonly #sampleSum: StatsExports['sampleSum'];
  readonly #bounds: BucketBounds;
  readonly #pool = new AnswerPool();
  /** Addresses of the quantiles asked for, the answers and the merge sources of one call. */
  readonly #questions: number;
  readonly #answers: number;
  readonly #sources: number;
  /** Merged heads and pages of released histograms. */
  readonly #unused = { heads: [] as number[], pages: [] as number[] };

  /** @throws WeirError when the module is of another layout or the memory is full. */
  constructor(owner: SharedMemoryOwner, module: WebAssembly.Module) {
    this.#owner = owner;
    this.#memory = owner.shared;
    const exports = instantiateModule<StatsExports>('stats', module, owner.memory, LAYOUT_VERSION);
    this.#mergeHistogram = exports.mergeHistogram;
    this.#totalCount = exports.totalCount;
    this.#quantiles = exports.quantiles;
    this.#bucketCounts = exports.bucketCounts;
    this.#sampleSum = exports.sampleSum;
    this.arenas = new HistogramArenas(owner.shared, owner.heap);
    this.#bounds = new BucketBounds(owner.shared, owner.heap);
    this.#questions = owner.heap.allocate(MAX_QUESTIONS * CELL_SIZE);
    this.#answers = owner.heap.allocate(MAX_QUESTIONS * CELL_SIZE);
    this.#sources = owner.heap.allocate(owner.shared.slabCount * 4);
  }

  /**
   * Takes in what all slabs have recorded since the last merge: that becomes the interval.
   * @returns whether the histogram has ever been recorded.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing is merged then, and the next merge finds all of it.
   */
  merge(cell: number): boolean {
    for (let missing = this.#tryMerge(cell); missing !== 0; missing = this.#tryMerge(cell)) {
      this.#makeMissing(cell, missing);
    }
    return this.isUsed(cell);
  }

  /** Whether the histogram has been merged with samples in it. */
  isUsed(cell: number): boolean {
    return this.#mergedHead(cell) !== 0;
  }

  count(cell: number, span: HistogramSpan): number {
    const head = this.#mergedHead(cell);
    return head === 0 ? 0 : this.#totalCount(head, span);
  }

  /** Sum of all samples as far as bins can tell. */
  sum(cell: number, span: HistogramSpan): number {
    const head = this.#mergedHead(cell);
    return head === 0 ? 0 : this.#sampleSum(head, span);
  }

  /** sum / count; NaN when there are no samples. */
  mean(cell: number, span: HistogramSpan): number {
    return this.sum(cell, span) / this.count(cell, span);
  }

  /**
   * Values at ascending quantiles (0 to 1); NaN for each when there are no samples.
   * @throws WeirError WEIR_HISTOGRAM for more than 512, descending or other quantiles.
   */
  quantiles(cell: number, span: HistogramSpan, qs: ArrayLike<number>): Float64Array {
    checkAscending('quantiles', qs, 1);
    const head = this.#mergedHead(cell);
    if (head === 0) return this.#pool.take(qs.length).fill(Number.NaN);
    const { f64 } = this.#memory;
    const first = this.#questions / CELL_SIZE;
    for (let at = 0; at < qs.length; at++) f64[first + at] = qs[at]!;
    this.#quantiles(head, span, this.#questions, qs.length, this.#answers);
    return this.#takeAnswers(qs.length);
  }

  /**
   * Samples at or below each of the ascending bounds. A bin counts when it begins at the bound or below, so
   * that with the bound 1000 the values up to 1099 are in.
   * @throws WeirError WEIR_HISTOGRAM for more than 512, negative or descending bounds.
   */
  cumulativeBuckets(cell: number, span: HistogramSpan, bounds: ArrayLike<number>): Float64Array {
    const positions = this.#bounds.positions(bounds);
    const head = this.#mergedHead(cell);
    if (head === 0) return this.#pool.take(bounds.length);
    this.#bucketCounts(head, span, positions, bounds.length, this.#answers);
    return this.#takeAnswers(bounds.length);
  }

  /** Samples at or below each bound that are in no bucket before; see cumulativeBuckets. */
  disjointBuckets(cell: number, span: HistogramSpan, bounds: ArrayLike<number>): Float64Array {
    const buckets = this.cumulativeBuckets(cell, span, bounds);
    for (let at = buckets.length - 1; at > 0; at--) buckets[at]! -= buckets[at - 1]!;
    return buckets;
  }

  /**
   * Samples beyond the last bound: all but those in bins that begin below it. A bin that begins at the bound
   * itself is therefore in the last bucket and out of bound.
   */
  outOfBound(cell: number, span: HistogramSpan, lastBound: number): number {
    // Nothing begins below 0.
    if (lastBound === 0) return this.count(cell, span);
    const below = this.cumulativeBuckets(cell, span, [largestBelow(lastBound)])[0]!;
    return this.count(cell, span) - below;
  }

  /** All bins with samples, ascending. */
  bins(cell: number, span: HistogramSpan): HistogramBin[] {
    const head = this.#mergedHead(cell);
    const bins: HistogramBin[] = [];
    for (let page = 0; head !== 0 && page < HISTOGRAM_PAGES; page++) {
      const address = this.#word(head + page * 4);
      for (let entry = 0; address !== 0 && entry < HISTOGRAM_BINS; entry++) {
        const count = this.#binCount(address, entry, span);
        const position = page * HISTOGRAM_BINS + entry;
        if (count > 0) bins.push({ left: leftEdge(position), width: binWidth(position), count });
      }
    }
    return bins;
  }

  /** Gives all memory of a histogram back. No thread may record into it any more. */
  release(cell: number): void {
    this.arenas.release(cell);
    const head = this.#mergedHead(cell);
    if (head === 0) return;
    for (let page = 0; page < HISTOGRAM_PAGES; page++) {
      const address = this.#word(head + page * 4);
      if (address !== 0) this.#giveBack(this.#unused.pages, address);
    }
    this.#giveBack(this.#unused.heads, head);
  }

  #giveBack(unused: number[], address: number): void {
    if (unused.length < UNUSED_LIMIT) unused.push(address);
    else this.#owner.heap.free(address);
  }

  /** 0 when the histogram was never merged. */
  #mergedHead(cell: number): number {
    return this.#memory.i32[this.#mergedWord(cell)]! >>> 0;
  }

  /** Index in `i32` of the word that holds the address of the merged head. */
  #mergedWord(cell: number): number {
    return (cell + this.#memory.slabCount * CELLS_PER_SLAB) * 2;
  }

  /** A mask of what the merge needs and has not got; 0 when it is done. */
  #tryMerge(cell: number): number {
    return this.#mergeHistogram(cell * CELL_SIZE, this.#memory.slabCount, this.#sources);
  }

  #makeMissing(cell: number, missing: number): void {
    if (missing & MERGED_HEAD_BIT) {
      const head = this.#take(this.#unused.heads, MERGED_HEAD_SIZE);
      this.#memory.i32[this.#mergedWord(cell)] = head;
    }
    const head = this.#mergedHead(cell);
    for (let page = 0; page < HISTOGRAM_PAGES; page++) {
      if (!(missing & (1 << page))) continue;
      const address = this.#take(this.#unused.pages, MERGED_PAGE_SIZE);
      this.#memory.i32[(head >>> 2) + page] = address;
    }
  }

  #take(unused: number[], size: number): number {
    const address = unused.pop() ?? this.#owner.heap.allocate(size);
    this.#memory.i32.fill(0, address >>> 2, (address + size) >>> 2);
    return address;
  }

  #binCount(page: number, entry: number, span: HistogramSpan): number {
    if (span === HistogramSpan.interval) return this.#word(page + MERGED_INTERVAL_BINS + entry * 4);
    const at = page + entry * 4;
    return this.#word(at + MERGED_LOW_WORDS) + this.#word(at + MERGED_HIGH_WORDS) * 2 ** 32;
  }

  #word(address: number): number {
    return this.#memory.i32[address >>> 2]! >>> 0;
  }

  #takeAnswers(length: number): Float64Array {
    const { f64 } = this.#memory;
    const first = this.#answers / CELL_SIZE;
    const answers = this.#pool.take(length);
    for (let at = 0; at < length; at++) answers[at] = f64[first + at]!;
    return answers;
  }
}
