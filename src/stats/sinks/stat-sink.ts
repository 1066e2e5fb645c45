// What a flush shows to whoever takes statistics elsewhere: every stat that has been used, once, a batch at a time. The arrays
// are the flush's own and hold something else with the next batch, so that no stat needs an object to be shown. Main thread.

import type { HistogramReader } from '../histogram-stat.ts';
import type { TextReadoutStat } from '../stat.ts';
import type { Tag } from '../tags/tag-producer.ts';

/** Counters or gauges of one family, all of them used; those of a large family come in several batches, one after the other. */
export interface NumericBatch {
  /** What the names are without the values of their tags. */
  readonly family: string;
  readonly length: number;
  /** In full, with all tag values in them. */
  readonly names: readonly string[];
  readonly tags: readonly (readonly Tag[])[];
  readonly values: readonly number[];
  /** What counters have counted since the flush before, which no reset changes; 0 of gauges. */
  readonly deltas: readonly number[];
}

/** Histograms of one family, all of them used; their intervals are what came since the flush before. */
export interface HistogramBatch {
  readonly family: string;
  readonly histograms: readonly HistogramReader[];
  readonly tags: readonly (readonly Tag[])[];
}

/** When, in milliseconds since the Unix epoch. */
export interface FlushTimes {
  readonly nowMs: number;
  /** The flush before, or the start. */
  readonly lastMs: number;
  /** Since when totals count. */
  readonly startMs: number;
}

/**
 * Takes the statistics of each flush. Every call returns at once: a sink that cannot pass on what it has got drops it
 * and counts what it drops. What it throws costs it the rest of the flush, and nobody else anything.
 */
export interface StatSink {
  begin?(times: FlushTimes): void;
  counters?(batch: NumericBatch): void;
  gauges?(batch: NumericBatch): void;
  histograms?(batch: HistogramBatch): void;
  textReadouts?(texts: readonly TextReadoutStat[]): void;
  /** The flush has shown everything. */
  end?(): void;
  /** Resolves when what was still to be sent is on its way, or will never be; the caller does not wait for long. */
  close(): Promise<void>;
}
