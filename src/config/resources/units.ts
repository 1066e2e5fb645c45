// Protobuf values as plain numbers in the units that settings use.

import { int64ToNumber } from '../proto/int64.ts';
import type { Duration } from './messages.ts';

/**
 * Whole milliseconds of a duration, rounded down; but a positive duration never becomes 0, because 0 means
 * "no limit" in most settings and a tiny limit must not turn into none.
 */
export function durationMs(duration: Duration): number {
  const exactMs = int64ToNumber(duration.seconds) * 1000 + duration.nanos / 1e6;
  return exactMs > 0 && exactMs < 1 ? 1 : Math.trunc(exactMs);
}

export function durationMsOr(duration: Duration | null, fallbackMs: number): number {
  return duration === null ? fallbackMs : durationMs(duration);
}

/** Value of a wrapper message, or `fallback` when it is absent. */
export function valueOr<T>(wrapper: { readonly value: T } | null | undefined, fallback: T): T {
  return wrapper ? wrapper.value : fallback;
}
