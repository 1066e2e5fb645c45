// What the home page warns of beside clusters.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type TroubledServer, troublesOf } from '../../../src/process/admin-troubles.ts';
import { LISTENER_STATS, SERVER_STATS, STAT_SINK_STATS } from '../../../src/stats/index.ts';
import { statsFixture } from '../../support/stats.ts';

const QUIET = { dropped: 0 };

function world() {
  const { store } = statsFixture();
  const block = (name: string) => store.scope(`listener.${name}.`).allocate(LISTENER_STATS);
  const listeners = (['yes', 'draining', 'stopped'] as const).map((accepting) => ({
    name: accepting,
    accepting,
    snapshot: { statBlock: block(accepting).cell },
  }));
  const failures: { name: string; error: string }[] = [];
  const server: TroubledServer = {
    bootstrap: { statSinks: ['proxy.statsd', 'proxy.statsd', 'proxy.hystrix'].map((name) => ({ name })) },
    stats: store,
    clusterManager: { failures: () => failures },
    listenerManager: { failures: () => failures, listeners: () => listeners.slice(0, 1) },
  };
  return { store, block, listeners, failures, server };
}

describe('the page warns', () => {
  it('of nothing while all is well', () => {
    assert.deepEqual(troublesOf(world().server, QUIET), []);
  });

  it('of listeners that drain, are stopped, or let clients wait, and of what could not be taken in', () => {
    const { server, block, listeners, failures } = world();
    failures.push({ name: 'new', error: 'EADDRINUSE' });
    const paused = block('yes');
    paused.add('downstream_cx_accept_paused', 3);
    paused.add('downstream_cx_accept_resumed', 2);
    const shown = { ...server.listenerManager, listeners: () => listeners };
    assert.deepEqual(troublesOf({ ...server, listenerManager: shown }, QUIET), [
      { isGrave: true, text: 'listener new could not be opened: EADDRINUSE' },
      { isGrave: true, text: 'listener yes lets clients wait: descriptors run short' },
      { isGrave: false, text: 'listener draining drains' },
      { isGrave: false, text: 'listener stopped accepts no more connections: it was stopped' },
      { isGrave: false, text: 'cluster new could not be taken in: EADDRINUSE' },
    ]);
    paused.add('downstream_cx_accept_resumed', 1);
    failures.pop();
    assert.deepEqual(troublesOf(server, QUIET), []);
  });

  it('of what the process had to do without', () => {
    const { server, store } = world();
    const counts = store.scope('server.').allocate(SERVER_STATS);
    counts.add('worker_restarts');
    counts.add('contained_faults', 2);
    counts.add('dropped_stat_flushes', 3);
    store.scope('stats.').counter('overflow').add(4);
    store.scope('stats.').counter('histogram_values_dropped').add(5);
    const sink = store.scope('stat_sinks.statsd.').allocate(STAT_SINK_STATS);
    sink.add('send_failures', 1);
    sink.add('metrics_dropped', 8);
    const troubles = troublesOf(server, { dropped: 7 });
    assert.deepEqual(
      troubles.map(({ text }) => text),
      [
        'workers crashed and were started again: once',
        'faults of the proxy itself were caught: 2 times; the log has them',
        'flushes of statistics were left out, because the one before still ran: 3 times',
        'stats or samples found no room in the shared memory: 4 times',
        'samples of histograms were lost: 5',
        'lines of the log were not written: 7',
        'the stats sink statsd has failed once, and given up 8 metrics',
      ],
    );
    assert.ok(troubles.every(({ isGrave }) => !isGrave));
  });
});
