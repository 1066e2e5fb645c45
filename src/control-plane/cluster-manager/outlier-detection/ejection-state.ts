// One host as its cluster's outlier detector knows it: what it did in the last interval, how often it has been ejected, and
// until when it is left alone. Main thread.
//
//   IN SERVICE ──eject──► EJECTED ──time over, or a passed check──► IN SERVICE
//
// Each ejection lasts longer than the one before, up to a limit; each interval in service takes a step back.

import type { OutlierLimits } from '../../../snapshot/index.ts';
import type { ActiveHost } from '../active-host.ts';
import type { Volume } from './success-rate.ts';

const NONE: Volume = { total: 0, success: 0 };

/** Whose fault failures are: the host's answers, or connections to it. */
export type Origin = 'external' | 'local';

type EjectionTimes = Pick<OutlierLimits, 'baseEjectionTimeMs' | 'maxEjectionTimeMs' | 'intervalMs'>;

export class EjectionState {
  readonly host: ActiveHost;
  /** Since the host came. */
  ejections = 0;
  ejectedAtMs: number | undefined;
  unejectedAtMs: number | undefined;
  /** Steps that the next ejection's time has grown by. */
  #multiplier = 0;
  #jitterMs = 0;
  readonly #totals: Record<Origin, Volume> = { external: NONE, local: NONE };
  readonly #lastInterval: Record<Origin, Volume> = { external: NONE, local: NONE };

  constructor(host: ActiveHost) {
    this.host = host;
  }

  eject(nowMs: number, { baseEjectionTimeMs, maxEjectionTimeMs }: EjectionTimes, jitterMs: number): void {
    this.ejections += 1;
    this.ejectedAtMs = nowMs;
    this.#jitterMs = jitterMs;
    if (this.#multiplier * baseEjectionTimeMs < maxEjectionTimeMs + baseEjectionTimeMs) this.#multiplier += 1;
  }

  isOver(nowMs: number, { baseEjectionTimeMs, maxEjectionTimeMs }: EjectionTimes): boolean {
    const lastsMs = Math.min(baseEjectionTimeMs * this.#multiplier, maxEjectionTimeMs) + this.#jitterMs;
    return nowMs - (this.ejectedAtMs ?? nowMs) >= lastsMs;
  }

  uneject(nowMs: number): void {
    this.unejectedAtMs = nowMs;
  }

  /** An interval in service has passed. */
  forgive(nowMs: number, { intervalMs }: EjectionTimes): void {
    if (this.#multiplier > 0 && nowMs - (this.unejectedAtMs ?? nowMs) >= intervalMs) this.#multiplier -= 1;
  }

  /** Ends an interval: what the workers have counted in it is what `lastInterval` says from now on. */
  endInterval(): void {
    for (const origin of ['external', 'local'] as const) {
      const now = this.host.outlierVolume(origin);
      const { total, success } = this.#totals[origin];
      this.#totals[origin] = now;
      this.#lastInterval[origin] = { total: now.total - total, success: now.success - success };
    }
  }

  lastInterval(origin: Origin): Volume {
    return this.#lastInterval[origin];
  }
}
