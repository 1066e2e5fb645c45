// The main thread's watchdog over workers that a test has beat, or be silent.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Watchdog } from '../../../../src/control-plane/watchdog/watchdog.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { WatchdogSettings } from '../../../../src/snapshot/index.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listing, statsFixture } from '../../../support/stats.ts';

const LIMITS: WatchdogSettings = {
  missMs: 200,
  megaMissMs: 1000,
  killMs: 0,
  killJitterMs: 0,
  multikillMs: 0,
  multikillPercent: 0,
};

function open(workers: Partial<WatchdogSettings> = {}, concurrency = 2, main: Partial<WatchdogSettings> = {}) {
  const { store, owner } = statsFixture({ workerCount: concurrency });
  const clock = new ManualClock();
  const events: string[] = [];
  const running = Array.from({ length: concurrency }, () => true);
  const ends: (() => void)[] = [];
  const write = ({ level, message, stack }: { level: string; message: string; stack: string }): void =>
    void events.push(`${level}: ${message}${stack}`);
  const watchdog = new Watchdog({
    faults: NO_FAULTS,
    settings: { main: { ...LIMITS, ...main }, workers: { ...LIMITS, ...workers } },
    stats: store,
    allocator: owner.recordAllocator,
    records: owner.shared.records,
    clock,
    random: { u32: () => 7 },
    log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink: { write } }).get('main'),
    workers: {
      concurrency,
      isRunning: (index) => running[index]!,
      whereIs: async (index) => (index === 0 ? '\n    at a loop' : undefined),
      endStuck: (index, reason) => {
        events.push(`end ${index}: ${reason}`);
        return new Promise((resolve) => ends.push(resolve));
      },
    },
    abort: () => events.push('abort'),
  });
  const beats = Array.from({ length: concurrency }, (_, index) => watchdog.forWorker(index).beats);
  const { records } = owner.shared;
  /** Time goes on in which these workers beat. */
  const pass = (byMs: number, ...alive: number[]): void => {
    for (let passedMs = 0; passedMs < byMs; passedMs += 100) {
      for (const index of alive) records.addCount(beats[index]!, 1);
      clock.turn(100);
    }
  };
  const stat = async (name: string) =>
    (await listing(store)).find((line) => line.startsWith(`${name}: `))?.split(' ')[1];
  return { watchdog, events, pass, stat, running, ends, clock, records };
}

describe('the watchdog of the main thread', () => {
  it('beats for the workers to see, from its start to its end', () => {
    const { watchdog, pass, records, clock } = open();
    const { mainBeats, statBlocks, intervalMs } = watchdog.forWorker(0);
    assert.equal(intervalMs, 100);
    assert.equal(records.count(mainBeats), 0);
    watchdog.start();
    pass(1000);
    assert.equal(records.count(mainBeats), 11);
    watchdog.close();
    pass(1000);
    assert.equal(records.count(mainBeats), 11);
    assert.equal(clock.timerCount, 0);
    // Only one of them counts.
    assert.equal(statBlocks?.length, 2);
    assert.equal(watchdog.forWorker(1).statBlocks, null);
  });

  it('counts and reports silences, each once, and of each worker apart', async () => {
    const { watchdog, events, pass, stat } = open();
    watchdog.start();
    pass(500, 0, 1);
    pass(5000, 1);
    await turn();
    const text = 'worker 0 has not gone on for 1000 ms; its connections wait; it is here\n    at a loop';
    assert.deepEqual(events, [`warning: ${text}`]);
    assert.equal(await stat('server.worker_0.watchdog_miss'), '1');
    assert.equal(await stat('server.worker_0.watchdog_mega_miss'), '1');
    assert.equal(await stat('server.worker_1.watchdog_miss'), '0');
    pass(300, 0, 1);
    // Long enough for one of the two alone.
    pass(500, 0);
    assert.equal(await stat('server.worker_1.watchdog_miss'), '1');
    assert.equal(await stat('server.worker_1.watchdog_mega_miss'), '0');
    pass(300, 0, 1);
    pass(1200, 0);
    await turn();
    assert.match(events[1]!, /worker 1 .*cannot be found out/);
    assert.equal(await stat('workers.watchdog_miss'), '3');
    assert.equal(await stat('workers.watchdog_mega_miss'), '2');
  });

  it('does not look at workers that are not there', () => {
    const { watchdog, events, pass, running } = open({ killMs: 500 });
    watchdog.start();
    pass(500, 0, 1);
    running[0] = false;
    pass(5000, 1);
    assert.deepEqual(events, []);
  });

  it('ends nobody while that is off, whatever it says of chance, and at its time where nothing is left to chance', () => {
    const off = open({ killMs: 0, killJitterMs: 5, megaMissMs: 0 });
    off.watchdog.start();
    off.pass(500, 0, 1);
    off.pass(5000, 1);
    assert.deepEqual(off.events, []);
    const on = open({ killMs: 500, killJitterMs: 0, megaMissMs: 0 });
    on.watchdog.start();
    on.pass(500, 0, 1);
    on.pass(500, 1);
    assert.deepEqual(on.events.splice(0).length, 2);
    on.watchdog.close();
  });

  it('ends a worker that is silent for too long, and the process when that cannot be done', async () => {
    const { watchdog, events, pass, ends, running } = open({ killMs: 500, killJitterMs: 5, megaMissMs: 0 });
    watchdog.start();
    pass(500, 0, 1);
    pass(500, 1);
    // By 7 % 5 ms.
    assert.deepEqual(events, []);
    pass(100, 1);
    const reason = 'it has not gone on for 600 ms';
    assert.deepEqual(events.splice(0), [`error: worker 0 is ended: ${reason}`, `end 0: ${reason}`]);
    // Its end is under way: it is not ended once more with each look.
    pass(400, 1);
    assert.deepEqual(events, []);
    running[0] = false;
    ends[0]!();
    await turn();
    pass(10_000, 1);
    assert.deepEqual(events, []);
    running[0] = true;
    pass(100, 0, 1);
    pass(600, 1);
    running[0] = false;
    pass(4900, 1);
    assert.equal(events.length, 2);
    pass(100, 1);
    assert.deepEqual(events.slice(2), ['critical: worker 0 cannot be ended: the process is aborted', 'abort']);
  });

  it('ends the process when several are silent: two at least, or a share', () => {
    const few = open({ multikillMs: 500, megaMissMs: 0 }, 4);
    few.watchdog.start();
    few.pass(500, 0, 1, 2, 3);
    few.pass(2000, 1, 2, 3);
    assert.deepEqual(few.events, []);
    few.pass(500, 2, 3);
    assert.equal(few.events[0], 'critical: 2 workers have not gone on for 500 ms: the process is aborted');
    assert.equal(few.events[1], 'abort');
    const many = open({ multikillMs: 500, megaMissMs: 0, multikillPercent: 60 }, 4);
    many.watchdog.start();
    many.pass(500, 0, 1, 2, 3);
    many.pass(2000, 2, 3);
    assert.deepEqual(many.events, []);
    many.pass(500, 3);
    assert.equal(many.events[1], 'abort');
  });

  it('tells workers when the main thread is to be ended', () => {
    assert.equal(open().watchdog.forWorker(1).killMs, 0);
    const { watchdog } = open({}, 2, { killMs: 100, killJitterMs: 5, missMs: 20 });
    const { killMs, limits, intervalMs } = watchdog.forWorker(1);
    assert.deepEqual([killMs, limits.missMs, intervalMs], [102, 20, 10]);
  });
});
