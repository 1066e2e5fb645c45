// What a metric is called and in which unit it is shown, in either of two ways: as dashboards know the stats, or by the rules
// that Prometheus gives for names (https://prometheus.io/docs/practices/naming): counters end with `_total`, nothing else does,
// times are in seconds.

import { metricName } from './prometheus-names.ts';

export const METRIC_STYLES = ['native', 'strict'] as const;
export type MetricStyle = (typeof METRIC_STYLES)[number];

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary';

export interface Metric {
  readonly name: string;
  readonly type: MetricType;
  /** Values are multiplied with it. */
  readonly scale: number;
  /** Undefined where metrics have no explanation. */
  readonly help: string | undefined;
}

export interface MetricSource {
  readonly namespace: string;
  readonly extractedName: string;
  readonly type: MetricType;
  /** Of a histogram's values. */
  readonly unit?: string;
}

export function metricOf(style: MetricStyle, source: MetricSource): Metric {
  const { namespace, extractedName, type } = source;
  if (style === 'native') return { name: metricName(namespace, extractedName), type, scale: 1, help: undefined };
  const { words, scale } = baseUnit(extractedName.split(/[^a-zA-Z0-9]+/).filter(Boolean), source.unit);
  return {
    name: withSuffix([namespace, ...words].join('_'), type),
    type,
    scale,
    // As a word of its own: what it is derived from can be looked up.
    help: `The stat ${extractedName.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
  };
}

const TOTAL = '_total';
/** What is left of the names of counters by response code: their sum is a counter of its own. */
const BY_CODE = /stream_rq$/;
/** Ends that only the parts of a histogram may have. */
const PART = /_(?:count|sum|bucket|info)$/;

function withSuffix(name: string, type: MetricType): string {
  const bare = name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name;
  if (type === 'counter') return (BY_CODE.test(name) ? `${name}_by_code` : bare) + TOTAL;
  return type === 'gauge' && PART.test(bare) ? `${bare}_value` : bare;
}

/** Words for units, and what has to be done with a value for the base unit. */
const UNITS: Readonly<Record<string, readonly [word: string, scale: number]>> = {
  ms: ['seconds', 1e-3],
  us: ['seconds', 1e-6],
  days: ['seconds', 86_400],
  // Such histograms are read as shares of 1 already.
  percent: ['ratio', 1],
};

function baseUnit(words: readonly string[], unit: string | undefined): { words: readonly string[]; scale: number } {
  const at = words.findIndex((word) => Object.hasOwn(UNITS, word));
  if (at >= 0) {
    const [word, scale] = UNITS[words[at]!]!;
    return { words: words.with(at, word), scale };
  }
  const [word, scale] = unit === undefined ? [] : (UNITS[unit] ?? []);
  return word === undefined || scale === undefined ? { words, scale: 1 } : { words: [...words, word], scale };
}
