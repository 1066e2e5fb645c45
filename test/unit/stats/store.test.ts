import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { derivedTable } from '../../../src/stats/derived-table.ts';
import { addCircuitBreakerGauges, CLUSTER_STATS, HOST_STATS, statTable } from '../../../src/stats/index.ts';
import * as tables from '../../../src/stats/tables/index.ts';
import { ClusterCount, ClusterPriority } from '../../../src/wasm/shared-memory.ts';
import { listing, statsFixture } from '../../support/stats.ts';

const SMALL = statTable({
  'sub.cx_length_ms': 'histogram:ms',
  cx_active: 'gauge',
  cx_total: 'counter',
  rq_total: 'counter',
});
const DERIVED = derivedTable({ 'circuit_breakers.default.cx_open': (value: number) => value });

test('a table puts counters first, then gauges, then histograms, and knows each place', () => {
  assert.deepEqual(
    SMALL.rows.map((row) => [row.name, row.kind, row.unit, row.index]),
    [
      ['cx_total', 'counter', undefined, 0],
      ['rq_total', 'counter', undefined, 1],
      ['cx_active', 'gauge', undefined, 2],
      ['sub.cx_length_ms', 'histogram', 'ms', 3],
    ],
  );
  assert.deepEqual([SMALL.gaugesAt, SMALL.histogramsAt, SMALL.size], [2, 3, 4]);
  assert.equal(SMALL.index['sub.cx_length_ms'], 3);
});

test('every declared table is consistent', () => {
  // Beside tables there are names and scopes that belong to them.
  const declared = Object.entries(tables).filter(([name]) => /_STATS$/.test(name));
  assert.ok(declared.length > 20, 'the tables are found');
  for (const [, table] of declared) {
    if (Array.isArray(table)) continue;
    const { rows, index, size } = table as typeof SMALL;
    assert.equal(rows.length, size);
    for (const [at, row] of rows.entries()) assert.equal((index as Record<string, number>)[row.name], at);
  }
});

test('what main and all workers count under one name is one sum', async () => {
  const { store, workers } = statsFixture();
  const block = store.scope('listener.in.').allocate(SMALL);
  const { cx_total, cx_active } = SMALL.index;
  for (const { stats } of workers) {
    const base = stats.base(block.cell);
    stats.values[base + cx_total]! += 10;
    stats.values[base + cx_active]! += 2;
  }
  workers[0]!.stats.values[workers[0]!.stats.base(block.cell) + cx_active]! -= 1;
  block.add('cx_total', 5);
  assert.deepEqual(await listing(store), [
    'listener.in.cx_active: 3',
    'listener.in.cx_total: 25',
    'listener.in.rq_total: 0',
  ]);
  assert.equal(block.value('cx_total'), 25);
  assert.equal(store.value('listener.in.cx_total'), 25);
  assert.equal(store.value('listener.in.cx_missing'), undefined);
  assert.equal(store.value('listener.in.sub.cx_length_ms'), undefined, 'a histogram has no value');
});

test('only stats that were written count as used, even where they are 0 again', async () => {
  const { store, workers } = statsFixture();
  const block = store.scope('a.').allocate(SMALL);
  assert.deepEqual(await listing(store, true), []);
  const { stats } = workers[1]!;
  const cell = stats.base(block.cell) + SMALL.index.cx_active;
  stats.values[cell]! += 1;
  stats.values[cell]! -= 1;
  store.scope('a.').gauge('set_to_zero').set(0);
  assert.deepEqual(await listing(store, true), ['a.cx_active: 0', 'a.set_to_zero: 0']);
});

test('counters read 0 after a reset while workers go on counting, gauges keep their values', async () => {
  const { store, workers } = statsFixture();
  const block = store.scope('a.').allocate(SMALL);
  const host = store.unnamedBlock(HOST_STATS, store.allocateUnnamed(HOST_STATS));
  const single = store.scope('a.').counter('single');
  const { stats } = workers[0]!;
  const base = stats.base(block.cell);
  stats.values[base + SMALL.index.cx_total]! += 7;
  stats.values[base + SMALL.index.cx_active]! += 3;
  host.add('rq_total', 4);
  single.add(2);

  store.resetCounters();

  assert.deepEqual(await listing(store), ['a.cx_active: 3', 'a.cx_total: 0', 'a.rq_total: 0', 'a.single: 0']);
  assert.equal(host.value('rq_total'), 0);
  stats.values[base + SMALL.index.cx_total]! += 1;
  single.add();
  assert.equal(store.value('a.cx_total'), 1);
  assert.equal(single.value, 1);
  assert.deepEqual(await listing(store, true), ['a.cx_active: 3', 'a.cx_total: 1', 'a.single: 1'], 'used stays used');
});

