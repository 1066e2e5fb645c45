// A worker's side of the statistics. Counting is a write into this worker's slab of the shared memory, at an
// index that was worked out once per snapshot:
//
//   const base = stats.base(snapshot.statBlock);
//   stats.values[base + CLUSTER_STATS.index.upstream_rq_total]! += 1;
//
// A stat whose name is met first at run time (a response code) is asked of main by name, once; until its
// cell comes it is counted here, and nothing is lost.

import { type Clock, SYSTEM_CLOCK } from '../base/clock.ts';
import { HistogramRecorder, isRecordable } from '../wasm/histogram-recorder.ts';
import { compileModule } from '../wasm/instantiate.ts';
import type { SharedMemory } from '../wasm/shared-memory.ts';
import { DynamicCounter } from './dynamic-counter.ts';
import { DynamicHistogram } from './dynamic-histogram.ts';

/** Name of a stat met at run time; `scope` ends with a dot. */
export interface DynamicStatName {
  readonly scope: string;
  readonly name: string;
  /** A histogram of milliseconds; otherwise a counter. */
  readonly isTime?: boolean;
}

export interface WorkerStatsOptions {
  /** Attached with the worker's index. */
  readonly memory: SharedMemory;
  /** Posts `{ type: 'dynamic-stat', key }` to main. */
  readonly requestCell: (key: DynamicStatName) => void;
  /** The compiled stats module; without it the worker compiles its own, which costs it a millisecond. */
  readonly module?: WebAssembly.Module;
  readonly clock?: Clock;
}

/** f64 index of a histogram's cell and the value to record there. */
type WaitingSample = readonly [index: number, value: number];

/** Samples kept while main is slow to offer memory; beyond that they are dropped and counted. */
const MAX_WAITING_SAMPLES = 65_536;
/** Between two questions for memory, when the first was answered and there still was none. */
const ASK_AGAIN_MS = 1000;
/** Scope of the stats about stats. */
const OWN_SCOPE = 'stats.';
/** Asking for this counter again and again is how a worker asks main for histogram memory. */
const MEMORY_WAITS = 'histogram_memory_waits';

export class WorkerStats {
  readonly #memory: SharedMemory;
  readonly #requestCell: (key: DynamicStatName) => void;
  readonly #recorder: HistogramRecorder;
  readonly #clock: Clock;
  #waiting: WaitingSample[] = [];
  /** By scope: how many have it open. */
  readonly #owners = new Map<string, number>();
  readonly #onWritten: (() => void)[] = [];
  /** By scope, then by name. */
  readonly #dynamic = new Map<string, Map<string, DynamicCounter | DynamicHistogram>>();

  constructor(options: WorkerStatsOptions) {
    this.#memory = options.memory;
    this.#requestCell = options.requestCell;
    this.#recorder = new HistogramRecorder(options.memory, options.module ?? compileModule('stats'));
    this.#clock = options.clock ?? SYSTEM_CLOCK;
  }

  /** The shared memory as cells. It is replaced when the memory has grown: read the property, do not keep it. */
  get values(): Float64Array<ArrayBufferLike> {
    return this.#memory.f64;
  }

  /**
   * Index in `values` of this worker's copy of a block's first cell. Stays right for the block's life.
   * Once per snapshot: it also makes `values` reach the block.
   */
  base(block: number): number {
    return this.#memory.cellIndex(block);
  }

  /** What all threads have added to a cell. */
  total(block: number): number {
    const memory = this.#memory;
    let total = 0;
    for (let slab = 0; slab < memory.slabCount; slab += 1) total += memory.f64[memory.cellIndex(block, slab)]!;
    return total;
  }

  /**
   * Records a value of 0 to 2^53, fractions cut off, in a histogram of a block:
   *
   *   stats.record(base + CLUSTER_STATS.index.upstream_rq_time, elapsedMs);
   *
   * Anything else is refused and counted in `stats.histogram_values_refused`.
   */
  record(index: number, value: number): void {
    if (!isRecordable(value)) this.dynamicCounter(OWN_SCOPE, 'histogram_values_refused').add();
    else if (!this.#recorder.record(index, value)) this.#keep(index, value);
  }

