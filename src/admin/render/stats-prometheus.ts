// GET /stats/prometheus: text format 0.0.4, or OpenMetrics 1.0. Metrics by kind (counters, gauges, text readouts, histograms,
// then hosts), each kind in the order of the names without tag values.
//
// OpenMetrics wants the samples of a counter to end with `_total`. Stats that do not are of unknown type there: their names are
// what dashboards look for, whichever of the two formats a scraper has asked for.

import type { ClusterView, FamilyView, HistogramView, NumericStatView, StatsView } from '../views/index.ts';
import type { HistogramForm } from './histogram-text.ts';
import { type HostSeries, hostFamilies } from './host-series.ts';
import { type Metric, type MetricSource, type MetricStyle, metricOf } from './metric-style.ts';
import { canonicalNumber, escapeLabel, labelsText, numberText } from './prometheus-names.ts';
import { asksFor, type StatSelection, USUAL_QUANTILES, wanted } from './stat-selection.ts';

export interface PrometheusOptions {
  readonly selection: StatSelection;
  /** First word of all metrics and of labels for tags of this build. */
  readonly namespace: string;
  readonly style: MetricStyle;
  readonly isOpenMetrics: boolean;
  readonly showsTexts: boolean;
  /** Clusters whose hosts have series. */
  readonly hostsOf: Iterable<ClusterView>;
}

export async function* statsPrometheus(stats: StatsView, options: PrometheusOptions): AsyncGenerator<string> {
  const { selection, showsTexts, isOpenMetrics, hostsOf } = options;
  const { filter } = selection;
  const writer = new MetricWriter(options);
  if (asksFor(selection, 'Counters')) {
    for await (const batch of stats.numericFamilies('counter', filter)) yield writer.numbers('counter', batch);
  }
  if (asksFor(selection, 'Gauges')) {
    for await (const batch of stats.numericFamilies('gauge', filter)) yield writer.numbers('gauge', batch);
  }
  if (showsTexts && asksFor(selection, 'TextReadouts')) {
    for (const text of wanted(selection, stats.textReadouts(filter))) yield writer.text(text);
  }
  if (asksFor(selection, 'Histograms')) {
    for await (const batch of stats.histogramFamilies(filter)) yield writer.histograms(batch);
  }
  for await (const batch of hostFamilies(hostsOf, selection, stats)) yield writer.hosts(batch);
  if (isOpenMetrics) yield '# EOF\n';
}

const TOTAL = '_total';

class MetricWriter {
  readonly #options: PrometheusOptions;
  readonly #taken = new Set<string>();
  /** Of the family that is being written. */
  #family = '';
  #metric: Metric = { name: '', type: 'gauge', scale: 1, help: undefined };
  /** The lines before the first sample, until it is written. */
  #head = '';

  constructor(options: PrometheusOptions) {
    this.#options = options;
  }

  numbers(type: 'counter' | 'gauge', { name, stats, tags }: FamilyView<NumericStatView>): string {
    this.#begin({ extractedName: name, type });
    const { usedOnly } = this.#options.selection;
    let lines = '';
    for (const [at, stat] of stats.entries()) {
      if (!usedOnly || stat.isUsed) lines += this.#sample('', this.#labels(tags[at]!), stat.value);
    }
    return this.#withHead(lines);
  }

  text({ extractedName, tags, value }: ReturnType<StatsView['textReadouts']>[number]): string {
    this.#begin({ extractedName, type: 'gauge' });
    return this.#withHead(this.#sample('', join(this.#labels(tags), `text_value="${escapeLabel(value)}"`), 0));
  }

  histograms({ name, stats, tags }: FamilyView<HistogramView>): string {
    const { usedOnly, histogramForm } = this.#options.selection;
    const isSummary = histogramForm === 'summary';
    const { unit } = stats[0]!;
    this.#begin({ extractedName: name, type: isSummary ? 'summary' : 'histogram', unit });
    let lines = '';
    for (const [at, histogram] of stats.entries()) {
      if (usedOnly && !histogram.isUsed) continue;
      const labels = this.#labels(tags[at]!);
      lines += isSummary ? this.#quantiles(histogram, labels) : this.#buckets(histogram, labels, histogramForm);
      lines += this.#sample('_sum', labels, scaled(histogram.sum('cumulative'), this.#metric.scale));
      lines += this.#sample('_count', labels, histogram.count('cumulative'));
    }
    return this.#withHead(lines);
  }

  hosts({ extractedName, type, samples }: HostSeries): string {
    this.#begin({ extractedName, type });
    return this.#withHead(samples.map(({ tags, value }) => this.#sample('', this.#labels(tags), value)).join(''));
  }