test('a lost worker leaves no gauge behind, and takes no counter with it', () => {
  const { store, workers } = statsFixture();
  const block = store.scope('a.').allocate(SMALL);
  const host = store.unnamedBlock(HOST_STATS, store.allocateUnnamed(HOST_STATS));
  for (const { stats } of workers) {
    for (const cell of [
      stats.base(block.cell) + SMALL.index.cx_total,
      stats.base(block.cell) + SMALL.index.cx_active,
    ]) {
      stats.values[cell]! += 4;
    }
    stats.values[stats.base(host.cell) + HOST_STATS.index.rq_active]! += 1;
    stats.values[stats.base(host.cell) + HOST_STATS.index.rq_total]! += 1;
  }
  store.clearWorker(0);
  assert.equal(block.value('cx_total'), 8);
  assert.equal(block.value('cx_active'), 4);
  assert.equal(host.value('rq_active'), 1);
  assert.equal(host.value('rq_total'), 2);
});

test('scopes of one prefix share cells, and the stats go with the last of them', async () => {
  const { store, owner } = statsFixture();
  const [older, newer] = [store.scope('listener.in.'), store.scope('listener.in.')];
  older.allocate(SMALL).add('cx_total', 2);
  newer.allocate(SMALL).add('cx_total', 3);
  newer.textReadout('version_text').set('7');
  older.close();
  older.close();
  assert.equal(store.value('listener.in.cx_total'), 5, 'closing twice releases once');
  newer.close();
  assert.equal(store.value('listener.in.cx_total'), undefined);
  assert.deepEqual(await listing(store), []);
  assert.deepEqual(store.textReadouts(), []);

  assert.equal(owner.cells.usedCells, SMALL.size + 1, 'not reused while a worker may still write');
  owner.reclaimer.reclaim(owner.reclaimer.mark());
  assert.equal(owner.cells.usedCells, 1, 'stats.overflow alone');
  assert.equal(store.scope('listener.in.').allocate(SMALL).value('cx_total'), 0, 'a new owner starts at 0');
});

test('ten thousand owners that come and go do not grow the memory', async () => {
  const { store, owner } = statsFixture();
  store.scope('cluster.first.').allocate(CLUSTER_STATS);
  const startLength = owner.shared.byteLength;
  for (let n = 0; n < 10_000; n++) {
    const scope = store.scope(`cluster.c${n}.`);
    scope.allocate(CLUSTER_STATS).add('upstream_cx_total');
    store.dynamicCell({ scope: scope.prefix, name: 'upstream_rq_200' });
    scope.derive(DERIVED, n);
    scope.close();
    if (n % 10 === 0) owner.reclaimer.reclaim(owner.reclaimer.mark());
  }
  assert.equal(owner.shared.byteLength, startLength);
  assert.equal((await listing(store)).length, CLUSTER_STATS.histogramsAt);
});

test('a stat named at run time is counted from the first moment', async () => {
  const { store, workers } = statsFixture();
  const scope = store.scope('cluster.web.');
  const [first, second] = [workers[0]!, workers[1]!];
  const counter = first.stats.dynamicCounter('cluster.web.', 'upstream_rq_200');
  counter.add();
  counter.add(4);
  assert.equal(first.stats.dynamicCounter('cluster.web.', 'upstream_rq_200'), counter);
  assert.deepEqual(first.asked, [{ scope: 'cluster.web.', name: 'upstream_rq_200' }], 'asked once');
  first.answer(store);
  counter.add(2);
  second.stats.dynamicCounter('cluster.web.', 'upstream_rq_200').add(10);
  second.answer(store);
  assert.deepEqual(await listing(store), ['cluster.web.upstream_rq_200: 17']);

  store.resetCounters();
  counter.add();
  assert.equal(store.value('cluster.web.upstream_rq_200'), 1);
  scope.close();
  assert.equal(store.value('cluster.web.upstream_rq_200'), undefined);
});

