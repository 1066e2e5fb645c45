// The periodic flush, on main: gauges that are only written now and then are brought up to date, histograms
// are merged, sinks are fed. Phases run in that order; a step may be asynchronous.

import type { Clock } from '../base/clock.ts';

/** In the order in which they run. */
const PHASES = ['gauges', 'merge', 'sinks'] as const;
export type FlushPhase = (typeof PHASES)[number];
export type FlushStep = () => void | Promise<void>;

export interface StatsFlushOptions {
  readonly clock: Clock;
  /** stats_flush_interval; 0 flushes only on demand. */
  readonly intervalMs: number;
  /** A flush was asked for while one was running: `server.dropped_stat_flushes`. */
  readonly onDropped: () => void;
  /** A step failed; the others still run. */
  readonly onError: (error: unknown) => void;
}

export class StatsFlush {
  readonly #options: StatsFlushOptions;
  readonly #steps: Record<FlushPhase, FlushStep[]> = { gauges: [], merge: [], sinks: [] };
  #cancelTimer: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #isStopped = false;
  #sinksRest = false;

  constructor(options: StatsFlushOptions) {
    this.#options = options;
  }

  /** Adds a step; returns a function that takes it out again. */
  add(phase: FlushPhase, step: FlushStep): () => void {
    this.#steps[phase].push(step);
    return () => {
      this.#steps[phase] = this.#steps[phase].filter((other) => other !== step);
    };
  }

  /** Whether sinks are told of nothing, because another process tells them. */
  restSinks(isResting: boolean): void {
    this.#sinksRest = isResting;
  }

  /** Starts the timer. */
  start(): void {
    if (this.#options.intervalMs > 0 && !this.#isStopped) this.#schedule();
  }

  /** Flushes now; a caller that comes while a flush runs waits for that one instead. */
  flush(): Promise<void> {
    if (this.#running) this.#options.onDropped();
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Idempotent; a running flush ends by itself. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  /** After `stop`: flushes what has come since the flush before, which may still run. */
  async finish(): Promise<void> {
    await this.#running;
    await this.flush();
  }

  #schedule(): void {
    this.#cancelTimer = this.#options.clock.after(this.#options.intervalMs, () => {
      if (!this.#isStopped) this.#schedule();
      return this.flush();
    });
  }

  async #run(): Promise<void> {
    for (const phase of PHASES) {
      if (phase === 'sinks' && this.#sinksRest) continue;
      for (const step of this.#steps[phase]) {
        try {
          await step();
        } catch (error) {
          this.#options.onError(error);
        }
      }
    }
  }
}
