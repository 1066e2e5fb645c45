// dispatcher.*: times of the event loops of all threads, where the bootstrap asks for them. Main thread, which meters its own loop;
// workers are told where to record.

import type { Clock } from '../../base/clock.ts';
import { loopSystem, meterLoop } from '../../base/loop-meter.ts';
import { DISPATCHER_STATS, type StatsStore } from '../../stats/index.ts';

export class LoopStats {
  readonly #own;
  readonly #workers: readonly number[];
  #end = (): void => {};

  /** @param isEnabled otherwise there are no such stats. */
  constructor(isEnabled: boolean, stats: Pick<StatsStore, 'scope'>, concurrency: number) {
    const allocate = (prefix: string) => stats.scope(`${prefix}dispatcher.`).allocate(DISPATCHER_STATS);
    this.#own = isEnabled ? allocate('server.') : undefined;
    const workers = isEnabled ? concurrency : 0;
    this.#workers = Array.from({ length: workers }, (_, index) => allocate(`listener_manager.worker_${index}.`).cell);
  }

  /** Block of a worker; null where nothing is metered. */
  forWorker(index: number): number | null {
    return this.#workers[index] ?? null;
  }

  start(clock: Clock): void {
    const own = this.#own;
    if (own === undefined) return;
    this.#end = meterLoop(loopSystem(clock), {
      turned: (us) => own.record('loop_duration_us', us),
      delayed: (us) => own.record('poll_delay_us', us),
    });
  }

  close(): void {
    this.#end();
  }
}
