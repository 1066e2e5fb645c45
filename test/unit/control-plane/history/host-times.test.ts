import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../../../../src/base/errors.ts';
import { HostTimes } from '../../../../src/control-plane/history/host-times.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

class FakeHost {
  isRetired = false;
  cell = 0;

  lendTimes(cell: number): void {
    this.cell = cell;
  }
}

function world() {
  const { store, workers } = statsFixture();
  const clock = new ManualClock();
  const times = new HostTimes({ clock, stats: store });
  const record = (host: FakeHost, ...values: number[]): void => {
    for (const value of values) workers[0]!.stats.record(workers[0]!.stats.base(host.cell), value);
  };
  return { store, clock, times, record };
}

describe('times of hosts', () => {
  it('are recorded from the first look on, and known after each window', () => {
    const { clock, times, record } = world();
    const host = new FakeHost();
    assert.equal(times.look(host), undefined);
    assert.notEqual(host.cell, 0);
    record(host, 10, 10, 10, 50);
    clock.turn(1000);
    assert.equal(times.look(host), undefined);
    clock.turn(1000);
    const { p50Ms, p99Ms } = times.look(host)!;
    assert.ok(p50Ms >= 10 && p50Ms < 11 && p99Ms >= 50 && p99Ms < 51, `${p50Ms} ${p99Ms}`);
    record(host, 70);
    clock.turn(3000);
    assert.equal(Math.floor(times.look(host)!.p50Ms), 70);
    clock.turn(5000);
    assert.ok(Number.isNaN(times.look(host)!.p50Ms));
    record(host, 90);
    clock.turn(9000);
    assert.ok(Number.isNaN(times.look(host)!.p50Ms));
    clock.turn(1000);
    assert.equal(Math.floor(times.look(host)!.p50Ms), 90);
  });

  it('are no longer recorded a minute after the last look, nor of a host that has gone', () => {
    const { clock, times } = world();
    const [seen, unseen, gone] = [new FakeHost(), new FakeHost(), new FakeHost()];
    for (const host of [seen, unseen, gone]) times.look(host);
    gone.isRetired = true;
    clock.turn(1000);
    assert.deepEqual([gone.cell, times.size], [0, 2]);
    clock.turn(49_000);
    times.look(seen);
    clock.turn(10_000);
    assert.deepEqual([unseen.cell, times.size], [0, 1]);
    clock.turn(50_000);
    assert.deepEqual([seen.cell, times.size, clock.timerCount], [0, 0, 0]);
    assert.equal(times.look(gone), undefined);
    assert.equal(gone.cell, 0);
  });

  it('of the next host have nothing of the one before', () => {
    const { clock, times, record } = world();
    const [former, next] = [new FakeHost(), new FakeHost()];
    times.look(former);
    const { cell } = former;
    record(former, 5000);
    clock.turn(60_000);
    record({ ...former, cell } as FakeHost, 5000);
    times.look(next);
    assert.equal(next.cell, cell);
    record(next, 20);
    clock.turn(2000);
    assert.equal(Math.floor(times.look(next)!.p99Ms), 20);
    times.close();
    assert.equal(clock.timerCount, 0);
  });

  it('are recorded of so many hosts at once and no more, and never fail', () => {
    const { times, clock, store } = world();
    const hosts = Array.from({ length: 2050 }, () => new FakeHost());
    for (const host of hosts) times.look(host);
    assert.deepEqual([times.size, hosts[2047]!.cell !== 0, hosts[2048]!.cell], [2048, true, 0]);
    const full = new HostTimes({
      clock,
      stats: {
        mergeUnnamed: (cell) => store.mergeUnnamed(cell),
        histogramQuantiles: (cell, span, qs) => store.histogramQuantiles(cell, span, qs),
        allocateUnnamed() {
          throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'full');
        },
      },
    });
    assert.equal(full.look(new FakeHost()), undefined);
    assert.equal(full.size, 0);
  });
});
