// Histograms: record one and many, merge, and the questions that a listing of statistics asks.

import { createCore, type Histogram } from '../../core/index.ts';
import type { BenchCase, OpenCase } from '../case.ts';
import { once } from '../once.ts';
import { PlainHistogram } from '../twins/histogram.ts';

const QUANTILES = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1];
const BOUNDS = [
  0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000,
  3_600_000,
];
/** A power of two, so that going round is a mask. */
const SAMPLES = 4096;

/** Latencies in microseconds, log-normal around 2 ms: the same in every run. */
function latencies(): Float64Array {
  let state = 7;
  const uniform = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  return Float64Array.from({ length: SAMPLES }, () => {
    const normal = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    return Math.floor(2000 * Math.exp(normal));
  });
}

/** Evenly over the logarithm of 1 to 10^9: bins of nine decades are in use. */
function wide(): Float64Array {
  return Float64Array.from({ length: SAMPLES }, (_, index) => Math.floor(10 ** ((9 * index) / SAMPLES)));
}

export function histogramCases(): readonly BenchCase[] {
  const core = once(createCore);
  let made = 0;
  const fresh = (): Histogram => {
    made += 1;
    return core().histogram(`latency ${made}`, { unit: 'us' });
  };
  const row = (name: string, open: () => OpenCase): BenchCase => ({ suite: 'histogram', name, open });
  return [
    row('record one latency', () => openRecord(fresh())),
    row('record many, 64 at once, each', () => openRecordMany(fresh(), 64)),
    row('record many, 4096 at once, each', () => openRecordMany(fresh(), SAMPLES)),
    row('merge latencies', () => openMerge(fresh())),
    row('10 quantiles of nine decades', () => openQuantiles(fresh())),
    row('19 bucket counts of nine decades', () => openBuckets(fresh())),
  ];
}

function openRecord(histogram: Histogram): OpenCase {
  const values = latencies();
  const twin = new PlainHistogram();
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) histogram.record(values[n & (SAMPLES - 1)]!);
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.record(values[n & (SAMPLES - 1)]!);
    },
  };
}

function openRecordMany(histogram: Histogram, length: number): OpenCase {
  const values = latencies().subarray(0, length);
  const twin = new PlainHistogram();
  return {
    operationsEach: length,
    subject: (times) => {
      for (let n = 0; n < times; n += 1) histogram.recordMany(values);
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.recordMany(values);
    },
  };
}

/** Sixteen new samples for each merge, so that there is something to merge; recording them is in the time. */
function openMerge(histogram: Histogram): OpenCase {
  const values = latencies();
  const few = values.subarray(0, 16);
  const active = new PlainHistogram();
  const merged = new PlainHistogram();
  histogram.recordMany(values);
  active.recordMany(values);
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) {
        histogram.recordMany(few);
        histogram.merge();
      }
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) {
        active.recordMany(few);
        merged.mergeAndClear(active);
      }
    },
  };
}

function openQuantiles(histogram: Histogram): OpenCase {
  const twin = fillWide(histogram);
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) histogram.cumulative.quantiles(QUANTILES);
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.quantiles(QUANTILES);
    },
  };
}

function openBuckets(histogram: Histogram): OpenCase {
  const twin = fillWide(histogram);
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) histogram.cumulative.buckets(BOUNDS);
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.cumulativeBuckets(BOUNDS);
    },
  };
}

/** Returns a twin with the same samples. */
function fillWide(histogram: Histogram): PlainHistogram {
  const values = wide();
  const twin = new PlainHistogram();
  histogram.recordMany(values);
  histogram.merge();
  twin.recordMany(values);
  return twin;
}
