// How long a host waits for its next check. Pure but for chance.

import type { Random } from '../../../base/random.ts';
import type { CheckIntervals } from '../../../snapshot/index.ts';
import type { Transition } from './check-state.ts';

/** Bounds that the runtime sets on every wait. */
export interface IntervalBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

const SHORTEST_MS = 1;

/** @param hasTraffic the cluster has had a connection that was no check. */
export function checkIntervalMs(
  intervals: CheckIntervals,
  hasPassed: boolean,
  transition: Transition,
  hasTraffic: boolean,
  { minMs, maxMs }: IntervalBounds,
  random: Random,
): number {
  const baseMs = baseIntervalMs(intervals, hasPassed, transition, hasTraffic);
  const { jitterMs, jitterPercent } = intervals;
  const shareMs = Math.floor((jitterPercent * baseMs) / 100);
  let waitMs = baseMs;
  if (shareMs > 0) waitMs += random.u32() % shareMs;
  if (jitterMs > 0) waitMs += random.u32() % jitterMs;
  return Math.max(SHORTEST_MS, minMs, Math.min(waitMs, maxMs));
}

function baseIntervalMs(
  intervals: CheckIntervals,
  hasPassed: boolean,
  transition: Transition,
  hasTraffic: boolean,
): number {
  const isEdge = transition === 'pending';
  if (!hasTraffic) return hasPassed && !isEdge ? intervals.noTrafficHealthyMs : intervals.noTrafficMs;
  if (hasPassed) return isEdge ? intervals.healthyEdgeMs : intervals.healthyMs;
  return isEdge ? intervals.unhealthyEdgeMs : intervals.unhealthyMs;
}
