// A histogram of the core: checks and scales values, hands them to the recorder in batches, reads what was merged.
// Source of the rules: src/wasm/histogram-merger.ts and assembly/stats.

import type { HistogramMerger } from '../wasm/histogram-merger.ts';
import { type HistogramRecorder, isRecordable } from '../wasm/histogram-recorder.ts';
import { MAIN_SLAB, type SharedMemory } from '../wasm/shared-memory.ts';
import { HistogramSpan } from '../wasm/stats-exports.ts';
import { argumentError, checkChoice, inCoreTerms, show } from './arguments.ts';
import { MergedDistribution } from './distribution.ts';
import type { Distribution, Histogram, Unit } from './types.ts';

/** A ratio of 1 is recorded as this. */
export const PERCENT_SCALE = 1_000_000;
export const UNITS: readonly Unit[] = ['ms', 'us', 'bytes', 'percent', 'count'];

/** What all histograms of a core work with. */
export interface HistogramTools {
  readonly memory: SharedMemory;
  readonly recorder: HistogramRecorder;
  readonly merger: HistogramMerger;
  readonly maxMemoryMiB: number;
}

export class RecordedHistogram implements Histogram {
  readonly unit: Unit;
  readonly interval: Distribution;
  readonly cumulative: Distribution;
  readonly #tools: HistogramTools;
  /** Out of the tools, for record: each load on the way to the call counts there. */
  readonly #recorder: HistogramRecorder;
  readonly #cell: number;
  readonly #cellIndex: number;
  readonly #scale: number;
  #refusedCount = 0;

  constructor(tools: HistogramTools, cell: number, unit: Unit) {
    this.#tools = tools;
    this.#recorder = tools.recorder;
    this.#cell = cell;
    this.#cellIndex = tools.memory.cellIndex(cell);
    this.#scale = unit === 'percent' ? PERCENT_SCALE : 1;
    this.unit = unit;
    this.interval = new MergedDistribution(tools.merger, cell, HistogramSpan.interval, this.#scale);
    this.cumulative = new MergedDistribution(tools.merger, cell, HistogramSpan.cumulative, this.#scale);
  }

  get refusedCount(): number {
    return this.#refusedCount;
  }

  record(value: number): boolean {
    // Rounded, so that 0.57, which is a little less than 570,000 when scaled, does not fall into the bin below.
    const scaled = this.#scale === 1 ? value : Math.round(value * this.#scale);
    if (!isRecordable(scaled)) {
      this.#refusedCount += 1;
      return false;
    }
    if (!this.#recorder.record(this.#cellIndex, scaled)) this.#recordAfterRefill(scaled);
    return true;
  }

  recordMany(values: Float64Array | Uint32Array): number {
    if (!(values instanceof Float64Array || values instanceof Uint32Array)) {
      throw argumentError('values', `${show(values)} is neither a Float64Array nor a Uint32Array`);
    }
    const recorder = this.#recorder;
    const refusedBefore = recorder.refusedCount;
    let rest = this.#scale === 1 ? values : Float64Array.from(values, (value) => Math.round(value * this.#scale));
    for (;;) {
      const seen = recorder.recordMany(this.#cellIndex, rest);
      if (seen === rest.length) break;
      rest = rest.subarray(seen);
      this.#refill();
    }
    const refused = recorder.refusedCount - refusedBefore;
    this.#refusedCount += refused;
    return values.length - refused;
  }

  merge(): void {
    inCoreTerms(this.#tools.maxMemoryMiB, () => this.#tools.merger.merge(this.#cell));
  }

  #recordAfterRefill(value: number): void {
    this.#refill();
    this.#recorder.record(this.#cellIndex, value);
  }

  #refill(): void {
    inCoreTerms(this.#tools.maxMemoryMiB, () => this.#tools.merger.arenas.refill(MAIN_SLAB));
  }
}

export function checkUnit(unit: Unit): void {
  checkChoice('unit', unit, UNITS);
}