test('a stat named at run time is the one of a table that has this name', () => {
  const { store, workers } = statsFixture();
  const block = store.scope('a.').allocate(SMALL);
  const counter = workers[0]!.stats.dynamicCounter('a.', 'cx_total');
  workers[0]!.answer(store);
  counter.add(3);
  assert.equal(block.value('cx_total'), 3);
});

test('a scope below an open one belongs to it', async () => {
  const { store, workers } = statsFixture();
  const scope = store.scope('cluster.web.');
  workers[0]!.stats.dynamicCounter('cluster.web.zone.eu.us.', 'upstream_rq_200').add();
  workers[0]!.answer(store);
  assert.deepEqual(await listing(store), ['cluster.web.zone.eu.us.upstream_rq_200: 1']);
  scope.close();
  assert.deepEqual(await listing(store), []);
});

test('stats of an owner that is gone are refused, and counting on does no harm', async () => {
  const { store, workers } = statsFixture();
  const { stats } = workers[0]!;
  const scope = store.scope('cluster.gone.');
  const counter = stats.dynamicCounter('cluster.gone.', 'upstream_rq_503');
  scope.close();
  counter.add();
  workers[0]!.answer(store);
  counter.add();
  assert.deepEqual(await listing(store), []);

  store.scope('cluster.gone.');
  stats.closeScope('cluster.gone.');
  stats.dynamicCounter('cluster.gone.', 'upstream_rq_503').add(2);
  workers[0]!.answer(store);
  assert.deepEqual(
    await listing(store),
    ['cluster.gone.upstream_rq_503: 2'],
    'a new owner of the name is asked for anew',
  );
});

test('what an owner has named in a worker stays until the last owner of the name has gone', () => {
  const { store, workers } = statsFixture();
  const { stats } = workers[0]!;
  store.scope('cluster.web.');
  for (let generation = 0; generation < 2; generation++) stats.openScope('cluster.web.');
  const counter = stats.dynamicCounter('cluster.web.', 'upstream_rq_503');
  stats.closeScope('cluster.web.');
  assert.equal(stats.dynamicCounter('cluster.web.', 'upstream_rq_503'), counter);
  stats.closeScope('cluster.web.');
  assert.notEqual(stats.dynamicCounter('cluster.web.', 'upstream_rq_503'), counter);
});

test('names made up by clients cannot fill the memory', async () => {
  const { store } = statsFixture();
  store.scope('cluster.web.');
  for (let n = 0; n < 20_000; n++) store.dynamicCell({ scope: 'cluster.web.', name: `alt${n}.upstream_rq_200` });
  assert.equal(store.value('stats.overflow'), 20_000 - 16_384);
  assert.equal((await listing(store)).length, 16_384 + 1);
});

test('a full memory refuses the owner that asked for it and leaves the others as they are', () => {
  const { store } = statsFixture({ maxBytes: 1024 * 1024 });
  const first = store.scope('cluster.first.').allocate(CLUSTER_STATS);
  first.add('upstream_cx_total');
  const fill = (): void => {
    for (let n = 0; ; n++) store.scope(`cluster.c${n}.`).allocate(CLUSTER_STATS);
  };
  assert.throws(fill, { code: 'WEIR_SHARED_MEMORY_FULL' });
  assert.equal(first.value('upstream_cx_total'), 1);
  assert.equal(store.dynamicCell({ scope: 'cluster.first.', name: 'x'.repeat(3) }) > 0, true, 'single cells still fit');
});

test('names that two scopes spell alike are shown once, with their sum', async () => {
  const { store } = statsFixture();
  store.scope('cluster.x.').counter('retry.upstream_rq_200').add(1);
  const other = store.scope('cluster.x.retry.');
  other.counter('upstream_rq_200').add(2);
  assert.deepEqual(await listing(store), ['cluster.x.retry.upstream_rq_200: 3']);
  other.close();
  assert.deepEqual(await listing(store), ['cluster.x.retry.upstream_rq_200: 1']);
});

