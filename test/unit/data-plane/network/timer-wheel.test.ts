// The timer wheel, on a clock turned by hand that says how often it was asked.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { TICK_MS, TimerEntry, TimerWheel } from '../../../../src/data-plane/network/timer-wheel.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;
/** What the wheel spans; entries further off are moved on when it has come round. */
const TURN_MS = 2048 * TICK_MS;

class Probe {
  readonly fired: number[] = [];
  readonly entry = new TimerEntry(this);
  onTimeout(nowMs: number): void {
    this.fired.push(nowMs);
  }
}

class CountingClock extends ManualClock {
  /** Timers that were asked for so far. */
  asked = 0;

  override after(delayMs: number, callback: () => void): () => void {
    this.asked++;
    return super.after(delayMs, callback);
  }
}

function wheelWithClock(): { clock: CountingClock; wheel: TimerWheel } {
  const clock = new CountingClock();
  const wheel = new TimerWheel(clock, (error) => {
    throw error;
  });
  return { clock, wheel };
}

describe('the timer wheel', () => {
  test('fires once, not before its deadline and at most one tick after it', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    wheel.arm(probe.entry, clock.monotonicMs() + 100);
    clock.turn(99);
    assert.deepEqual(probe.fired, []);
    clock.turn(1 + TICK_MS);
    assert.equal(probe.fired.length, 1);
    clock.turn(10_000);
    assert.equal(probe.fired.length, 1);
  });

  test('a deadline that moves back and back again fires at the last one', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    for (let i = 0; i < 50; i++) {
      wheel.arm(probe.entry, clock.monotonicMs() + 100);
      clock.turn(20);
    }
    assert.deepEqual(probe.fired, []);
    clock.turn(100);
    assert.equal(probe.fired.length, 1);
  });

  test('a deadline that moves forward fires at the new one', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    wheel.arm(probe.entry, clock.monotonicMs() + 60_000);
    wheel.arm(probe.entry, clock.monotonicMs() + 30);
    assert.equal(wheel.size, 1);
    clock.turn(30 + TICK_MS);
    assert.equal(probe.fired.length, 1);
    assert.equal(wheel.size, 0);
  });

  test('a deadline that moves forward by one tick fires on it', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    const dueMs = clock.monotonicMs() + 10 * TICK_MS;
    wheel.arm(probe.entry, dueMs);
    wheel.arm(probe.entry, dueMs - TICK_MS);
    clock.turn(9 * TICK_MS);
    assert.deepEqual(probe.fired, [dueMs - TICK_MS]);
  });

  test('a deadline that is pushed back, by little or much, leaves its entry where it is', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    const dueMs = clock.monotonicMs() + 100;
    wheel.arm(probe.entry, dueMs);
    const { tick } = probe.entry;
    for (const laterMs of [1, TICK_MS, 2 * TICK_MS, HOUR_MS]) {
      wheel.arm(probe.entry, dueMs + laterMs);
      assert.equal(probe.entry.tick, tick);
    }
  });

  test('a deadline that never comes is not waited for', () => {
    const { clock, wheel } = wheelWithClock();
    wheel.arm(new Probe().entry, Number.POSITIVE_INFINITY);
    assert.deepEqual([wheel.size, clock.timerCount], [0, 0]);
  });

  test('one deadline that is moved far back does not make another late', () => {
    const { clock, wheel } = wheelWithClock();
    const patient = new Probe();
    const punctual = new Probe();
    wheel.arm(patient.entry, clock.monotonicMs() + 50);
    wheel.arm(punctual.entry, clock.monotonicMs() + 100);
    wheel.arm(patient.entry, clock.monotonicMs() + HOUR_MS);
    clock.turn(100 + TICK_MS);
    assert.equal(punctual.fired.length, 1);
  });

  test('a deadline beyond one turn of the wheel is kept', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    wheel.arm(probe.entry, clock.monotonicMs() + HOUR_MS);
    clock.turn(HOUR_MS - 1);
    assert.deepEqual(probe.fired, []);
    clock.turn(1 + TICK_MS);
    assert.equal(probe.fired.length, 1);
  });

  test('an entry that was disarmed or removed never fires and leaves no timer behind', () => {
    const { clock, wheel } = wheelWithClock();
    const disarmed = new Probe();
    const removed = new Probe();
    wheel.arm(disarmed.entry, clock.monotonicMs() + 50);
    wheel.arm(removed.entry, clock.monotonicMs() + 50);
    wheel.disarm(disarmed.entry);
    wheel.remove(removed.entry);
    assert.equal(wheel.size, 1);
    clock.turn(60_000);
    assert.deepEqual([disarmed.fired, removed.fired], [[], []]);
    assert.equal(wheel.size, 0);
    assert.equal(clock.timerCount, 0);
  });

  test('an owner may arm itself and remove others while it is told', () => {
    const { clock, wheel } = wheelWithClock();
    const victim = new Probe();
    let count = 0;
    const again = new TimerEntry({
      onTimeout(nowMs) {
        count++;
        wheel.remove(victim.entry);
        if (count < 3) wheel.arm(again, nowMs + 10);
      },
    });
    wheel.arm(victim.entry, clock.monotonicMs() + 10);
    wheel.arm(again, clock.monotonicMs() + 10);
    clock.turn(1000);
    assert.equal(count, 3);
  });

  test('an owner that throws takes no turn from the others', () => {
    const clock = new ManualClock();
    const faults: unknown[] = [];
    const wheel = new TimerWheel(clock, (error) => faults.push(error));
    const probe = new Probe();
    const broken = new TimerEntry({
      onTimeout() {
        throw new Error('broken');
      },
    });
    for (const entry of [probe.entry, broken]) wheel.arm(entry, clock.monotonicMs() + 10);
    clock.turn(100);
    assert.equal(faults.length, 1);
    assert.equal(probe.fired.length, 1);
  });

  test('waits for a deadline of any distance, by short steps of the clock', () => {
    const { clock, wheel } = wheelWithClock();
    const month = new Probe();
    const longest = new Probe();
    const monthMs = 30 * 24 * 60 * 60 * 1000;
    wheel.arm(month.entry, clock.monotonicMs() + monthMs);
    wheel.arm(longest.entry, clock.monotonicMs() + 315_576_000_000_000);
    // Not turned step by step: between two looks of the wheel a thread may stand still as long as it likes.
    clock.turn(60_000);
    wheel.advance(clock.monotonicMs() + monthMs - 60_000 - TICK_MS);
    assert.deepEqual([month.fired.length, longest.fired.length], [0, 0]);
    wheel.advance(clock.monotonicMs() + monthMs);
    assert.deepEqual([month.fired.length, longest.fired.length], [1, 0]);
  });

  test('any mix of deadlines and steps fires each entry exactly once and in time', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 20 }),
        (delays, steps) => {
          const { clock, wheel } = wheelWithClock();
          const start = clock.monotonicMs();
          const probes = delays.map((delay) => {
            const probe = new Probe();
            wheel.arm(probe.entry, start + delay);
            return { probe, delay };
          });
          for (const step of steps) clock.turn(step);
          clock.turn(50_000);
          for (const { probe, delay } of probes) {
            assert.equal(probe.fired.length, 1);
            const late = probe.fired[0]! - start - delay;
            assert.ok(late >= 0 && late <= TICK_MS + 1, `late by ${late}`);
          }
        },
      ),
    );
  });

  test('fires on the very millisecond where that is one of its ticks', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    assert.equal(clock.monotonicMs() % TICK_MS, 0);
    wheel.arm(probe.entry, clock.monotonicMs() + 10 * TICK_MS);
    clock.turn(10 * TICK_MS);
    assert.equal(probe.fired.length, 1);
  });

  test('fires at once what is due already', () => {
    const { clock, wheel } = wheelWithClock();
    const [first, overdue] = [new Probe(), new Probe()];
    wheel.arm(new Probe().entry, clock.monotonicMs() + HOUR_MS);
    wheel.arm(first.entry, clock.monotonicMs() + 1000);
    clock.turn(1000);
    assert.equal(first.fired.length, 1);
    wheel.arm(overdue.entry, clock.monotonicMs() - 500);
    clock.turn(TICK_MS);
    assert.equal(overdue.fired.length, 1);
  });

  test('goes on after everything has fired or was taken out', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    for (let round = 1; round < 4; round++) {
      wheel.arm(probe.entry, clock.monotonicMs() + 100);
      clock.turn(100 + TICK_MS);
      assert.equal(probe.fired.length, round);
      const other = new TimerEntry(probe);
      wheel.arm(other, clock.monotonicMs() + 100);
      wheel.remove(other);
      clock.turn(round * TURN_MS);
    }
    assert.equal(probe.fired.length, 3);
  });

  for (const [index, place] of ['first', 'second', 'last'].entries()) {
    test(`of several with one deadline the ${place} is taken out, and the others stay`, () => {
      const { clock, wheel } = wheelWithClock();
      const probes = [new Probe(), new Probe(), new Probe()];
      for (const { entry } of probes) wheel.arm(entry, clock.monotonicMs() + 100);
      wheel.remove(probes[index]!.entry);
      clock.turn(100 + TICK_MS);
      assert.deepEqual(
        probes.map(({ fired }) => fired.length),
        probes.map((_, other) => (other === index ? 0 : 1)),
      );
    });
  }

  test('passes over nobody when the thread comes late', () => {
    let nowMs = 1000;
    let wake = (): void => {};
    const late = {
      monotonicMs: () => nowMs,
      wallMs: () => nowMs,
      after: (_delayMs: number, callback: () => void) => {
        wake = callback;
        return () => {};
      },
    };
    const wheel = new TimerWheel(late, (error) => assert.fail(String(error)));
    const [first, second] = [new Probe(), new Probe()];
    wheel.arm(first.entry, nowMs + 50);
    nowMs += 60;
    wheel.arm(second.entry, nowMs + 50);
    wake();
    assert.deepEqual([first.fired, second.fired], [[1060], []]);
    nowMs += 50 + TICK_MS;
    wake();
    assert.equal(second.fired.length, 1);
  });

  test('asks the clock once for all that is due in one tick, however long it stood still', () => {
    const { clock, wheel } = wheelWithClock();
    for (let round = 1; round < 4; round++) {
      clock.turn(round * TURN_MS);
      const probes = [new Probe(), new Probe(), new Probe()];
      for (const { entry } of probes) wheel.arm(entry, clock.monotonicMs() + 1000);
      clock.turn(1000 + TICK_MS);
      assert.ok(probes.every(({ fired }) => fired.length === 1));
      assert.equal(clock.asked, round);
    }
  });

  test('wakes once in a turn for a deadline that is far off', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    wheel.arm(probe.entry, clock.monotonicMs() + HOUR_MS);
    clock.turn(HOUR_MS + TICK_MS);
    assert.equal(probe.fired.length, 1);
    assert.ok(clock.asked <= Math.ceil(HOUR_MS / (TURN_MS - TICK_MS)) + 1, `${clock.asked} wakes`);
  });

  test('that is closed tells nobody of anything, and keeps no timer', () => {
    const { clock, wheel } = wheelWithClock();
    const probes = [new Probe(), new Probe()];
    wheel.arm(probes[0]!.entry, clock.monotonicMs() + 100);
    wheel.close();
    assert.equal(clock.timerCount, 0);
    wheel.arm(probes[1]!.entry, clock.monotonicMs() + 10);
    assert.equal(clock.timerCount, 0);
    clock.turn(HOUR_MS);
    assert.deepEqual([probes[0]!.fired, probes[1]!.fired], [[], []]);
    const unused = wheelWithClock();
    unused.wheel.close();
    assert.equal(unused.clock.timerCount, 0);
  });

  test('lends entries one after the other, and tells nobody who has given his back', () => {
    const { clock, wheel } = wheelWithClock();
    const [first, second] = [new Probe(), new Probe()];
    const lent = wheel.lend(first);
    wheel.arm(lent, clock.monotonicMs() + 100);
    wheel.takeBack(lent);
    const again = wheel.lend(second);
    assert.equal(again, lent);
    assert.notEqual(wheel.lend(first), lent);
    clock.turn(20);
    wheel.arm(again, clock.monotonicMs() + 100);
    clock.turn(99);
    assert.deepEqual(second.fired, []);
    clock.turn(1 + 2 * TICK_MS);
    assert.equal(second.fired.length, 1);
    assert.deepEqual(first.fired, []);
  });

  test('lends an entry that waits for later to who wants to be told sooner', () => {
    const { clock, wheel } = wheelWithClock();
    const lent = wheel.lend(new Probe());
    wheel.arm(lent, clock.monotonicMs() + 500);
    wheel.takeBack(lent);
    const probe = new Probe();
    wheel.arm(wheel.lend(probe), clock.monotonicMs() + 50);
    clock.turn(50 + TICK_MS);
    assert.equal(probe.fired.length, 1);
  });

  test('keeps some of the entries that come back for the next, and no slot of the others', () => {
    const { clock, wheel } = wheelWithClock();
    const lent = Array.from({ length: 3000 }, () => wheel.lend(new Probe()));
    for (const entry of lent) wheel.arm(entry, clock.monotonicMs() + 100);
    for (const entry of lent) wheel.takeBack(entry);
    assert.ok(wheel.size > 0 && wheel.size < 2000, `${wheel.size} of 3000`);
  });
});
