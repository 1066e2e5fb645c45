import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { SYSTEM_CLOCK } from '../../../src/base/clock.ts';
import { loopSystem, meterLoop } from '../../../src/base/loop-meter.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('the times of an event loop', () => {
  it('are those of its work, without what it has waited, and how late a timer has come', () => {
    const clock = new ManualClock();
    let idleMs = 40;
    let atTurn: (() => void) | undefined;
    const turns: number[] = [];
    const delays: number[] = [];
    const end = meterLoop(
      {
        clock,
        idleMs: () => idleMs,
        afterTurn: (callback) => {
          atTurn = callback;
          return () => {
            atTurn = undefined;
          };
        },
      },
      { turned: (us) => turns.push(us), delayed: (us) => delays.push(us) },
    );
    const turn = (workMs: number, waitedMs: number): void => {
      idleMs += waitedMs;
      clock.turn(workMs + waitedMs);
      atTurn!();
    };
    turn(3, 0);
    turn(5, 20);
    // The engine's clock of waiting is another one.
    idleMs += 1;
    turn(0, 0);
    assert.deepEqual(turns, [3000, 5000, 0]);
    assert.deepEqual(delays, []);
    clock.turn(100 - 28);
    assert.deepEqual(delays, [0]);
    clock.stall(107);
    clock.turn(0);
    assert.deepEqual(delays, [0, 7000]);
    end();
    assert.deepEqual([atTurn, clock.timerCount], [undefined, 0]);
  });

  it('are those of the loop that this test runs in, which they wake up for nothing', async () => {
    const turns: number[] = [];
    const end = meterLoop(loopSystem(SYSTEM_CLOCK), { turned: (us) => turns.push(us), delayed() {} });
    await nextTurn();
    turns.splice(0);
    const busyUntilMs = performance.now() + 30;
    while (performance.now() < busyUntilMs);
    await nextTurn();
    await nextTurn();
    assert.ok(Math.max(...turns) >= 30_000, turns.join(' '));
    turns.splice(0);
    await delay(300);
    end();
    // Timers of others turn it a few times; one that never waited would turn thousands of times.
    assert.ok(turns.length < 100, `${turns.length} turns`);
    assert.ok(Math.min(...turns) < 100_000, turns.join(' '));
  });
});
