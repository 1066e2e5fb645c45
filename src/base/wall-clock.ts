// The time of day with microseconds. Date.now() alone has whole milliseconds; the monotonic clock alone drifts
// away when the system's clock is set. So the fraction comes from one and the truth from the other.

/** How far the two clocks may be apart before the fraction is no longer trusted. */
const TOLERANCE_MS = 2;

/** @returns a clock of milliseconds since 1970, with a fraction. */
export function createWallClock(): () => number {
  let offsetMs = Date.now() - performance.now();
  return () => {
    const trueMs = Date.now();
    const fineMs = offsetMs + performance.now();
    if (Math.abs(fineMs - trueMs) <= TOLERANCE_MS) return fineMs;
    offsetMs = trueMs - performance.now();
    return trueMs;
  };
}
