import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { OverloadSettings, TriggerSettings } from '../../../../src/config/index.ts';
import { OverloadManager, strengthOf } from '../../../../src/control-plane/overload/overload-manager.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { NO_OVERLOAD, type OverloadState } from '../../../../src/snapshot/index.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listing, statsFixture } from '../../../support/stats.ts';

const MONITOR = 'proxy.resource_monitors.fixed_heap';
const INTERVAL_MS = 100;
const FROM_HALF: readonly TriggerSettings[] = [{ monitor: MONITOR, fromPressure: 0.5, toPressure: 1 }];
const AT_90: readonly TriggerSettings[] = [{ monitor: MONITOR, fromPressure: 0.9, toPressure: 0.9 }];

function fixture(fields: Partial<OverloadSettings>) {
  const clock = new ManualClock();
  const { store } = statsFixture();
  const lines: string[] = [];
  const states: OverloadState[] = [];
  const resets: { fromBytes: number }[] = [];
  const shrunk: string[] = [];
  let read: () => Promise<number> = async () => 0;
  const manager = new OverloadManager({
    faults: NO_FAULTS,
    settings: {
      refreshIntervalMs: INTERVAL_MS,
      monitors: [{ name: MONITOR, resource: { kind: 'heap', maxBytes: 100 } }],
      actions: [],
      shedPoints: [],
      timeoutFloors: {},
      expensiveFromBytes: 1024,
      ...fields,
    },
    stats: store,
    clock,
    log: new Loggers({
      levels: { default: 'info' },
      threadId: 0,
      sink: { write: ({ message }) => lines.push(message) },
    }).get('main'),
    workers: {
      publishOverload: (state) => states.push(state),
      resetStreams: (reset) => resets.push(reset),
      shrinkHeaps: () => shrunk.push('workers'),
    },
    resources: { heapBytes: () => read(), connections: () => 0 },
    shrinkHeap: () => shrunk.push('main'),
  });
  const stat = async (name: string) => (await listing(store)).find((line) => line.startsWith(`overload.${name}: `));
  return {
    manager,
    clock,
    lines,
    states,
    resets,
    shrunk,
    stat,
    reads: (heap: () => Promise<number>) => {
      read = heap;
    },
    /** The heap is so large at the next refresh. */
    at: async (percent: number) => {
      read = async () => percent;
      clock.turn(INTERVAL_MS);
      await turn();
    },
  };
}

/** Behind its first look. */
async function start(manager: OverloadManager): Promise<void> {
  manager.start();
  await turn();
}

test('a trigger rises from its first threshold to its second, and never falls with the pressure', () => {
  const trigger = { monitor: '', fromPressure: 0.5, toPressure: 0.75 };
  assert.deepEqual(
    [0, 0.5, 0.625, 0.75, 3].map((pressure) => strengthOf(trigger, pressure)),
    [0, 0, 0.5, 1, 1],
  );
  const at = { monitor: '', fromPressure: 0.5, toPressure: 0.5 };
  assert.deepEqual(
    [0.49, 0.5, 0.51].map((pressure) => strengthOf(at, pressure)),
    [0, 1, 1],
  );
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(share, share, share, share, (a, b, c, d) => {
      const [fromPressure, toPressure] = [Math.min(a, b), Math.max(a, b)];
      const [low, high] = [Math.min(c, d), Math.max(c, d)];
      const [weak, strong] = [low, high].map((pressure) =>
        strengthOf({ monitor: '', fromPressure, toPressure }, pressure),
      );
      assert.ok(weak! >= 0 && strong! <= 1 && weak! <= strong!);
    }),
  );
});

test('workers are told what is asked for when that has changed, and only then', async () => {
  const { manager, states, at, stat } = fixture({
    actions: [
      { name: 'stop_accepting_requests', triggers: AT_90 },
      { name: 'disable_http_keepalive', triggers: FROM_HALF },
      { name: 'stop_accepting_connections', triggers: FROM_HALF },
      { name: 'reject_incoming_connections', triggers: FROM_HALF },
      { name: 'reduce_timeouts', triggers: AT_90 },
    ],
    timeoutFloors: { HTTP_DOWNSTREAM_STREAM_IDLE: { minMs: 5, minScale: 0 } },
  });
  await start(manager);
  await at(50);
  assert.deepEqual(states, []);
  await at(75);
  assert.deepEqual(states.splice(0), [{ ...NO_OVERLOAD, endedConnections: 0.5, rejectedConnections: 0.5 }]);
  assert.equal(await stat(`${MONITOR}.pressure`), `overload.${MONITOR}.pressure: 75`);
  const keepalive = 'proxy.overload_actions.disable_http_keepalive';
  assert.equal(await stat(`${keepalive}.scale_percent`), `overload.${keepalive}.scale_percent: 50`);
  assert.equal(await stat(`${keepalive}.active`), `overload.${keepalive}.active: 0`);
  await at(75);
  assert.deepEqual(states, []);
  await at(100);
  assert.deepEqual(states.splice(0), [
    {
      refusedRequests: 1,
      endedConnections: 1,
      stopsAccepting: true,
      rejectedConnections: 1,
      shortenedTimeouts: 1,
      timeoutFloors: { HTTP_DOWNSTREAM_STREAM_IDLE: { minMs: 5, minScale: 0 } },
      shedding: {},
    },
  ]);
  assert.equal(await stat(`${keepalive}.active`), `overload.${keepalive}.active: 1`);
  await at(10);
  assert.deepEqual(states, [NO_OVERLOAD]);
});

