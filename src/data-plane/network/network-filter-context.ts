// What the network filters of a chain are made with, over the parts of the worker that they may know.

import { type Clock, systemMonotonicMs } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import { isWithin, type RuntimeSetting, type RuntimeValues } from '../../base/runtime.ts';
import type { Fraction, NetworkFilterSnapshot } from '../../snapshot/index.ts';
import type { FilterCounter, FilterGauge, FilterTimes } from '../http/filter.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { NetworkFilterContext, SharedCount } from './network-filter.ts';

export class ChainFilterContext implements NetworkFilterContext {
  readonly clock: Clock;
  readonly runtime: RuntimeValues;
  readonly #context: WorkerContext;
  readonly #snapshot: NetworkFilterSnapshot;
  /** From the worker's own clock to that of the system. */
  readonly #clockOffsetMs: number;

  constructor(context: WorkerContext, snapshot: NetworkFilterSnapshot) {
    this.#context = context;
    this.#snapshot = snapshot;
    this.clock = context.clock;
    this.runtime = context.runtime;
    this.#clockOffsetMs = systemMonotonicMs() - context.clock.monotonicMs();
    const { statScope } = snapshot.settings;
    if (statScope !== undefined) context.stats.openScope(statScope);
  }

  /** The chain goes. Once. */
  close(): void {
    const { statScope } = this.#snapshot.settings;
    if (statScope !== undefined) this.#context.stats.closeScope(statScope);
  }

  counter(name: string): FilterCounter {
    const { stats } = this.#context;
    const index = stats.base(this.#cellOf(name));
    return {
      add(n) {
        stats.values[index]! += n;
      },
    };
  }

  gauge(name: string): FilterGauge {
    const { stats } = this.#context;
    const cell = this.#cellOf(name);
    return {
      ...this.counter(name),
      get total() {
        return stats.total(cell);
      },
    };
  }

  namedCounter(name: string): FilterCounter {
    return this.#context.stats.dynamicCounter(this.#scope, name);
  }

  namedTimes(name: string): FilterTimes {
    return this.#context.stats.dynamicTime(this.#scope, name);
  }

  get sharedCount(): SharedCount {
    const { countRecord } = this.#snapshot;
    if (countRecord === 0) throw unknownCounter('anything over all workers');
    const { records } = this.#context;
    return {
      tryAdd: (limit) => records.tryAcquireCount(countRecord, limit),
      remove: () => records.addCount(countRecord, -1),
    };
  }

  random(): number {
    return this.#context.random.u32();
  }

  share(setting: RuntimeSetting<Fraction>): () => boolean {
    const { runtime, random } = this.#context;
    const share = runtime.share(setting);
    return () => isWithin(share.value, random.u32());
  }

  sharedNowMs(): number {
    return this.clock.monotonicMs() + this.#clockOffsetMs;
  }

  get #scope(): string {
    const { statScope } = this.#snapshot.settings;
    if (statScope === undefined) throw unknownCounter('anything');
    return statScope;
  }

  #cellOf(name: string): number {
    const cell = this.#snapshot.cells[name];
    if (cell === undefined) throw unknownCounter(name);
    return cell;
  }
}

function unknownCounter(name: string): WeirError {
  return new WeirError('WEIR_UNKNOWN_COUNTER', `the filter has not said that it counts ${name}`);
}
