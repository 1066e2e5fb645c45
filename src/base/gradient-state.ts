// What the workers know together of one limit: words in memory that all of them see.
//
//   i32[0]  lock            i32[1]  limit           i32[2]  latency is being measured
//   i32[3]  samples         i32[4]  limit before the measurement             i32[5]  updates in a row that found the least limit
//   i32[6]  has begun       i32[7]  unused
//   f64[4]  latency of an idle upstream, us         f64[5]  next update, ms  f64[6]  next measurement, ms
//   f64[7]  start of the last measurement, ms       then latencies by size (latency-counts.ts)
//
// Times are of the system's monotonic clock. Only who has the lock writes, but for samples and the counts of latencies.

import { LATENCY_COUNTS_BYTES, LatencyCounts } from './latency-counts.ts';

const LOCK = 0;
const LIMIT = 1;
const MEASURING = 2;
const SAMPLES = 3;
const FORMER_LIMIT = 4;
const LEAST_IN_A_ROW = 5;
const BEGUN = 6;
const MIN_LATENCY = 4;
const NEXT_UPDATE = 5;
const NEXT_MEASUREMENT = 6;
const MEASURED_SINCE = 7;
const HEAD_BYTES = 64;

export function makeGradientState(): SharedArrayBuffer {
  return new SharedArrayBuffer(HEAD_BYTES + LATENCY_COUNTS_BYTES);
}

export class GradientState {
  readonly latencies: LatencyCounts;
  readonly #words: Int32Array<ArrayBufferLike>;
  readonly #numbers: Float64Array<ArrayBufferLike>;

  constructor(memory: ArrayBufferLike) {
    this.latencies = new LatencyCounts(memory, HEAD_BYTES);
    this.#words = new Int32Array(memory, 0, HEAD_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#numbers = new Float64Array(memory, 0, HEAD_BYTES / Float64Array.BYTES_PER_ELEMENT);
  }

  /** Does it, unless another thread is doing something of the kind. */
  locked(act: () => void): void {
    if (Atomics.compareExchange(this.#words, LOCK, 0, 1) !== 0) return;
    try {
      act();
    } finally {
      Atomics.store(this.#words, LOCK, 0);
    }
  }

  get hasBegun(): boolean {
    return Atomics.load(this.#words, BEGUN) !== 0;
  }

  set hasBegun(has: boolean) {
    Atomics.store(this.#words, BEGUN, Number(has));
  }

  get limit(): number {
    return Atomics.load(this.#words, LIMIT);
  }

  set limit(limit: number) {
    Atomics.store(this.#words, LIMIT, limit);
  }

  get isMeasuring(): boolean {
    return Atomics.load(this.#words, MEASURING) !== 0;
  }

  set isMeasuring(is: boolean) {
    Atomics.store(this.#words, MEASURING, Number(is));
  }

  get samples(): number {
    return Atomics.load(this.#words, SAMPLES);
  }

  get formerLimit(): number {
    return Atomics.load(this.#words, FORMER_LIMIT);
  }

  set formerLimit(limit: number) {
    Atomics.store(this.#words, FORMER_LIMIT, limit);
  }

  get leastInARow(): number {
    return Atomics.load(this.#words, LEAST_IN_A_ROW);
  }

  set leastInARow(count: number) {
    Atomics.store(this.#words, LEAST_IN_A_ROW, count);
  }

  get minLatencyUs(): number {
    return this.#numbers[MIN_LATENCY]!;
  }

  set minLatencyUs(us: number) {
    this.#numbers[MIN_LATENCY] = us;
  }

  get nextUpdateMs(): number {
    return this.#numbers[NEXT_UPDATE]!;
  }

  set nextUpdateMs(ms: number) {
    this.#numbers[NEXT_UPDATE] = ms;
  }

  get nextMeasurementMs(): number {
    return this.#numbers[NEXT_MEASUREMENT]!;
  }

  set nextMeasurementMs(ms: number) {
    this.#numbers[NEXT_MEASUREMENT] = ms;
  }

  get measuredSinceMs(): number {
    return this.#numbers[MEASURED_SINCE]!;
  }

  set measuredSinceMs(ms: number) {
    this.#numbers[MEASURED_SINCE] = ms;
  }

  addSample(us: number): void {
    this.latencies.add(us);
    Atomics.add(this.#words, SAMPLES, 1);
  }

  /** @returns undefined where there are no samples. */
  takeQuantile(share: number): number | undefined {
    const us = this.latencies.quantile(share);
    this.forgetSamples();
    return us;
  }

  forgetSamples(): void {
    Atomics.store(this.#words, SAMPLES, 0);
    this.latencies.clear();
  }
}