test('an action is as strong as the strongest of its triggers, and is logged when it is on and when it is not', async () => {
  const { manager, states, lines, at } = fixture({
    monitors: [
      { name: MONITOR, resource: { kind: 'heap', maxBytes: 100 } },
      { name: 'half', resource: { kind: 'heap', maxBytes: 200 } },
    ],
    actions: [
      {
        name: 'disable_http_keepalive',
        triggers: [...FROM_HALF, { monitor: 'half', fromPressure: 0.1, toPressure: 0.2 }],
      },
    ],
  });
  await start(manager);
  await at(30);
  assert.ok(Math.abs(states.at(-1)!.endedConnections - 0.5) < 1e-9);
  await at(40);
  assert.equal(states.at(-1)!.endedConnections, 1);
  await at(0);
  assert.deepEqual(lines, [
    'overload action disable_http_keepalive is active',
    'overload action disable_http_keepalive is active no more',
  ]);
});

test('load shed points get their share, and where to count', async () => {
  const { manager, states, at, stat } = fixture({ shedPoints: [{ name: 'tcp_listener_accept', triggers: FROM_HALF }] });
  await start(manager);
  await at(75);
  const { share, countCell } = states[0]!.shedding.tcp_listener_accept!;
  assert.equal(share, 0.5);
  assert.ok(countCell > 0);
  const point = 'proxy.load_shed_points.tcp_listener_accept';
  assert.equal(await stat(`${point}.scale_percent`), `overload.${point}.scale_percent: 50`);
  await at(0);
  assert.deepEqual(states[1], NO_OVERLOAD);
});

test('the stronger the order, the smaller the streams that are ended, down to what is worth to be looked at', async () => {
  const { manager, resets, at, clock } = fixture({
    actions: [{ name: 'reset_high_memory_stream', triggers: FROM_HALF }],
  });
  await start(manager);
  await at(50);
  clock.turn(INTERVAL_MS);
  await turn();
  assert.equal(resets.length, 0);
  const asked: number[] = [];
  for (const percent of [51, 60, 75, 99, 100, 200]) {
    await at(percent);
    resets.splice(0);
    // What is known by now is acted on with the next refresh.
    clock.turn(INTERVAL_MS);
    await turn();
    asked.push(resets[0]!.fromBytes);
  }
  assert.deepEqual(asked, [128 * 1024, 64 * 1024, 8 * 1024, 1024, 1024, 1024]);
});

test('heaps are shrunk while that is asked for, every ten seconds at most', async () => {
  const { manager, shrunk, at, clock, stat } = fixture({ actions: [{ name: 'shrink_heap', triggers: FROM_HALF }] });
  await start(manager);
  await at(99);
  clock.turn(INTERVAL_MS);
  await turn();
  assert.deepEqual(shrunk, []);
  await at(100);
  clock.turn(INTERVAL_MS);
  assert.deepEqual(shrunk, ['workers', 'main']);
  clock.turn(10_000 - INTERVAL_MS);
  assert.equal(shrunk.length, 2);
  clock.turn(INTERVAL_MS);
  assert.equal(shrunk.length, 4);
  const shrink = 'proxy.overload_actions.shrink_heap.shrink_count';
  assert.equal(await stat(shrink), `overload.${shrink}: 2`);
});

test('a pressure that cannot be found out stays as it was, and one line says so', async () => {
  const { manager, reads, clock, states, lines, at, stat } = fixture({
    actions: [{ name: 'stop_accepting_requests', triggers: AT_90 }],
  });
  await start(manager);
  await at(95);
  reads(() => Promise.reject(new Error('no answer')));
  for (let refresh = 0; refresh < 3; refresh += 1) {
    clock.turn(INTERVAL_MS);
    await turn();
  }
  assert.equal(states.length, 1);
  assert.equal(await stat(`${MONITOR}.failed_updates`), `overload.${MONITOR}.failed_updates: 3`);
  const fault = `the pressure of ${MONITOR} cannot be found out: no answer`;
  assert.deepEqual(
    lines.filter((line) => line.includes('pressure')),
    [fault],
  );
  await at(95);
  reads(() => Promise.reject(new Error('no answer')));
  clock.turn(INTERVAL_MS);
  await turn();
  assert.equal(lines.filter((line) => line === fault).length, 2);
});

test('a monitor that has not answered is not asked again, which is counted; behind the end nothing is asked', async () => {
  const { manager, reads, clock, states, stat } = fixture({
    actions: [{ name: 'stop_accepting_requests', triggers: AT_90 }],
  });
  const answer = Promise.withResolvers<number>();
  let asked = 0;
  reads(() => {
    asked += 1;
    return answer.promise;
  });
  manager.start();
  clock.turn(2 * INTERVAL_MS);
  assert.equal(asked, 1);
  assert.equal(await stat(`${MONITOR}.skipped_updates`), `overload.${MONITOR}.skipped_updates: 2`);
  manager.close();
  answer.resolve(100);
  await turn();
  clock.turn(10 * INTERVAL_MS);
  assert.deepEqual(states, []);
  assert.equal(asked, 1);
  assert.equal(clock.timerCount, 0);
});
