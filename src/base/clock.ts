// Time, as an owned dependency: whoever waits or measures is given a clock, so that tests can turn it by hand.
// Only this file touches the system's clock and timers on behalf of the data plane.

import { performance } from 'node:perf_hooks';

export interface Clock {
  /** Milliseconds since an arbitrary start, with fractions; never goes back. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch. */
  wallMs(): number;
  /**
   * Calls once after `delayMs`, of any length: at once for 0 and less, never for Infinity. Does not keep the process
   * alive. @returns what calls it off. @throws RangeError for NaN, which would be a wait that nobody has meant.
   */
  after(delayMs: number, callback: () => unknown): () => void;
}

/** 24.8 days: Node makes 1 ms of anything longer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export const SYSTEM_CLOCK: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, callback) {
    if (Number.isNaN(delayMs)) throw new RangeError('a wait of NaN milliseconds');
    if (delayMs > MAX_TIMEOUT_MS) return afterStages(delayMs, callback);
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Microseconds of the system's own monotonic clock, which all processes of a machine share. */
export function systemMonotonicUs(): bigint {
  return process.hrtime.bigint() / 1000n;
}

/** The same in milliseconds, with a fraction. */
export function systemMonotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** By the clock and not by the number of stages, so that their small delays do not add up. */
function afterStages(delayMs: number, callback: () => unknown): () => void {
  const dueMs = performance.now() + delayMs;
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    const restMs = dueMs - performance.now();
    timer = restMs > MAX_TIMEOUT_MS ? setTimeout(wait, MAX_TIMEOUT_MS) : setTimeout(callback, restMs);
    timer.unref();
  };
  if (delayMs !== Number.POSITIVE_INFINITY) wait();
  return () => clearTimeout(timer);
}

/** Lets the whole thread stand still: only for one that has nothing else to do, such as the end of the process. */
export function stopThread(forMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)), 0, 0, forMs);
}
