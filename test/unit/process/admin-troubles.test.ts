// What the home page warns of beside clusters.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type TroubledServer, troublesOf } from '../../../src/process/admin-troubles.ts';
import {
  LISTENER_STATS,
  LOAD_SHED_STATS,
  OVERLOAD_ACTION_STATS,
  SERVER_STATS,
  STAT_SINK_STATS,
  WATCHDOG_STATS,
} from '../../../src/stats/index.ts';
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
    bootstrap: {
      statSinks: ['proxy.statsd', 'proxy.statsd', 'proxy.hystrix'].map((name) => ({ name })),
      overload: {
        actions: [{ name: 'shrink_heap' }, { name: 'stop_accepting_requests' }],
        shedPoints: [{ name: 'tcp_listener_accept' }],
      },
    },
    stats: store,
    clusterManager: { failures: () => failures },
    routeTables: { failures: () => failures },
    scopeSets: { failures: () => [] },
    secrets: { failures: () => failures },
    filterConfigs: { failures: () => failures },
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
      { isGrave: false, text: 'route configuration new could not be taken in: EADDRINUSE' },
      { isGrave: false, text: 'secret new could not be taken in: EADDRINUSE' },
      { isGrave: false, text: 'extension configuration new could not be taken in: EADDRINUSE' },
    ]);
    paused.add('downstream_cx_accept_resumed', 1);
    failures.pop();
    assert.deepEqual(troublesOf(server, QUIET), []);
  });

  it('of what is done against overload, and of clients that were turned away', () => {
    const { server, store } = world();
    const action = (name: string) =>
      store.scope(`overload.proxy.overload_actions.${name}.`).allocate(OVERLOAD_ACTION_STATS);
    const [shrink, stop] = [action('shrink_heap'), action('stop_accepting_requests')];
    const shed = store.scope('overload.proxy.load_shed_points.tcp_listener_accept.').allocate(LOAD_SHED_STATS);
    assert.deepEqual(troublesOf(server, QUIET), []);
    shrink.set('scale_percent', 40);
    stop.set('scale_percent', 100);
    shed.set('scale_percent', 10);
    shed.add('shed_load_count', 3);
    assert.deepEqual(troublesOf(server, QUIET), [
      { isGrave: false, text: 'overload: shrink_heap is on, by 40 %' },
      { isGrave: true, text: 'overload: stop_accepting_requests is on, by 100 %' },
      {
        isGrave: true,
        text: 'overload: tcp_listener_accept has turned clients away 3 times, and does so now, by 10 %',
      },
    ]);
    for (const stats of [shrink, stop, shed]) stats.set('scale_percent', 0);
    assert.deepEqual(troublesOf(server, QUIET), [
      { isGrave: false, text: 'overload: tcp_listener_accept has turned clients away 3 times' },
    ]);
  });

  it('of threads that were silent', () => {
    const { server, store } = world();
    store.scope('main_thread.').allocate(WATCHDOG_STATS).add('watchdog_miss');
    store.scope('workers.').allocate(WATCHDOG_STATS).add('watchdog_miss', 2);
    assert.deepEqual(
      troublesOf(server, QUIET).map(({ text }) => text),
      [
        'the main thread was silent for longer than its watchdog allows: once',
        'workers were silent for longer than their watchdog allows: 2 times',
      ],
    );
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
