// Ends the streams of this worker that hold the most bytes. What a stream holds is asked of all of them when that is wanted, and
// not counted before.

import type { ExpensiveStream } from './terminal-filter.ts';

/** At a time: to end many takes long, and what they held may have been enough. */
const MOST_RESETS = 50;

/** @returns how many have been ended; those that hold the most come first. */
export function resetExpensiveStreams(
  owners: readonly { findExpensive(fromBytes: number, found: ExpensiveStream[]): void }[],
  fromBytes: number,
): number {
  const found: ExpensiveStream[] = [];
  for (const owner of owners) owner.findExpensive(fromBytes, found);
  const sizes = new Map(found.map((stream) => [stream, stream.heldBytes]));
  const expensive = found.sort((a, b) => sizes.get(b)! - sizes.get(a)!).slice(0, MOST_RESETS);
  for (const stream of expensive) stream.resetExpensive();
  return expensive.length;
}
