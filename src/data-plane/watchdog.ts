// A worker's part in watching: it beats for the main thread to see, and looks whether the main thread does. Worker thread.

import { writeSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { every, isOver, StallWatch } from '../base/stall-watch.ts';
import type { Logger } from '../log/index.ts';
import type { WorkerWatchdog } from '../snapshot/index.ts';
import { WATCHDOG_STATS, type WorkerStats } from '../stats/index.ts';
import type { SharedRecords } from '../wasm/shared-memory.ts';

export interface WatchdogDependencies {
  readonly clock: Clock;
  readonly records: SharedRecords;
  readonly stats: Pick<WorkerStats, 'values' | 'base'>;
  readonly log: Logger;
}

const STANDARD_ERROR = 2;

/** @returns what ends it. */
export function watchMain(settings: WorkerWatchdog, { clock, records, stats, log }: WatchdogDependencies): () => void {
  const { intervalMs, beats, mainBeats, limits, killMs, statBlocks } = settings;
  const watch = new StallWatch(limits, intervalMs);
  const { watchdog_miss, watchdog_mega_miss } = WATCHDOG_STATS.index;
  let lookedMs = clock.monotonicMs();
  // A thread that has not beaten counts as one that has not begun: this one may be stuck before its first turn.
  records.addCount(beats, 1);
  return every(clock, intervalMs, () => {
    records.addCount(beats, 1);
    const nowMs = clock.monotonicMs();
    const stalls = watch.look(records.count(mainBeats), nowMs - lookedMs);
    lookedMs = nowMs;
    for (const stall of stalls) {
      if (statBlocks === null) continue;
      const row = stall === 'miss' ? watchdog_miss : watchdog_mega_miss;
      for (const block of statBlocks) stats.values[stats.base(block) + row]! += 1;
      // It is written when the main thread goes on.
      if (stall === 'mega-miss') log.warning(`the main thread has not gone on for ${limits.megaMissMs} ms`);
    }
    if (isOver(killMs, watch.silentMs)) abort(killMs);
  });
}

/** Lines of the log go through the thread that is stuck. */
function abort(killMs: number): void {
  try {
    writeSync(STANDARD_ERROR, `weir: the main thread has not gone on for ${killMs} ms: the process is aborted\n`);
  } catch {
    // Nobody reads them; it ends all the same.
  }
  process.kill(process.pid, 'SIGABRT');
}
