// Tells another process what this one counts: all of it at first, then what has come since. Gauges go as they are; histograms
// and texts stay. Main thread of the process that is about to leave.

import type { StatsStore } from '../store.ts';
import type { StatBatch } from './stat-batch.ts';

export class StatExport {
  readonly #stats: StatsStore;
  /** By counter. */
  readonly #told = new Map<string, number>();

  constructor(stats: StatsStore) {
    this.#stats = stats;
  }

  /**
   * Those that have been used, in pieces between which other work gets its turn. Sinks must not be told of anything meanwhile.
   * @param isLeft the other process serves: what it has been told of is its to tell sinks of, also should this one serve again.
   * Before that it may have told nobody.
   */
  async *batches(isLeft: boolean): AsyncGenerator<StatBatch> {
    for await (const stats of this.#stats.countersAndGauges()) {
      const counters: string[] = [];
      const increments: number[] = [];
      const flushed: number[] = [];
      const gauges: string[] = [];
      const values: number[] = [];
      for (const stat of stats) {
        const { name, value } = stat;
        if (stat.kind === 'gauge') {
          if (!stat.isUsed) continue;
          gauges.push(name);
          values.push(value);
          continue;
        }
        const told = this.#told.get(name);
        const increment = value - (told ?? 0);
        const unflushed = isLeft ? stat.takeIncrement() : stat.increment;
        if (increment <= 0) continue;
        this.#told.set(name, value);
        counters.push(name);
        increments.push(increment);
        // Later increments have been told to nobody: sinks rest.
        flushed.push(told === undefined ? Math.max(increment - unflushed, 0) : 0);
      }
      yield { counters, increments, flushed, gauges, values };
    }
  }
}
