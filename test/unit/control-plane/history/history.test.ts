import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { History } from '../../../../src/control-plane/history/history.ts';
import { HISTORY_POINTS, Track } from '../../../../src/control-plane/history/track.ts';
import type { ListenerSnapshot } from '../../../../src/snapshot/index.ts';
import {
  CLUSTER_STATS,
  HTTP_STATS,
  LISTENER_HTTP_STATS,
  LISTENER_STATS,
  type StatsStore,
} from '../../../../src/stats/index.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

describe('a track', () => {
  it('keeps its last points, and knows none before the first', () => {
    const track = new Track(2, 5);
    for (let tick = 5; tick < 5 + HISTORY_POINTS + 3; tick++) {
      track.record(tick, 0, tick);
      track.recordRate(tick, 1, 3 * tick, 1.5);
    }
    assert.deepEqual([...track.read(0, 306, 307)], [306, 307]);
    assert.deepEqual([...track.read(1, 306, 307)], [2, 2]);
    assert.deepEqual([...new Track(1, 5).read(0, 3, 4)], [Number.NaN, Number.NaN]);
    assert.deepEqual([...track.read(0, 9, 8)], []);
  });

  it('has no rate of its first point, nor of one at which a counter was reset', () => {
    const track = new Track(1, 0);
    for (const [tick, total] of [10, 14, 2, 3].entries()) track.recordRate(tick, 0, total, 2);
    assert.deepEqual([...track.read(0, 0, 3)], [Number.NaN, 2, Number.NaN, 0.5]);
  });
});

interface World {
  readonly store: StatsStore;
  readonly clock: ManualClock;
  readonly history: History;
  readonly listeners: { name: string; snapshot: ListenerSnapshot }[];
  readonly clusters: ReturnType<typeof clusterOf>[];
}

function clusterOf(store: StatsStore, name: string) {
  return { name, stats: store.scope(`cluster.${name}.`).allocate(CLUSTER_STATS), settings: { statName: name } };
}

function listenerOf(store: StatsStore, name: string): World['listeners'][number] {
  const chain = {
    settings: { filter: { kind: 'http-connection-manager' } },
    filterStatBlock: store.scope(`http.${name}.`).allocate(HTTP_STATS).cell,
    listenerHttpStatBlock: store.scope(`listener.${name}.http.${name}.`).allocate(LISTENER_HTTP_STATS).cell,
  };
  const statBlock = store.scope(`listener.${name}.`).allocate(LISTENER_STATS).cell;
  // Two chains of one connection manager count once.
  const snapshot = { statBlock, filterChains: [chain, chain], defaultFilterChain: null };
  return { name, snapshot: snapshot as unknown as ListenerSnapshot };
}

function world(): World {
  const { store } = statsFixture();
  const clock = new ManualClock();
  const parts: Pick<World, 'listeners' | 'clusters'> = { listeners: [], clusters: [] };
  const history = new History({
    clock,
    stats: store,
    listeners: () => parts.listeners,
    clusters: () => parts.clusters,
    takeThreadUses: () => [0.5, undefined],
  });
  return { store, clock, history, ...parts };
}

/** The last points of a series, by name. */
function last(history: History, kind: 'listeners' | 'clusters', name: string): number[] | undefined {
  const found = [...history[kind]()].find(([each]) => each === name);
  return found?.[1](history.tick, history.tick).map((series) => series[0]!);
}

