// The merged samples of one histogram, of its interval or of all time, read and scaled for the caller.

import type { HistogramMerger } from '../wasm/histogram-merger.ts';
import type { HistogramSpan } from '../wasm/stats-exports.ts';
import { argumentError, checkChoice, checkNumbers, show } from './arguments.ts';
import type { Bin, BucketMode, Distribution } from './types.ts';

const MAX_QUESTIONS = 512;

export class MergedDistribution implements Distribution {
  readonly #merger: HistogramMerger;
  readonly #cell: number;
  readonly #span: HistogramSpan;
  readonly #scale: number;
  /** The bounds asked for last, scaled: a list that is never changed, which lets the merger know it again. */
  #bounds: { readonly asked: readonly number[]; readonly scaled: readonly number[] } = { asked: [], scaled: [] };

  constructor(merger: HistogramMerger, cell: number, span: HistogramSpan, scale: number) {
    this.#merger = merger;
    this.#cell = cell;
    this.#span = span;
    this.#scale = scale;
  }

  get count(): number {
    return this.#merger.count(this.#cell, this.#span);
  }

  get sum(): number {
    return this.#merger.sum(this.#cell, this.#span) / this.#scale;
  }

  get mean(): number {
    return this.sum / this.count;
  }

  quantiles(qs: readonly number[]): Float64Array {
    checkNumbers('qs', qs, MAX_QUESTIONS);
    if (checkQuantiles(qs)) return this.#quantiles(qs);
    const order = Array.from(qs.keys()).sort((a, b) => qs[a]! - qs[b]!);
    const sorted = this.#quantiles(order.map((index) => qs[index]!));
    const values = new Float64Array(qs.length);
    for (const [at, index] of order.entries()) values[index] = sorted[at]!;
    return values;
  }

  buckets(bounds: readonly number[], mode: BucketMode = 'cumulative'): Float64Array {
    checkChoice('mode', mode, ['cumulative', 'disjoint']);
    const counts = this.#merger.cumulativeBuckets(this.#cell, this.#span, this.#knownBounds(bounds));
    if (mode === 'disjoint') for (let at = counts.length - 1; at > 0; at -= 1) counts[at]! -= counts[at - 1]!;
    return counts;
  }

  bins(): Bin[] {
    return this.#merger
      .bins(this.#cell, this.#span)
      .map(({ left, width, count }) => ({ left: left / this.#scale, width: width / this.#scale, count }));
  }

  #quantiles(qs: readonly number[]): Float64Array {
    const values = this.#merger.quantiles(this.#cell, this.#span, qs);
    if (this.#scale !== 1) for (let at = 0; at < values.length; at += 1) values[at]! /= this.#scale;
    return values;
  }

  /** The caller may change its list between two calls, so it is compared, not remembered. */
  #knownBounds(bounds: readonly number[]): readonly number[] {
    checkNumbers('bounds', bounds, MAX_QUESTIONS);
    if (!isSame(bounds, this.#bounds.asked)) {
      checkBounds(bounds);
      this.#bounds = { asked: [...bounds], scaled: bounds.map((bound) => bound * this.#scale) };
    }
    return this.#bounds.scaled;
  }
}

/** Returns whether they ascend. */
function checkQuantiles(qs: readonly number[]): boolean {
  let ascends = true;
  for (let at = 0; at < qs.length; at += 1) {
    const q = qs[at]!;
    if (!(q >= 0 && q <= 1)) throw argumentError(`qs[${at}]`, `${show(q)} is not a number from 0 to 1`);
    if (at > 0 && q < qs[at - 1]!) ascends = false;
  }
  return ascends;
}

function checkBounds(bounds: readonly number[]): void {
  for (const [at, bound] of bounds.entries()) {
    if (typeof bound === 'number' && bound >= (at === 0 ? 0 : bounds[at - 1]!)) continue;
    throw argumentError(`bounds[${at}]`, `${show(bound)} is negative or less than the one before`);
  }
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) if (a[at] !== b[at]) return false;
  return true;
}
