// GET /page/stats: all stats with their values; names only where the caller does not have them yet. And GET /page/histogram.

import { compileNameFilter, type NameFilter } from '../../../base/name-filter.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import type { Histogram, Span, Stats } from '../../../page/data.ts';
import { endpoint } from '../../endpoint.ts';
import { text } from '../../parameter.ts';
import { textResponse } from '../../response.ts';
import type { HistogramView, StatsView } from '../../views/index.ts';
import { pageJson } from './page-json.ts';

/** More than this a browser would rather not hold. */
const MOST_STATS = 100_000;
/** Names or values that are written at a time. */
const CHUNK = 2000;

const QUANTILES = [0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1];

export const PAGE_STATS = endpoint({
  path: '/page/stats',
  help: 'All stats',
  parameters: {
    part: text('Part of the names'),
    hash: text('Hash of the names that the caller has'),
  },
  async handle({ stats, server }, { part, hash }) {
    await server.beforeStatsRead();
    const filter = part === undefined ? undefined : literalFilter(part);
    return pageJson(pieces(await collect(stats, filter), hash));
  },
});

/** @param known hash of the names that the caller has. */
async function* pieces(
  { names, kinds, values, isCut, hash }: Collected,
  known: string | undefined,
): AsyncGenerator<string> {
  const isKnown = hash.text === known;
  const start: Omit<Stats, 'names' | 'values'> = { hash: hash.text, ...(isKnown ? {} : { kinds }), isCut };
  yield `${JSON.stringify(start).slice(0, -1)},"values":[`;
  yield* chunks(values);
  if (!isKnown) {
    yield '],"names":[';
    yield* chunks(names);
  }
  yield ']}';
}

/** Of a long list, without its brackets. */
async function* chunks(items: readonly (number | string)[]): AsyncGenerator<string> {
  const slice = new TimeSlice();
  for (let from = 0; from < items.length; from += CHUNK) {
    const text = JSON.stringify(items.slice(from, from + CHUNK)).slice(1, -1);
    yield from === 0 ? text : `,${text}`;
    if (slice.isOverNow()) await slice.rest();
  }
}

export const PAGE_HISTOGRAM = endpoint({
  path: '/page/histogram',
  help: 'One histogram',
  parameters: { name: text('Name of the histogram') },
  async handle({ stats }, { name = '' }) {
    for await (const batch of stats.histograms(literalFilter(name))) {
      const found = batch.find((each) => each.name === name);
      if (found !== undefined) return pageJson(histogram(found));
    }
    return textResponse('there is no such histogram\n', 404);
  },
});

interface Collected {
  readonly names: string[];
  kinds: string;
  readonly values: (number | string)[];
  readonly hash: NamesHash;
  isCut: boolean;
}

async function collect(stats: StatsView, filter: NameFilter | undefined): Promise<Collected> {
  const all: Collected = { names: [], kinds: '', values: [], hash: new NamesHash(), isCut: false };
  for await (const batch of stats.countersAndGauges(filter)) {
    for (const { name, kind, value } of batch) add(all, name, kind === 'counter' ? 'c' : 'g', value);
    if (all.isCut) return all;
  }
  for await (const batch of stats.histograms(filter)) {
    for (const each of batch) add(all, each.name, 'h', each.count('cumulative'));
    if (all.isCut) return all;
  }
  for (const { name, value } of stats.textReadouts(filter)) add(all, name, 't', value);
  return all;
}

function add(all: Collected, name: string, kind: string, value: number | string): void {
  if (all.names.length >= MOST_STATS) {
    all.isCut = true;
    return;
  }
  all.hash.add(name, kind);
  all.names.push(name);
  all.kinds += kind;
  all.values.push(value);
}

/** FNV-1a over the names and kinds of stats, one after the other: compared with those of the same process alone. */
class NamesHash {
  #hash = 0x811c9dc5;
  #count = 0;

  add(name: string, kind: string): void {
    for (let at = 0; at < name.length; at++) this.#hash = Math.imul(this.#hash ^ name.charCodeAt(at), 0x01000193);
    this.#hash = Math.imul(this.#hash ^ 0x100 ^ kind.charCodeAt(0), 0x01000193);
    this.#count += 1;
  }

  get text(): string {
    return `${this.#count}-${(this.#hash >>> 0).toString(16)}`;
  }
}

/** Names that hold the text. */
function literalFilter(part: string): NameFilter {
  const quote = (character: string): string =>
    character > ' ' && character < '\x7f' ? `\\${character}` : `\\x{${character.codePointAt(0)!.toString(16)}}`;
  return compileNameFilter(part.replace(/[^A-Za-z0-9_]/gu, quote)).filter!;
}

function histogram(view: HistogramView): Histogram {
  const span = (name: 'interval' | 'cumulative'): Span => {
    const values = view.quantiles(name, QUANTILES);
    return {
      count: view.count(name),
      sum: view.sum(name),
      quantiles: QUANTILES.map((q, at) => [Number((100 * q).toFixed(3)), finite(values[at]!)]),
      bins: view.bins(name).map(({ left, width, count }) => [left, width, count]),
    };
  };
  return { unit: view.unit, interval: span('interval'), cumulative: span('cumulative') };
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
