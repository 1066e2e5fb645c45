// How much of its weight a host has while it starts: a share that grows with its age. Pure.

import type { SlowStartSettings } from '../../../snapshot/index.ts';

/** Of 1, by the index of a host in the cluster's order; 1 once its window is over. */
export type StartShare = (index: number) => number;

/**
 * Above 0, up to 1.
 * @param ageMs since the host came, or passed its checks.
 * @param aggression above 0; 1 grows evenly, more starts faster.
 */
export function startShare(
  { windowMs, minWeightPercent }: SlowStartSettings,
  aggression: number,
  ageMs: number,
): number {
  if (ageMs >= windowMs) return 1;
  const grown = (Math.max(1, ageMs) / windowMs) ** (1 / aggression);
  return Math.min(1, Math.max(grown, minWeightPercent / 100));
}
