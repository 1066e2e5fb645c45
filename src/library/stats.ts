// The statistics of an embedded proxy as plain objects.

import type { HistogramReader, HistogramSpanName, NumericStat } from '../stats/index.ts';
import type { HistogramSpan, HistogramSummary, ProxyStats } from './types.ts';

/** What of the server the statistics are read from. */
export interface StatsOwner {
  readonly stats: {
    value(name: string): number | undefined;
    countersAndGauges(filter?: NameFilter): AsyncGenerator<readonly NumericStat[]>;
    histograms(filter?: NameFilter): AsyncGenerator<readonly HistogramReader[]>;
  };
  beforeStatsRead(): Promise<void>;
}

interface NameFilter {
  readonly prefix: string;
  readonly parts: readonly string[];
  pick(names: readonly string[]): readonly number[];
}

export class EmbeddedStats implements ProxyStats {
  readonly #owner: StatsOwner;

  constructor(owner: StatsOwner) {
    this.#owner = owner;
  }

  value(name: string): number | undefined {
    return this.#owner.stats.value(name);
  }

  counters(prefix = ''): Promise<Record<string, number>> {
    return this.#numbers('counter', prefix);
  }

  gauges(prefix = ''): Promise<Record<string, number>> {
    return this.#numbers('gauge', prefix);
  }

  async histogram(name: string): Promise<HistogramSummary | undefined> {
    await this.#owner.beforeStatsRead();
    const isName = (each: string): boolean => each === name;
    for await (const batch of this.#owner.stats.histograms(namesThat(isName, name))) {
      for (const histogram of batch) return summaryOf(histogram);
    }
    return undefined;
  }

  async #numbers(kind: NumericStat['kind'], prefix: string): Promise<Record<string, number>> {
    await this.#owner.beforeStatsRead();
    const values: Record<string, number> = {};
    const filter = prefix === '' ? undefined : namesThat((name) => name.startsWith(prefix), prefix);
    for await (const batch of this.#owner.stats.countersAndGauges(filter)) {
      for (const stat of batch) if (stat.kind === kind) values[stat.name] = stat.value;
    }
    return values;
  }
}

function namesThat(accept: (name: string) => boolean, prefix: string): NameFilter {
  const pick = (names: readonly string[]): number[] => [...names.keys()].filter((at) => accept(names[at]!));
  return { prefix, parts: [], pick };
}

function summaryOf(histogram: HistogramReader): HistogramSummary {
  const interval = spanOf(histogram, 'interval');
  return { unit: histogram.unit, interval, cumulative: spanOf(histogram, 'cumulative') };
}

function spanOf(histogram: HistogramReader, span: HistogramSpanName): HistogramSpan {
  return {
    count: histogram.count(span),
    sum: histogram.sum(span),
    quantiles: (qs) => histogram.quantiles(span, qs),
  };
}
