// Tells in the log, while connections end, how many are left. Main thread.

import type { Clock } from '../../base/clock.ts';
import { every } from '../../base/stall-watch.ts';
import type { Logger } from '../../log/index.ts';

export interface ConnectionsLeft {
  readonly clock: Clock;
  readonly log: Logger;
  /** Open ones now. */
  readonly connections: () => number;
}

/** A line for each tenth of the time, but no more than one a second. */
const SHORTEST_INTERVAL_MS = 1000;
const LINES = 10;

/** Says nothing while there are none. @param durationMs that they have. @returns what ends it. */
export function tellConnectionsLeft({ clock, log, connections }: ConnectionsLeft, durationMs: number): () => void {
  return every(clock, Math.max(durationMs / LINES, SHORTEST_INTERVAL_MS), () => {
    const left = connections();
    if (left > 0) log.info(connectionsLeft(left));
  });
}

export function connectionsLeft(count: number): string {
  return count === 1 ? '1 connection is left' : `${count} connections are left`;
}
