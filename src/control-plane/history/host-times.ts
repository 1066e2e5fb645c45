// Response times of hosts that somebody looks at. No worker records any until main writes the cell of a histogram into the host's
// record; it takes that back a minute after the last look. Histograms are lent and never freed: a worker that has read the cell just
// before may add a last sample, which then counts for another host, once, and harms nothing. Main thread.
//
//   asked ──► lent ──2 s──► first window ──3 s──5 s──► windows of 10 s each ──a minute without a look, or gone──► lent to others

import type { Clock } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import { HOST_TIME_STATS, type StatsStore } from '../../stats/index.ts';

/** Each takes some 4 KB when it is used; what is asked beyond that many stays unknown. */
const MAX_HOSTS = 2048;
const KEPT_AFTER_LOOK_MS = 60_000;
/** Lengths of the first windows; all others are as long as the last. */
const WINDOWS_MS = [2000, 3000, 5000, 10_000] as const;
const TICK_MS = 1000;
const QUANTILES = [0.5, 0.99];

export interface TimedHost {
  readonly isRetired: boolean;
  lendTimes(cell: number): void;
}

/** Of the last whole window; NaN without responses in it. */
export interface RecentTimes {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Loan {
  readonly cell: number;
  lookedMs: number;
  /** Windows that are over. */
  windows: number;
  windowEndsMs: number;
}

export interface HostTimesDependencies {
  readonly clock: Clock;
  readonly stats: Pick<StatsStore, 'allocateUnnamed' | 'mergeUnnamed' | 'histogramQuantiles'>;
}

export class HostTimes {
  readonly #clock: Clock;
  readonly #stats: HostTimesDependencies['stats'];
  readonly #loans = new Map<TimedHost, Loan>();
  readonly #unused: number[] = [];
  #callOff: (() => void) | undefined;

  constructor({ clock, stats }: HostTimesDependencies) {
    this.#clock = clock;
    this.#stats = stats;
  }

  /** What is known of the host's times. The first look at a host has workers begin to record them. */
  look(host: TimedHost): RecentTimes | undefined {
    const loan = this.#loans.get(host) ?? this.#lend(host);
    if (loan === undefined) return undefined;
    loan.lookedMs = this.#clock.monotonicMs();
    if (loan.windows === 0) return undefined;
    const [p50Ms, p99Ms] = this.#stats.histogramQuantiles(loan.cell, 'interval', QUANTILES);
    return { p50Ms: p50Ms!, p99Ms: p99Ms! };
  }

  /** Hosts whose times are recorded. */
  get size(): number {
    return this.#loans.size;
  }

  close(): void {
    this.#callOff?.();
    this.#callOff = undefined;
  }

  #lend(host: TimedHost): Loan | undefined {
    if (host.isRetired || this.#loans.size >= MAX_HOSTS) return undefined;
    const cell = this.#unused.pop() ?? this.#allocate();
    if (cell === undefined) return undefined;
    // What the one before has left there is in no window of this one.
    this.#stats.mergeUnnamed(cell);
    const nowMs = this.#clock.monotonicMs();
    const loan = { cell, lookedMs: nowMs, windows: 0, windowEndsMs: nowMs + WINDOWS_MS[0] };
    this.#loans.set(host, loan);
    host.lendTimes(cell);
    if (this.#callOff === undefined) this.#wait();
    return loan;
  }

  /** Undefined when the shared memory is full: nothing fails for want of times. */
  #allocate(): number | undefined {
    try {
      return this.#stats.allocateUnnamed(HOST_TIME_STATS);
    } catch (error) {
      if (!(error instanceof WeirError && error.code === 'WEIR_SHARED_MEMORY_FULL')) throw error;
      return undefined;
    }
  }

  #wait(): void {
    this.#callOff = this.#clock.after(TICK_MS, () => {
      this.#tick(this.#clock.monotonicMs());
      if (this.#loans.size > 0) this.#wait();
      else this.#callOff = undefined;
    });
  }

  #tick(nowMs: number): void {
    for (const [host, loan] of this.#loans) {
      if (host.isRetired || nowMs - loan.lookedMs >= KEPT_AFTER_LOOK_MS) {
        host.lendTimes(0);
        this.#loans.delete(host);
        this.#unused.push(loan.cell);
      } else if (nowMs >= loan.windowEndsMs) {
        this.#stats.mergeUnnamed(loan.cell);
        loan.windows += 1;
        loan.windowEndsMs = nowMs + WINDOWS_MS[Math.min(loan.windows, WINDOWS_MS.length - 1)]!;
      }
    }
  }
}
