// The gauges and counters of the process, over a clock that the test turns.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServerGauges } from '../../../../src/control-plane/server/server-gauges.ts';
import type { ServerState } from '../../../../src/control-plane/server/server-state.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

function openGauges() {
  const { store } = statsFixture();
  const clock = new ManualClock();
  const server = {
    state: 'PRE_INITIALIZING' as ServerState,
    connections: 0,
    droppedLogLines: 0,
    daysUntilFirstExpires: undefined as number | undefined,
    secondsUntilFirstStapleExpires: undefined as number | undefined,
    memory: (): Promise<{ allocated: number; heap: number }> => new Promise(() => {}),
  };
  const parent = { connections: 0, memoryBytes: 0 };
  const faults = { count: 0, run: NO_FAULTS.run.bind(NO_FAULTS) };
  const gauges = new ServerGauges({
    stats: store,
    clock,
    concurrency: 3,
    revisionNumber: 4711,
    versionText: '',
    faults,
    state: () => server.state,
    connections: () => server.connections,
    certificates: {
      daysUntilFirstExpires: () => server.daysUntilFirstExpires,
      secondsUntilFirstStapleExpires: () => server.secondsUntilFirstStapleExpires,
    },
    droppedLogLines: () => server.droppedLogLines,
    memory: () => server.memory(),
    restart: { epoch: 2, generation: 3, earlierMs: 60_000, parentLoad: () => parent },
  });
  const stat = (name: string): number | undefined => store.value(`server.${name}`);
  return { store, clock, server, parent, faults, gauges, stat };
}

