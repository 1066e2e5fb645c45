// Filters of listings, and stats by family: both against the plain way, which makes every name and looks at it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compileNameFilter, type NameFilter } from '../../../src/base/name-filter.ts';
import { type StatsStore, statTable, type TagOptions } from '../../../src/stats/index.ts';
import { TagProducer } from '../../../src/stats/tags/tag-producer.ts';
import { statsFixture } from '../../support/stats.ts';

const ROWS = statTable({
  upstream_cx_total: 'counter',
  'retry.upstream_rq_503': 'counter',
  upstream_rq_5xx: 'counter',
  upstream_rq_404: 'counter',
  upstream_cx_active: 'gauge',
  'ssl.ciphers.AES': 'counter',
  'worker_1.watchdog_miss': 'counter',
  upstream_rq_time: 'histogram:ms',
});
const PREFIXES = [
  '',
  'cluster.a.',
  'cluster.b.',
  'cluster.a.b.',
  'cluster.a-b.',
  'cluster.http_local_rate_limit.',
  'cluster.x.http_local_rate_limit.',
  'http.admin.',
  'http.in.rds.r.',
  'listener.admin.',
  'listener.127.0.0.1_80.',
  'listener.[__1]_80.',
  'listener_manager.worker_0.',
  'server.',
  'server.worker_1.',
  'vhost.v.',
  'auth.clientssl.',
  'mongo.m.',
];
const TAGS: readonly TagOptions[] = [
  {},
  { useAllDefaultTags: false },
  { useAllDefaultTags: false, defaultTags: ['proxy.response_code'], fixedTags: [{ name: 'site', value: 'x' }] },
  { regexTags: [{ name: 'word', regex: /^cluster\.((a)\.?)/d }] },
];
const FILTERS = [
  '',
  'cluster',
  '^cluster\\.a\\.',
  'a\\.upstream',
  'upstream_rq_',
  '\\.b\\.ret',
  'total$',
  'a|b',
  '^$',
  'rq_(5|t)',
  '[^a]_5',
];

function storeOf(prefixes: readonly string[], tags: TagOptions): StatsStore {
  const { store } = statsFixture({ tags });
  for (const prefix of prefixes) {
    const scope = store.scope(prefix);
    scope.allocate(ROWS);
    scope.counter('upstream_rq_200').add();
    scope.counter('own').add();
    scope.derive({ rowsByName: [{ name: 'derived', index: 0, read: () => 1 }] }, undefined);
  }
  return store;
}

async function plainList(store: StatsStore): Promise<{ name: string; kind: string }[]> {
  const all: { name: string; kind: string }[] = [];
  for await (const batch of store.countersAndGauges()) for (const { name, kind } of batch) all.push({ name, kind });
  for await (const batch of store.histograms()) for (const { name } of batch) all.push({ name, kind: 'histogram' });
  return all;
}

function filterOf(pattern: string): NameFilter | undefined {
  return pattern === '' ? undefined : compileNameFilter(pattern).filter!;
}

const worlds = fc.record({
  prefixes: fc.uniqueArray(fc.constantFrom(...PREFIXES), { minLength: 1 }),
  tags: fc.constantFrom(...TAGS),
  pattern: fc.constantFrom(...FILTERS),
});

describe('a filtered listing', () => {
  it('is the whole listing without what the filter does not let through', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async ({ prefixes, tags, pattern }) => {
        const store = storeOf(prefixes, tags);
        const filter = filterOf(pattern);
        const expected = (await plainList(store)).filter(({ name }) => new RegExp(pattern).test(name));
        const listed: { name: string; kind: string }[] = [];
        for await (const batch of store.countersAndGauges(filter))
          for (const { name, kind } of batch) listed.push({ name, kind });
        for await (const batch of store.histograms(filter))
          for (const { name } of batch) listed.push({ name, kind: 'histogram' });
        assert.deepEqual(listed, expected);
      }),
      { numRuns: 60 },
    );
  });
});

describe('stats by family', () => {
  it('are those of the listing, by the names that the tag rules give each of them', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async ({ prefixes, tags, pattern }) => {
        const store = storeOf(prefixes, tags);
        const producer = new TagProducer(tags);
        const all = (await plainList(store)).filter(({ name }) => new RegExp(pattern).test(name));
        for (const kind of ['counter', 'gauge', 'histogram'] as const) {
          const expected = all
            .filter((stat) => stat.kind === kind)
            .map(({ name }) => ({ name, ...producer.produce(name) }))
            .map(({ name, extractedName, tags: own }) => ({ family: extractedName, name, tags: own }))
            .sort((a, b) => (a.family === b.family ? compare(a.name, b.name) : compare(a.family, b.family)));
          assert.deepEqual(await familiesOf(store, kind, filterOf(pattern)), expected);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('are one stat where two owners have the same name', async () => {
    const { store } = statsFixture();
    store.scope('cluster.a.').counter('b.total').add(2);
    store.scope('cluster.a.b.').counter('total').add(3);
    for await (const { stats } of store.numericFamilies('counter')) {
      if (stats[0]!.name === 'cluster.a.b.total')
        assert.deepEqual(
          stats.map(({ value }) => value),
          [5],
        );
    }
  });

  it('leave out owners that go meanwhile', async () => {
    const { store } = statsFixture();
    const scopes = ['a', 'b'].map((name) => store.scope(`cluster.${name}.`));
    for (const scope of scopes) scope.allocate(ROWS);
    const names: string[] = [];
    for await (const { stats } of store.numericFamilies('counter')) {
      for (const { name } of stats) names.push(name);
      scopes[0]!.close();
    }
    assert.equal(names.filter((name) => name.startsWith('cluster.a.')).length, 1);
    assert.equal(names.filter((name) => name.startsWith('cluster.b.')).length, 6);
  });
});

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

async function familiesOf(store: StatsStore, kind: 'counter' | 'gauge' | 'histogram', filter: NameFilter | undefined) {
  const found: { family: string; name: string; tags: unknown }[] = [];
  const families = kind === 'histogram' ? store.histogramFamilies(filter) : store.numericFamilies(kind, filter);
  for await (const { name: family, stats, tags } of families) {
    for (const [at, { name }] of stats.entries()) found.push({ family, name, tags: tags[at] });
  }
  return found;
}
