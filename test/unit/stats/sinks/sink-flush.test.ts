import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SinkFlush, statTable } from '../../../../src/stats/index.ts';
import { KeepingSink, sinkSurroundings } from '../../../support/stat-sinks.ts';
import { statsFixture } from '../../../support/stats.ts';

const TABLE = statTable({
  upstream_cx_total: 'counter',
  upstream_cx_active: 'gauge',
  upstream_rq_time: 'histogram:ms',
});
const TIMES = { nowMs: 3, lastMs: 2, startMs: 1 };

describe('a flush to sinks', () => {
  it('shows each stat that has been used once, with its family, tags, total and increment', async () => {
    const { store, flush } = sinkSurroundings();
    const web = store.scope('cluster.web.').allocate(TABLE);
    const unused = store.scope('cluster.other.').allocate(TABLE);
    web.add('upstream_cx_total', 3);
    web.set('upstream_cx_active', 2);
    web.record('upstream_rq_time', 7);
    store.scope('server.').textReadout('version_text').set('1.0');
    await store.mergeHistograms();
    const sink = new KeepingSink();
    await flush(sink);
    assert.deepEqual(sink.shown, [
      'begin',
      'counter cluster.web.upstream_cx_total of cluster.upstream_cx_total [proxy.cluster_name=web] 3 +3',
      'gauge cluster.web.upstream_cx_active 2',
      'histogram cluster.web.upstream_rq_time of cluster.upstream_rq_time 1 1',
      'text server.version_text 1.0',
      'end',
    ]);
    assert.equal(unused.value('upstream_cx_total'), 0);
  });

  it('tells increments since the flush before, which resets do not change', async () => {
    const { store, flush } = sinkSurroundings();
    const block = store.scope('cluster.web.').allocate(TABLE);
    const sink = new KeepingSink();
    block.add('upstream_cx_total', 5);
    await flush(sink);
    block.add('upstream_cx_total', 2);
    store.resetCounters();
    block.add('upstream_cx_total', 4);
    await flush(sink);
    await flush(sink);
    const told = sink.shown.filter((line) => line.startsWith('counter')).map((line) => line.split('] ')[1]);
    assert.deepEqual(told, ['5 +5', '4 +6', '4 +0']);
  });

  it('adds up the increments of all threads', async () => {
    const { store, workers } = statsFixture();
    const surroundings = sinkSurroundings({ store });
    const { cell } = store.scope('cluster.web.').allocate(TABLE);
    const sink = new KeepingSink();
    for (const { stats } of workers) stats.values[stats.base(cell)]! += 2;
    await surroundings.flush(sink);
    for (const { stats } of workers) stats.values[stats.base(cell)]! += 3;
    await surroundings.flush(sink);
    const told = sink.shown.filter((line) => line.startsWith('counter')).map((line) => line.split('] ')[1]);
    assert.deepEqual(told, ['4 +4', '10 +6']);
  });

  it('begins from 0 with a counter in the place of one that has gone', async () => {
    const { store, owner } = statsFixture();
    const { flush } = sinkSurroundings({ store });
    const first = store.scope('cluster.first.');
    const { cell } = first.allocate(TABLE);
    first.allocate(TABLE).add('upstream_cx_total', 9);
    const single = store.scope('cluster.single.');
    single.counter('upstream_rq_200').add(9);
    const sink = new KeepingSink();
    await flush(sink);
    owner.reclaimer.collect(() => {
      first.close();
      single.close();
    })();
    const second = store.scope('cluster.second.').allocate(TABLE);
    assert.equal(second.cell, cell, 'the place is another one');
    second.add('upstream_cx_total', 2);
    store.scope('cluster.late.').counter('upstream_rq_200').add(1);
    sink.shown.length = 0;
    await flush(sink);
    const told = sink.shown.filter((line) => line.startsWith('counter')).map((line) => line.split('] ')[1]);
    assert.deepEqual(told.sort(), ['1 +1', '2 +2']);
  });

  it('shows histograms a few at a time, each once', async () => {
    const { store, flush } = sinkSurroundings();
    for (let at = 0; at < 40; at++) store.scope(`cluster.owner_${at}.`).allocate(TABLE).record('upstream_rq_time', at);
    await store.mergeHistograms();
    const sizes: number[] = [];
    const names = new Set<string>();
    await flush({
      histograms({ histograms, tags, family }) {
        assert.equal(tags.length, histograms.length);
        assert.equal(family, 'cluster.upstream_rq_time');
        sizes.push(histograms.length);
        for (const { name } of histograms) names.add(name);
      },
      close: () => Promise.resolve(),
    });
    assert.deepEqual(sizes, [16, 16, 8]);
    assert.equal(names.size, 40);
  });

  it('spares others a sink that throws, and spares it the rest of the flush', async () => {
    const { store } = statsFixture();
    store.scope('cluster.web.').allocate(TABLE).add('upstream_cx_total', 1);
    const broken = new KeepingSink();
    broken.counters = () => {
      throw new Error('broken');
    };
    const sound = new KeepingSink();
    const faults: unknown[] = [];
    const flush = new SinkFlush(store, (sink, error) => faults.push(sink === broken, String(error)));
    await flush.run([broken, sound], TIMES);
    assert.deepEqual(faults, [true, 'Error: broken']);
    assert.deepEqual(broken.shown, ['begin']);
    assert.equal(sound.shown.at(-1), 'end');
    await flush.run([broken, sound], TIMES);
    assert.deepEqual(broken.shown, ['begin', 'begin'], 'the next flush tries it again');
  });

  it('leaves out what stats_matcher hides', async () => {
    const surroundings = sinkSurroundings();
    const { store } = surroundings;
    Object.assign(store, { accepts: (name: string) => name.startsWith('cluster.web.') });
    for (const name of ['web', 'other']) store.scope(`cluster.${name}.`).allocate(TABLE).add('upstream_cx_total', 1);
    const sink = new KeepingSink();
    await surroundings.flush(sink);
    assert.equal(sink.shown.filter((line) => line.startsWith('counter')).length, 1);
  });
});
