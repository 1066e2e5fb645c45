// How long each turn of a thread's event loop takes, and how late its timers come. Any thread. Between two turns of which one says
// when it ends, what the loop has not waited for the system is work; the engine counts that waiting by itself.

import { performance } from 'node:perf_hooks';
import type { Clock } from './clock.ts';

export interface LoopTimes {
  /** The loop has been at work for so long before it waited again, or might have. */
  turned(us: number): void;
  /** A timer has come so late. */
  delayed(us: number): void;
}

/** Apart enough to cost nothing. */
const TIMER_INTERVAL_MS = 100;
const US_PER_MS = 1000;

/** What a test may turn. */
export interface LoopSystem {
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** For how long the loop has waited for events, in all. */
  readonly idleMs: () => number;
  /** Calls once at the end of this turn or the next, and keeps no loop from waiting. @returns what calls it off. */
  readonly afterTurn: (callback: () => void) => () => void;
}

export function loopSystem(clock: Clock): LoopSystem {
  return {
    clock,
    idleMs: () => performance.nodeTiming.idleTime,
    afterTurn(callback) {
      // What is not waited for runs behind the events of a turn, and wakes nobody up.
      const immediate = setImmediate(callback).unref();
      return () => clearImmediate(immediate);
    },
  };
}

/** @returns what ends it. */
export function meterLoop({ clock, idleMs, afterTurn }: LoopSystem, times: LoopTimes): () => void {
  let endMs = clock.monotonicMs();
  let idleAtEndMs = idleMs();
  let cancelTurn = (): void => {};
  let cancelTimer = (): void => {};
  const turn = (): void => {
    const nowMs = clock.monotonicMs();
    const idleNowMs = idleMs();
    times.turned(Math.max(nowMs - endMs - (idleNowMs - idleAtEndMs), 0) * US_PER_MS);
    endMs = nowMs;
    idleAtEndMs = idleNowMs;
    cancelTurn = afterTurn(turn);
  };
  const wait = (): void => {
    const dueMs = clock.monotonicMs() + TIMER_INTERVAL_MS;
    cancelTimer = clock.after(TIMER_INTERVAL_MS, () => {
      times.delayed(Math.max(clock.monotonicMs() - dueMs, 0) * US_PER_MS);
      wait();
    });
  };
  cancelTurn = afterTurn(turn);
  wait();
  return () => {
    cancelTurn();
    cancelTimer();
  };
}