  /** Records each of the values; as record, at a fraction of the cost from some 16 values on. */
  recordMany(index: number, values: Float64Array | Uint32Array): void {
    const refusedBefore = this.#recorder.refusedCount;
    const seen = this.#recorder.recordMany(index, values);
    const refused = this.#recorder.refusedCount - refusedBefore;
    if (refused > 0) this.dynamicCounter(OWN_SCOPE, 'histogram_values_refused').add(refused);
    for (let at = seen; at < values.length; at++) this.record(index, values[at]!);
  }

  /** Samples that wait for main's next offer of memory. */
  get waitingSamples(): number {
    return this.#waiting.length;
  }

  /** A counter by name; the same object for the same name. Keep it where the name is known beforehand. */
  dynamicCounter(scope: string, name: string): DynamicCounter {
    const stats = this.#dynamic.get(scope) ?? this.#addScope(scope);
    const known = stats.get(name);
    if (known instanceof DynamicCounter) return known;
    const counter = new DynamicCounter(this);
    stats.set(name, counter);
    this.#requestCell({ scope, name });
    return counter;
  }

  /** A histogram of milliseconds by name; as dynamicCounter. */
  dynamicTime(scope: string, name: string): DynamicHistogram {
    const stats = this.#dynamic.get(scope) ?? this.#addScope(scope);
    const known = stats.get(name);
    if (known instanceof DynamicHistogram) return known;
    const histogram = new DynamicHistogram(this);
    stats.set(name, histogram);
    this.#requestCell({ scope, name, isTime: true });
    return histogram;
  }

  /** Main's answer to a question of the two before: what was counted meanwhile goes into the cell. */
  resolve(key: DynamicStatName, cell: number): void {
    this.#dynamic.get(key.scope)?.get(key.name)?.resolve(cell);
    if (key.name === MEMORY_WAITS && this.#waiting.length > 0) this.#recordWaiting();
  }

  /** Its owner lives here, one of several perhaps: two generations of a cluster share what is counted under their name. */
  openScope(scope: string): void {
    this.#owners.set(scope, (this.#owners.get(scope) ?? 0) + 1);
  }

  /** Once for each `openScope`. With the last owner goes all that it has named: the cells will serve other stats. */
  closeScope(scope: string): void {
    const owners = (this.#owners.get(scope) ?? 0) - 1;
    if (owners > 0) {
      this.#owners.set(scope, owners);
      return;
    }
    this.#owners.delete(scope);
    this.#dynamic.delete(scope);
  }

  /** Calls back, perhaps at once, when nothing that was recorded until now is still to be written. */
  whenWritten(then: () => void): void {
    if (this.#waiting.length === 0) then();
    else this.#onWritten.push(then);
  }

  /** Bins were needed and main's offer of memory is used up: main makes another when it is asked. */
  #keep(index: number, value: number): void {
    if (this.#waiting.length >= MAX_WAITING_SAMPLES) {
      this.dynamicCounter(OWN_SCOPE, 'histogram_values_dropped').add();
      return;
    }
    this.#waiting.push([index, value]);
    if (this.#waiting.length > 1) return;
    this.dynamicCounter(OWN_SCOPE, MEMORY_WAITS).add();
    this.#requestCell({ scope: OWN_SCOPE, name: MEMORY_WAITS });
  }

  #recordWaiting(): void {
    this.#waiting = this.#waiting.filter(([index, value]) => !this.#recorder.record(index, value));
    if (this.#waiting.length === 0) {
      for (const then of this.#onWritten.splice(0)) then();
      return;
    }
    this.#clock.after(ASK_AGAIN_MS, () => this.#requestCell({ scope: OWN_SCOPE, name: MEMORY_WAITS }));
  }

  #addScope(scope: string): Map<string, DynamicCounter | DynamicHistogram> {
    const stats = new Map<string, DynamicCounter | DynamicHistogram>();
    this.#dynamic.set(scope, stats);
    return stats;
  }
}
