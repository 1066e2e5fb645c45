// One flush to all sinks: a single walk over the stats, in slices, in which names, tags and increments are made once for all
// of them. Main thread.

import type { FamilyBatch } from '../families.ts';
import type { HistogramReader } from '../histogram-stat.ts';
import type { NumericStat } from '../stat.ts';
import type { StatsStore } from '../store.ts';
import type { Tag } from '../tags/tag-producer.ts';
import type { FlushTimes, NumericBatch, StatSink } from './stat-sink.ts';

/** A sink has thrown; it hears nothing more of this flush. */
export type ReportSinkFault = (sink: StatSink, error: unknown) => void;

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
    for await (const batch of this.#stats.histogramFamilies()) this.#showHistograms(batch);
    const texts = this.#stats.textReadouts().filter(({ isUsed }) => isUsed);
    this.#tell((sink) => sink.textReadouts?.(texts));
    this.#tell((sink) => sink.end?.());
  }

  #showHistograms({ name: family, stats, tags }: FamilyBatch<HistogramReader>): void {
    const used = [...stats.keys()].filter((at) => stats[at]!.isUsed);
    if (used.length === 0) return;
    const histograms = used.map((at) => stats[at]!);
    const batch = { family, histograms, tags: used.map((at) => tags[at]!) };
    this.#tell((sink) => sink.histograms?.(batch));
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
