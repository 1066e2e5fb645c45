// How long threads may be silent, and what workers need to notice that the main thread is.

import type { StallLimits } from '../base/stall-watch.ts';

export interface WatchdogSettings extends StallLimits {
  /** A thread is ended that is silent for so long; 0 for never. */
  readonly killMs: number;
  /** Added to it by chance, up to this. */
  readonly killJitterMs: number;
  /** The process is ended when several threads are; 0 for never. */
  readonly multikillMs: number;
  /** What share of the threads that are watched makes several, in percent; two at least. */
  readonly multikillPercent: number;
}

export interface WorkerWatchdog {
  /** How often the thread beats, and looks. */
  readonly intervalMs: number;
  /** Count record of its own beats. */
  readonly beats: number;
  /** The same of the main thread. */
  readonly mainBeats: number;
  /** Of the main thread. */
  readonly limits: StallLimits;
  /** The process is ended when the main thread is silent for so long; 0 for never. */
  readonly killMs: number;
  /** Blocks of WATCHDOG_STATS for the main thread; null for a worker that does not count, because another does. */
  readonly statBlocks: readonly number[] | null;
}