test('circuit breaker gauges show totals over all workers', async () => {
  const { store, owner, workers } = statsFixture();
  const cluster = owner.recordAllocator.allocateCluster();
  const limits = { maxConnections: 3, maxPendingRequests: 0, maxRequests: 1024, maxRetries: 3 };
  const scope = store.scope('cluster.web.');
  addCircuitBreakerGauges({
    scope,
    records: owner.shared.records,
    recordAddress: cluster,
    limits: { value: { default: limits, high: { ...limits, maxConnectionPools: 5 } } },
    tracksRemaining: { default: true, high: true },
  });
  for (const { memory } of workers) {
    memory.records.addClusterCount(cluster, ClusterPriority.default, ClusterCount.connections, 2);
  }
  workers[0]!.memory.records.addClusterCount(cluster, ClusterPriority.high, ClusterCount.requests, 1);
  assert.deepEqual(
    (await listing(store))
      .filter((line) => !line.includes('retr'))
      .map((line) => line.replace('cluster.web.circuit_breakers.', '')),
    [
      'default.cx_open: 1',
      'default.cx_pool_open: 0',
      'default.remaining_cx: 0',
      'default.remaining_cx_pools: 4294967295',
      'default.remaining_pending: 0',
      'default.remaining_rq: 1024',
      'default.rq_open: 0',
      'default.rq_pending_open: 1',
      'high.cx_open: 0',
      'high.cx_pool_open: 0',
      'high.remaining_cx: 3',
      'high.remaining_cx_pools: 5',
      'high.remaining_pending: 0',
      'high.remaining_rq: 1023',
      'high.rq_open: 0',
      'high.rq_pending_open: 1',
    ],
  );
  scope.close();
  assert.deepEqual(await listing(store), []);
});

test('text readouts and tags are read from the same scopes', async () => {
  const { store } = statsFixture({ tags: { fixedTags: [{ name: 'region', value: 'eu' }] } });
  store.scope('cluster_manager.cds.').textReadout('version_text').set('v12');
  store.scope('').textReadout('top').set('"quoted"');
  store.scope('cluster.a.').counter('upstream_rq_404').add();
  assert.deepEqual(
    store.textReadouts().map(({ name, value, isUsed }) => [name, value, isUsed]),
    [
      ['cluster_manager.cds.version_text', 'v12', true],
      ['top', '"quoted"', true],
    ],
  );
  for await (const batch of store.countersAndGauges()) {
    const stat = batch.find(({ name }) => name.endsWith('404'));
    assert.equal(stat!.extractedName, 'cluster.upstream_rq');
    assert.deepEqual(
      stat!.tags.map(({ name, value }) => `${name}=${value}`),
      ['proxy.cluster_name=a', 'proxy.response_code=404', 'region=eu'],
    );
    assert.equal(stat!.tags, stat!.tags, 'extracted once');
  }
});

test('whatever is opened, counted and closed, a listing shows exactly what is left, sorted', async () => {
  const operation = fc.record({
    scope: fc.constantFrom('a.', 'a.b.', 'b.', 'cluster.x.'),
    name: fc.constantFrom('one', 'two', 'b.one', 'three'),
    n: fc.integer({ min: 0, max: 5 }),
    close: fc.boolean(),
    list: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
      const { store } = statsFixture({ workerCount: 1, maxBytes: 4 * 1024 * 1024 });
      const model = new Map<string, Map<string, number>>();
      const open = new Map<string, ReturnType<typeof store.scope>>();
      for (const { scope: prefix, name, n, close, list } of operations) {
        const scope = open.get(prefix) ?? store.scope(prefix);
        open.set(prefix, scope);
        scope.counter(name).add(n);
        const counts = model.get(prefix) ?? new Map<string, number>();
        model.set(prefix, counts.set(name, (counts.get(name) ?? 0) + n));
        if (close) {
          scope.close();
          open.delete(prefix);
          model.delete(prefix);
        }
        if (list) assert.deepEqual(await listing(store), expected(model));
      }
      assert.deepEqual(await listing(store), expected(model));
    }),
    { numRuns: 60 },
  );
});

