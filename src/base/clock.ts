// Time, as an owned dependency: whoever waits or measures is given a clock, so that tests can turn it by hand.
// Only this file touches the system's clock and timers on behalf of the data plane.

export interface Clock {
  /** Milliseconds since an arbitrary start, with fractions; never goes back. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch. */
  wallMs(): number;
  /** Calls once after `delayMs`; does not keep the process alive. Returns a function that calls it off. */
  after(delayMs: number, callback: () => unknown): () => void;
}

/** The system's timers end at once when asked for more, which is some 25 days. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const SYSTEM_CLOCK: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, callback) {
    let timer: NodeJS.Timeout;
    const wait = (restMs: number): void => {
      const isLast = restMs <= MAX_TIMER_MS;
      timer = setTimeout(isLast ? callback : () => wait(restMs - MAX_TIMER_MS), isLast ? restMs : MAX_TIMER_MS);
      timer.unref();
    };
    wait(delayMs);
    return () => clearTimeout(timer);
  },
};

/** Lets the whole thread stand still: only for one that has nothing else to do, such as the end of the process. */
export function stopThread(forMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)), 0, 0, forMs);
}
