// One flush to all sinks: a single walk over the stats, in slices, in which names, tags and increments are made once for all
// of them. Main thread.

import { TimeSlice } from '../../base/time-slice.ts';
import type { FamilyBatch } from '../families.ts';
import type { HistogramReader } from '../histogram-stat.ts';
import type { NumericStat } from '../stat.ts';
import type { StatsStore } from '../store.ts';
import type { Tag } from '../tags/tag-producer.ts';
import type { FlushTimes, NumericBatch, StatSink } from './stat-sink.ts';

/** A sink has thrown; it hears nothing more of this flush. */
export type ReportSinkFault = (sink: StatSink, error: unknown) => void;

const HISTOGRAMS_AT_A_TIME = 16;

export class SinkFlush {
  readonly #stats: StatsStore;
  readonly #report: ReportSinkFault;
  readonly #numeric = new UsedNumeric();
  /** Those that have thrown nothing in this flush. */
  #sinks: StatSink[] = [];

  constructor(stats: StatsStore, report: ReportSinkFault) {
    this.#stats = stats;
    this.#report = report;
  }

  /** Not to be called again before it has resolved. */
  async run(sinks: readonly StatSink[], times: FlushTimes): Promise<void> {
    this.#sinks = [...sinks];
    this.#tell((sink) => sink.begin?.(times));
    for await (const batch of this.#stats.numericFamilies('counter')) {
      if (this.#numeric.fill(batch)) this.#tell((sink) => sink.counters?.(this.#numeric));
    }
    for await (const batch of this.#stats.numericFamilies('gauge')) {
      if (this.#numeric.fill(batch)) this.#tell((sink) => sink.gauges?.(this.#numeric));
    }
    const slice = new TimeSlice();
    for await (const batch of this.#stats.histogramFamilies()) await this.#showHistograms(batch, slice);
    const texts = this.#stats.textReadouts().filter(({ isUsed }) => isUsed);
    this.#tell((sink) => sink.textReadouts?.(texts));
    this.#tell((sink) => sink.end?.());
  }

  /** A few at a time: a sink may make a hundred lines of one. */
  async #showHistograms({ name: family, stats, tags }: FamilyBatch<HistogramReader>, slice: TimeSlice): Promise<void> {
    const used = [...stats.keys()].filter((at) => stats[at]!.isUsed);
    for (let from = 0; from < used.length; from += HISTOGRAMS_AT_A_TIME) {
      if (slice.isOverNow()) await slice.rest();
      const shown = used.slice(from, from + HISTOGRAMS_AT_A_TIME);
      const batch = { family, histograms: shown.map((at) => stats[at]!), tags: shown.map((at) => tags[at]!) };
      this.#tell((sink) => sink.histograms?.(batch));
    }
  }

  #tell(call: (sink: StatSink) => void): void {
    for (const sink of this.#sinks) {
      try {
        call(sink);
      } catch (error) {
        this.#sinks = this.#sinks.filter((other) => other !== sink);
        this.#report(sink, error);
      }
    }
  }
}

/** The arrays that all batches are shown in. */
class UsedNumeric implements NumericBatch {
  family = '';
  readonly names: string[] = [];
  readonly tags: (readonly Tag[])[] = [];
  readonly values: number[] = [];
  readonly deltas: number[] = [];

  get length(): number {
    return this.names.length;
  }

  /** @returns false when none of them has been used. */
  fill({ name, stats, tags }: FamilyBatch<NumericStat>): boolean {
    this.family = name;
    let length = 0;
    for (let at = 0; at < stats.length; at++) {
      const stat = stats[at]!;
      if (!stat.isUsed) continue;
      this.names[length] = stat.name;
      this.tags[length] = tags[at]!;
      this.values[length] = stat.value;
      this.deltas[length] = stat.takeIncrement();
      length += 1;
    }
    for (const list of [this.names, this.tags, this.values, this.deltas]) list.length = length;
    return length > 0;
  }
}
