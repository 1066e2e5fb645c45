// The owners of stats in the order of their prefixes, kept from one listing to the next. New ones are sorted by themselves and
// merged in; both happen in slices, since a hundred thousand names take longer than main may stop.

import { TimeSlice } from '../base/time-slice.ts';
import { byName } from './stat-table.ts';

interface Listed {
  readonly name: string;
  readonly isLive: boolean;
}

/** Sorted at once; short, since the first sort of a process runs unoptimised and its garbage is collected on top. */
const RUN_LENGTH = 256;
/** Items that died unseen are thrown out when this many wait, then whenever their number has doubled. */
const FIRST_SWEEP_AT = 1024;

export class SortedList<Item extends Listed> {
  #sorted: readonly Item[] = [];
  #pending: Item[] = [];
  #sweepAt = FIRST_SWEEP_AT;
  #refresh: Promise<readonly Item[]> | undefined;

  /** An item to take in when the list is next asked for. */
  add(item: Item): void {
    this.#pending.push(item);
    if (this.#pending.length < this.#sweepAt) return;
    this.#pending = this.#pending.filter((waiting) => waiting.isLive);
    this.#sweepAt = Math.max(FIRST_SWEEP_AT, 2 * this.#pending.length);
  }

  /** All items in the order of their names; some may have died since. Concurrent callers share the work. */
  async items(): Promise<readonly Item[]> {
    while (this.#pending.length > 0 || this.#refresh) {
      this.#refresh ??= this.#takeIn().finally(() => {
        this.#refresh = undefined;
      });
      await this.#refresh;
    }
    return this.#sorted;
  }

  async #takeIn(): Promise<readonly Item[]> {
    const slice = new TimeSlice();
    const added = this.#pending;
    this.#pending = [];
    const runs = await this.#makeRuns(added, slice);
    while (runs.length > 1) {
      const merged: Item[][] = [];
      for (let at = 0; at < runs.length; at += 2) merged.push(await this.#merge(runs[at]!, runs[at + 1] ?? [], slice));
      runs.splice(0, runs.length, ...merged);
    }
    this.#sorted = await this.#merge(this.#sorted, runs[0] ?? [], slice);
    return this.#sorted;
  }

  async #makeRuns(added: readonly Item[], slice: TimeSlice): Promise<Item[][]> {
    const runs: Item[][] = [];
    for (let at = 0; at < added.length; at += RUN_LENGTH) {
      const run = added.slice(at, at + RUN_LENGTH).filter(({ isLive }) => isLive);
      runs.push(run.sort(byName));
      if (slice.isOverNow()) await slice.rest();
    }
    return runs;
  }

  /** Leaves out what has died, so that the list does not keep owners that were removed. */
  async #merge(left: readonly Item[], right: readonly Item[], slice: TimeSlice): Promise<Item[]> {
    const merged: Item[] = [];
    let l = 0;
    let r = 0;
    while (l < left.length || r < right.length) {
      const takeLeft = r >= right.length || (l < left.length && byName(left[l]!, right[r]!) <= 0);
      const item = takeLeft ? left[l++]! : right[r++]!;
      if (item.isLive) merged.push(item);
      if (slice.isOver()) await slice.rest();
    }
    return merged;
  }
}