describe('the gauges of the server', () => {
  it('tell from the start on what never changes', () => {
    const { stat } = openGauges();
    assert.deepEqual([stat('concurrency'), stat('version')], [3, 4711]);
    // No certificate expires.
    assert.equal(stat('days_until_first_cert_expiring'), 2_147_483_647);
  });

  it('leave counters unused that have counted nothing', async () => {
    const { gauges, faults, store } = openGauges();
    const used = async (): Promise<string[]> => {
      const stats = (await Array.fromAsync(store.countersAndGauges())).flat();
      return stats.filter(({ kind, isUsed }) => kind === 'counter' && isUsed).map(({ name }) => name);
    };
    gauges.countStaticUnknownFields(0);
    gauges.update();
    assert.deepEqual(await used(), []);
    faults.count = 1;
    gauges.update();
    assert.deepEqual(await used(), ['server.contained_faults']);
  });

  it('count the days until the first certificate expires', () => {
    const { gauges, server, stat } = openGauges();
    server.daysUntilFirstExpires = 0;
    gauges.update();
    assert.equal(stat('days_until_first_cert_expiring'), 0);
    assert.equal(stat('seconds_until_first_ocsp_response_expiring'), 0);
    server.secondsUntilFirstStapleExpires = 3600;
    gauges.update();
    assert.equal(stat('seconds_until_first_ocsp_response_expiring'), 3600);
  });

  it('tell the whole seconds since the start of the first process', () => {
    const { clock, gauges, stat } = openGauges();
    clock.turn(61_999);
    assert.equal(gauges.uptimeSeconds, 61);
    assert.equal(gauges.uptimeAllEpochsSeconds, 121);
    gauges.update();
    assert.equal(stat('uptime'), 121);
  });

  it('tell of hot restarts, and of the process before while it is there', () => {
    const { gauges, server, parent, stat } = openGauges();
    assert.deepEqual([stat('hot_restart_epoch'), stat('hot_restart_generation')], [2, 3]);
    server.connections = 4;
    Object.assign(parent, { connections: 3, memoryBytes: 2 ** 40 });
    gauges.update();
    assert.deepEqual([stat('parent_connections'), stat('total_connections')], [3, 7]);
    assert.ok(stat('memory_allocated')! > 2 ** 40);
    Object.assign(parent, { connections: 0, memoryBytes: 0 });
    gauges.update();
    assert.deepEqual([stat('parent_connections'), stat('total_connections')], [0, 4]);
    assert.ok(stat('memory_allocated')! < 2 ** 40);
  });

  const states = [
    { state: 'LIVE', number: 0, live: 1 },
    { state: 'DRAINING', number: 1, live: 0 },
    { state: 'PRE_INITIALIZING', number: 2, live: 0 },
    { state: 'INITIALIZING', number: 3, live: 0 },
  ] as const;
  for (const { state, number, live } of states) {
    it(`tell the state ${state} by its number, and whether the server is live`, () => {
      const { server, gauges, stat } = openGauges();
      server.state = state;
      gauges.update();
      assert.deepEqual([stat('state'), stat('live')], [number, live]);
    });
  }

  it('tell the connections of the moment', () => {
    const { server, gauges, stat } = openGauges();
    for (const connections of [7, 2]) {
      server.connections = connections;
      gauges.update();
      assert.equal(stat('total_connections'), connections);
    }
  });

  it('tell the memory of all threads, as it was known last, and ask one question at a time', async () => {
    const { server, gauges, stat } = openGauges();
    server.state = 'LIVE';
    const answer = Promise.withResolvers<{ allocated: number; heap: number }>();
    let asked = 0;
    server.memory = () => {
      asked += 1;
      return answer.promise;
    };
    gauges.update();
    gauges.update();
    assert.equal(asked, 1);
    answer.resolve({ allocated: 11, heap: 22 });
    await new Promise(setImmediate);
    assert.deepEqual([stat('memory_allocated'), stat('memory_heap_size')], [11, 22]);
    server.memory = () => Promise.reject(new Error('nobody answers'));
    gauges.update();
    await new Promise(setImmediate);
    assert.deepEqual([stat('memory_allocated'), stat('memory_heap_size')], [11, 22]);
    server.memory = () => Promise.resolve({ allocated: 33, heap: 44 });
    gauges.update();
    await new Promise(setImmediate);
    assert.deepEqual([stat('memory_allocated'), stat('memory_heap_size')], [33, 44]);
  });

  it('ask nobody for memory while the server starts', () => {
    const { server, gauges } = openGauges();
    server.state = 'INITIALIZING';
    server.memory = () => assert.fail('asked');
    gauges.update();
  });

  it('tell the memory of this thread before more is known', () => {
    const { server, gauges, stat } = openGauges();
    server.memory = () => new Promise(() => {});
    gauges.update();
    gauges.update();
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    for (const [name, expected] of [
      ['memory_allocated', heapUsed + external],
      ['memory_heap_size', heapTotal + external],
      ['memory_physical_size', rss],
    ] as const) {
      const shown = stat(name)!;
      assert.ok(shown > expected / 2 && shown < expected * 2, `${name} ${shown}, the process says ${expected}`);
    }
  });

  it('count log lines and faults once, however often they are brought up to date', () => {
    const { server, faults, gauges, stat } = openGauges();
    for (const count of [3, 3, 5]) {
      server.droppedLogLines = count;
      faults.count = count + 1;
      gauges.update();
      assert.deepEqual([stat('dropped_log_lines'), stat('contained_faults')], [count, count + 1]);
    }
  });

  it('count what they are told of', () => {
    const { gauges, stat } = openGauges();
    gauges.countStaticUnknownFields(2);
    gauges.countWorkerRestart();
    gauges.countWorkerRestart();
    gauges.countDroppedFlush();
    const counts = [stat('static_unknown_fields'), stat('worker_restarts'), stat('dropped_stat_flushes')];
    assert.deepEqual(counts, [2, 2, 1]);
  });

  it('record the time that the start took when the server is live', async () => {
    const { store, clock, gauges } = openGauges();
    clock.turn(340);
    gauges.recordInitialization();
    await store.mergeHistograms();
    let histograms = 0;
    for await (const [time] of store.histograms()) {
      histograms++;
      assert.equal(time!.name, 'server.initialization_time_ms');
      const [shown] = time!.quantiles('cumulative', [0.5]);
      // A bucket holds 340 to 350.
      assert.ok(shown! >= 340 && shown! <= 350, String(shown));
    }
    assert.equal(histograms, 1);
  });
});
