import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { SYSTEM_CLOCK } from '../../../src/base/clock.ts';

/** Node fires a timer at once that is asked to wait longer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const DAY_MS = 24 * 60 * 60 * 1000;
/** The longest duration that protobuf knows: ten thousand years. */
const LONGEST_MS = 315_576_000_000 * 1000;

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
  unref(): void;
}

/** Time and timers of the system, turned by hand. They are those of Node, with its limit. */
class FakeSystem {
  nowMs = 0;
  readonly #waiting = new Set<Timer>();
  readonly #original = { setTimeout, clearTimeout, now: performance.now };

  install(): void {
    const fake = (callback: () => void, delayMs: number): Timer => {
      assert.ok(delayMs <= MAX_TIMEOUT_MS, `a timer of ${delayMs} ms`);
      const timer = { atMs: this.nowMs + Math.max(1, delayMs), callback, unref: () => {} };
      this.#waiting.add(timer);
      return timer;
    };
    Object.assign(globalThis, { setTimeout: fake, clearTimeout: (timer: Timer) => this.#waiting.delete(timer) });
    performance.now = () => this.nowMs;
  }

  restore(): void {
    const { now, ...timers } = this.#original;
    Object.assign(globalThis, timers);
    performance.now = now;
  }

  get timerCount(): number {
    return this.#waiting.size;
  }

  /** Jumps from timer to timer; each fires a little late, as they do. */
  turn(byMs: number): void {
    const targetMs = this.nowMs + byMs;
    for (;;) {
      const next = [...this.#waiting].sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > targetMs) break;
      this.#waiting.delete(next);
      this.nowMs = next.atMs + 0.5;
      next.callback();
    }
    this.nowMs = targetMs;
  }
}

describe('the clock of the system', () => {
  const system = new FakeSystem();
  beforeEach(() => system.install());
  afterEach(() => system.restore());

  for (const delayMs of [1, 1000, MAX_TIMEOUT_MS, MAX_TIMEOUT_MS + 1, 30 * DAY_MS, (2 ** 32 - 1) * 1000]) {
    it(`waits ${delayMs} ms, not less and hardly more`, () => {
      let firedMs = -1;
      const startMs = system.nowMs;
      SYSTEM_CLOCK.after(delayMs, () => {
        firedMs = system.nowMs - startMs;
      });
      system.turn(delayMs - 1);
      assert.equal(firedMs, -1);
      system.turn(2);
      assert.ok(firedMs >= delayMs && firedMs <= delayMs + 2, `${firedMs}`);
      assert.equal(system.timerCount, 0);
    });
  }

  it('waits for years with one timer at a time, and can be called off in between', () => {
    let hasFired = false;
    const callOff = SYSTEM_CLOCK.after(LONGEST_MS, () => {
      hasFired = true;
    });
    for (let year = 0; year < 10; year += 1) {
      system.turn(365 * DAY_MS);
      assert.equal(system.timerCount, 1);
    }
    callOff();
    assert.equal(system.timerCount, 0);
    assert.equal(hasFired, false);
  });

  it('never fires after an infinite time', () => {
    const callOff = SYSTEM_CLOCK.after(Number.POSITIVE_INFINITY, () => assert.fail('fired'));
    assert.equal(system.timerCount, 0);
    callOff();
  });

  it('fires at once what is due already', () => {
    const delays = [0, -1, Number.NEGATIVE_INFINITY];
    const fired: number[] = [];
    for (const delayMs of delays) SYSTEM_CLOCK.after(delayMs, () => void fired.push(delayMs));
    system.turn(1);
    assert.deepEqual(fired, delays);
  });

  it('refuses a wait that is no number', () => {
    assert.throws(() => SYSTEM_CLOCK.after(Number.NaN, () => {}), RangeError);
  });
});

it('does not keep the process alive, however long it waits', () => {
  for (const delayMs of [1000, LONGEST_MS]) {
    const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const callOff = SYSTEM_CLOCK.after(delayMs, () => {});
    assert.equal(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length, before);
    callOff();
  }
});