  #quantiles(histogram: HistogramView, labels: string): string {
    const { quantiles = USUAL_QUANTILES } = this.#options.selection;
    const values = histogram.quantiles(
      'interval',
      quantiles.map(({ share }) => share),
    );
    let lines = '';
    for (const [at, { share }] of quantiles.entries()) {
      lines += this.#sample(
        '',
        join(labels, `quantile="${this.#bound(share)}"`),
        scaled(values[at]!, this.#metric.scale),
      );
    }
    return lines;
  }

  #buckets(histogram: HistogramView, labels: string, form: HistogramForm): string {
    const { bounds, counts } = form === 'detailed' ? binBounds(histogram) : configuredBounds(histogram);
    const { scale } = this.#metric;
    let lines = '';
    for (let at = 0; at < bounds.length; at++) {
      lines += this.#bucket(labels, this.#bound(scaled(bounds[at]!, scale)), counts[at]!);
    }
    return lines + this.#bucket(labels, '+Inf', histogram.count('cumulative'));
  }

  #bucket(labels: string, bound: string, count: number): string {
    return `${this.#metric.name}_bucket{${join(labels, `le="${bound}"`)}} ${numberText(count)}\n`;
  }

  #sample(suffix: string, labels: string, value: number): string {
    const { scale, type } = this.#metric;
    const shown = suffix === '' && (type === 'counter' || type === 'gauge') ? scaled(value, scale) : value;
    return `${this.#metric.name}${suffix}{${labels}} ${numberText(shown)}\n`;
  }

  #bound(value: number): string {
    return this.#options.isOpenMetrics ? canonicalNumber(value) : numberText(value);
  }

  #labels(tags: Parameters<typeof labelsText>[1]): string {
    return labelsText(this.#options.namespace, tags);
  }

  /** A family may come in several batches; what is written before its first sample is written once. */
  #begin(source: Omit<MetricSource, 'namespace'>): void {
    const family = `${source.type} ${source.extractedName}`;
    if (family === this.#family) return;
    this.#family = family;
    const { style, namespace, isOpenMetrics } = this.#options;
    const metric = metricOf(style, { ...source, namespace });
    this.#metric = { ...metric, name: this.#unusedName(metric) };
    this.#head = isOpenMetrics ? this.#openMetricsHead() : headLines(this.#metric.name, metric.type, metric.help);
  }

  /** Different stats may get the same name; a name that has been written must not come a second time. */
  #unusedName({ name, type }: Metric): string {
    const names = [name, `${name}_${type}`];
    for (let at = 2; names.every((each) => this.#isTaken(each, type)); at++) names.push(`${name}_${type}_${at}`);
    const unused = names.find((each) => !this.#isTaken(each, type))!;
    for (const each of seriesNames(unused, type)) this.#taken.add(each);
    return unused;
  }

  /**
   * The family of a counter is its name without `_total`, which may be that of another stat: then the counter is of unknown type, as
   * one is whose name does not end so.
   */
  #openMetricsHead(): string {
    const { name, type, help } = this.#metric;
    if (type !== 'counter') return headLines(name, type, help);
    const family = name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name;
    if (family === name || this.#taken.has(family)) return headLines(name, 'unknown', help);
    this.#taken.add(family);
    return headLines(family, type, help);
  }

  #isTaken(name: string, type: Metric['type']): boolean {
    return seriesNames(name, type).some((each) => this.#taken.has(each));
  }

  #withHead(lines: string): string {
    if (lines === '') return '';
    const text = this.#head + lines;
    this.#head = '';
    return text;
  }
}

/** Bounds in another unit are the nearest numbers with few digits, not products with the errors of doubles. */
function scaled(value: number, scale: number): number {
  return scale === 1 ? value : Number((value * scale).toPrecision(12));
}

const SUFFIXES = {
  counter: [''],
  gauge: [''],
  histogram: ['', '_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

function seriesNames(name: string, type: Metric['type']): readonly string[] {
  return SUFFIXES[type].map((suffix) => name + suffix);
}

function headLines(family: string, type: string, help: string | undefined): string {
  return `${help === undefined ? '' : `# HELP ${family} ${help}\n`}# TYPE ${family} ${type}\n`;
}

function configuredBounds(histogram: HistogramView): { bounds: ArrayLike<number>; counts: ArrayLike<number> } {
  const bounds = histogram.bucketBounds;
  return { bounds, counts: histogram.buckets('cumulative', bounds) };
}

/** Every bin with samples is a bucket. */
function binBounds(histogram: HistogramView): { bounds: readonly number[]; counts: readonly number[] } {
  const bins = histogram.bins('cumulative');
  const counts: number[] = [];
  for (const { count } of bins) counts.push((counts.at(-1) ?? 0) + count);
  return { bounds: bins.map(({ left, width }) => left + width), counts };
}

function join(labels: string, last: string): string {
  return labels === '' ? last : `${labels},${last}`;
}