function expected(model: Map<string, Map<string, number>>): string[] {
  const sums = new Map<string, number>();
  for (const [prefix, counts] of model) {
    for (const [name, n] of counts) sums.set(prefix + name, (sums.get(prefix + name) ?? 0) + n);
  }
  return [...sums.keys()].sort().map((name) => `${name}: ${sums.get(name)}`);
}

test('a listing of names that begin alike looks at no owner whose names do not', async () => {
  const { store } = statsFixture();
  for (const prefix of ['', 'a.', 'ab.', 'ab.c.', 'b.']) store.scope(prefix).allocate(SMALL);
  const shown = async (prefix: string): Promise<(string | undefined)[]> => {
    const names = new Set<string>();
    const filter = { prefix, parts: [], pick: (all: readonly string[]) => [...all.keys()] };
    for await (const batch of store.countersAndGauges(filter)) for (const { name } of batch) names.add(name);
    for await (const batch of store.histograms(filter)) for (const { name } of batch) names.add(name);
    return [...names].filter((name) => /cx_(length|total)/.test(name)).sort();
  };
  const of = (...prefixes: string[]): string[] =>
    prefixes.flatMap((prefix) => ['cx_total', 'sub.cx_length_ms'].map((name) => prefix + name)).sort();
  assert.deepEqual(await shown(''), of('', 'a.', 'ab.', 'ab.c.', 'b.'));
  assert.deepEqual(await shown('a'), of('', 'a.', 'ab.', 'ab.c.'));
  assert.deepEqual(await shown('a.'), of('', 'a.'));
  assert.deepEqual(await shown('ab.cx_total'), of('', 'ab.'));
  assert.deepEqual(await shown('ab.c.cx'), of('', 'ab.', 'ab.c.'));
});

test('owners that are closed while a listing goes on are left out of the rest of it', async () => {
  const { store } = statsFixture();
  const scopes = Array.from({ length: 300 }, (_, n) => store.scope(`c${String(n).padStart(3, '0')}.`));
  for (const scope of scopes) scope.allocate(SMALL);
  let isFirst = true;
  const names: string[] = [];
  for await (const batch of store.countersAndGauges()) {
    names.push(...batch.map(({ name }) => name));
    if (isFirst) for (const scope of scopes.slice(1)) scope.close();
    isFirst = false;
  }
  // With what had been taken from each owner before it went, and the store's own.
  assert.equal(names.length, 256 + 1);
});

test('listing 200,000 stats gives the event loop back again and again', async () => {
  const { store } = statsFixture();
  for (let n = 0; n < 2_300; n++)
    store
      .scope(`cluster.service_${(n * 7919) % 2_300}.`)
      .allocate(CLUSTER_STATS)
      .add('upstream_rq_total', n);
  // Processor time, not time of day, and turns, not the longest wait: a busy test machine and the garbage collector
  // do not count. The longest wait is a matter of the benchmarks.
  const workedMs = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  const startMs = workedMs();
  let turns = 0;
  let isWatching = true;
  const watch = (): void => {
    turns += 1;
    if (isWatching) setImmediate(watch);
  };
  setImmediate(watch);
  let count = 0;
  let previous = '';
  for await (const batch of store.countersAndGauges()) {
    for (const stat of batch) {
      assert.ok(stat.name > previous);
      previous = `${stat.name}`;
      count += stat.value >= 0 ? 1 : 0;
    }
  }
  isWatching = false;
  assert.equal(count, 2_300 * CLUSTER_STATS.histogramsAt + 1);
  const meanMs = (workedMs() - startMs) / turns;
  assert.ok(meanMs < 20, `main stood still for ${meanMs} ms on average`);
});

test('a stat of a worker that would not be shown gets no cell, unless a table has it', () => {
  const { store } = statsFixture({ accepts: (name) => !name.includes('upstream_rq') });
  store.scope('cluster.web.').allocate(statTable({ upstream_rq_total: 'counter' }));
  const cellOf = (name: string, isTime = false) => store.dynamicCell({ scope: 'cluster.web.', name, isTime });
  assert.equal(cellOf('upstream_rq_200'), 0);
  assert.equal(cellOf('external.upstream_rq_time', true), 0);
  assert.notEqual(cellOf('upstream_rq_total'), 0);
  assert.notEqual(cellOf('lb_shown'), 0);
});
