// What filters of every kind are made with alike, over the parts of the worker that they may know: counts under their names, the
// runtime, chance and time.

import { type Clock, systemMonotonicMs } from '../base/clock.ts';
import { WeirError } from '../base/errors.ts';
import { isWithin, type RuntimeSetting, type RuntimeValues } from '../base/runtime.ts';
import type { Fraction } from '../snapshot/index.ts';
import type { FilterCounter, FilterGauge, FilterTimes } from './http/filter.ts';
import type { MatchTools } from './matching/match-tree.ts';
import type { WorkerContext } from './worker-context.ts';

export abstract class FilterFacilities {
  readonly clock: Clock;
  readonly runtime: RuntimeValues;
  protected readonly context: WorkerContext;
  /** Of what filters count, by name. */
  protected readonly cells: Readonly<Record<string, number>>;
  /** From the worker's own clock to that of the system. */
  readonly #clockOffsetMs: number;

  constructor(context: WorkerContext, cells: Readonly<Record<string, number>>) {
    this.context = context;
    this.clock = context.clock;
    this.runtime = context.runtime;
    this.cells = cells;
    this.#clockOffsetMs = systemMonotonicMs() - context.clock.monotonicMs();
  }

  counter(name: string): FilterCounter {
    const { stats } = this.context;
    const index = stats.base(this.cellOf(name));
    return {
      add(n) {
        stats.values[index]! += n;
      },
    };
  }

  gauge(name: string): FilterGauge {
    const { stats } = this.context;
    const cell = this.cellOf(name);
    const { add } = this.counter(name);
    return {
      add,
      get total() {
        return stats.total(cell);
      },
      set(value) {
        add(value - stats.total(cell));
      },
    };
  }

  time(name: string): FilterTimes {
    const { stats } = this.context;
    const index = stats.base(this.cellOf(name));
    return { record: (ms) => stats.record(index, ms) };
  }

  namedCounter(name: string): FilterCounter {
    return this.context.stats.dynamicCounter(this.statScope, name);
  }

  namedTime(name: string): FilterTimes {
    return this.context.stats.dynamicTime(this.statScope, name);
  }

  random(): number {
    return this.context.random.u32();
  }

  share(setting: RuntimeSetting<Fraction>): () => boolean {
    const { runtime, random } = this.context;
    const share = runtime.share(setting);
    return () => isWithin(share.value, random.u32());
  }

  sharedNowMs(): number {
    return this.clock.monotonicMs() + this.#clockOffsetMs;
  }

  /** For decision trees. */
  protected get matchTools(): MatchTools {
    return { runtime: this.runtime, kernel: this.context.lbKernel };
  }

  /** With its final dot. */
  protected abstract get statScope(): string;

  /** Also that of a count over all workers. */
  protected cellOf(name: string): number {
    const cell = this.cells[name];
    if (cell === undefined) throw unknownCounter(name);
    return cell;
  }
}

export function unknownCounter(name: string): WeirError {
  return new WeirError('WEIR_UNKNOWN_COUNTER', `no filter has said that it counts ${name}`);
}