describe('the history', () => {
  it('takes a point a second', () => {
    const { clock, history } = world();
    history.start();
    assert.equal(history.tick, -1);
    for (let second = 0; second < 3; second++) clock.turn(1000);
    assert.equal(history.tick, 2);
    assert.deepEqual(history.threadUses, [0.5, undefined]);
    assert.deepEqual(
      history.times(0).map((ms) => ms - history.times(0)[0]!),
      [0, 1000, 2000],
    );
    assert.deepEqual([history.firstAfter(-1), history.firstAfter(1), history.firstAfter(99)], [0, 2, 3]);
    history.stop();
    clock.turn(5000);
    assert.equal(history.tick, 2);
    for (let point = 0; point < HISTORY_POINTS; point++) history.sample();
    assert.equal(history.firstAfter(-1), 3);
  });

  it('shows what comes in at a listener, and how long it takes', async () => {
    const { store, clock, history, listeners } = world();
    listeners.push(listenerOf(store, 'in'));
    const responses = store.scope('listener.in.http.in.').allocate(LISTENER_HTTP_STATS);
    const listener = store.scope('listener.in.').allocate(LISTENER_STATS);
    history.sample();
    responses.add('downstream_rq_2xx', 20);
    responses.add('downstream_rq_5xx', 4);
    listener.add('downstream_cx_total', 6);
    listener.set('downstream_cx_active', 3);
    store.scope('http.in.').allocate(HTTP_STATS).record('downstream_rq_time', 40);
    await store.mergeHistograms();
    clock.turn(2000);
    history.sample();
    const [, c2xx, , , c5xx, rate, active, p50] = last(history, 'listeners', 'in')!;
    assert.deepEqual([c2xx, c5xx, rate, active], [10, 2, 3, 3]);
    assert.ok(p50! >= 40 && p50! < 41.1, String(p50));
    listeners.pop();
    history.sample();
    assert.equal(last(history, 'listeners', 'in'), undefined);
  });

  it('shows clusters from their first request on, until they have had none for five minutes', () => {
    const { store, clock, history, clusters } = world();
    const [busy, idle] = [clusterOf(store, 'busy'), clusterOf(store, 'idle')];
    clusters.push(busy, idle);
    const step = (): void => {
      clock.turn(1000);
      history.sample();
    };
    step();
    assert.deepEqual([...history.clusters()], []);
    busy.stats.add('upstream_rq_completed', 5);
    step();
    busy.stats.add('upstream_rq_completed', 8);
    busy.stats.add('upstream_rq_retry', 1);
    busy.stats.set('upstream_rq_active', 2);
    store.scope('cluster.busy.').counter('upstream_rq_5xx').add(4);
    step();
    const [requests, failed, retries, active] = last(history, 'clusters', 'busy')!;
    assert.deepEqual([requests, failed, retries, active], [8, 4, 1, 2]);
    assert.equal(last(history, 'clusters', 'idle'), undefined);
    busy.stats.set('upstream_rq_active', 0);
    for (let point = 0; point < 2 * HISTORY_POINTS + 60; point++) step();
    assert.deepEqual([...history.clusters()], []);
    busy.stats.add('upstream_rq_completed');
    step();
    assert.ok(last(history, 'clusters', 'busy') !== undefined);
  });

  it('shows a cluster that nobody can reach, by what was wanted of it', () => {
    const { store, clock, history, clusters } = world();
    const wanted = [
      'upstream_rq_completed',
      'upstream_cx_total',
      'upstream_cx_connect_fail',
      'upstream_cx_none_healthy',
    ];
    for (const name of wanted) clusters.push(clusterOf(store, name));
    history.sample();
    for (const { name, stats } of clusters) stats.add(name as 'upstream_cx_total', 2);
    history.sample();
    for (const { name, stats } of clusters) stats.add(name as 'upstream_cx_total', 6);
    clock.turn(2000);
    history.sample();
    const shown = clusters.map(({ name }) => {
      const [answers, , , , , opened, unreached] = last(history, 'clusters', name)!;
      return [answers, opened, unreached];
    });
    assert.deepEqual(shown, [
      [3, 0, 0],
      [0, 3, 0],
      [0, 0, 3],
      [0, 0, 3],
    ]);
  });

  for (const sign of ['upstream_rq_completed', 'upstream_cx_total', 'upstream_cx_none_healthy'] as const) {
    it(`keeps the track of a cluster while its ${sign} grows`, () => {
      const { store, clock, history, clusters } = world();
      const cluster = clusterOf(store, 'busy');
      clusters.push(cluster);
      for (let point = 0; point < 2 * HISTORY_POINTS; point++) {
        cluster.stats.add(sign);
        clock.turn(1000);
        history.sample();
      }
      const [, read] = [...history.clusters()][0]!;
      assert.ok(Number.isFinite(read(history.tick - 250, history.tick)[0]![0]));
    });
  }

  it('is bounded, however many clusters have traffic', () => {
    const { store, history, clusters } = world();
    for (let at = 0; at < 600; at++) clusters.push(clusterOf(store, `c${at}`));
    for (const { stats } of clusters) stats.add('upstream_rq_completed');
    history.sample();
    assert.equal([...history.clusters()].length, 512);
    clusters.splice(0, 100);
    history.sample();
    history.sample();
    assert.equal([...history.clusters()].length, 500);
  });
});
