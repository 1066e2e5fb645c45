// Stats in the order of their names, kept from one listing to the next. New stats are sorted by themselves
// and merged in; both happen in slices, since a hundred thousand names take longer than main may stop.

import { TimeSlice } from './time-slice.ts';

interface Listed {
  readonly name: string;
  readonly isLive: boolean;
}

/** Items that a list has not taken in yet; made only when someone asks for the list. */
export interface Additions<Item> {
  readonly isLive: boolean;
  make(): Item[];
}

/** Sorted at once; short, since the first sort of a process runs unoptimised and its garbage is collected on top. */
const RUN_LENGTH = 256;
/** Additions that died unseen are thrown out when this many wait, then whenever their number has doubled. */
const FIRST_SWEEP_AT = 1024;

export class SortedList<Item extends Listed> {
  /** Makes one of two items that have the same name, or undefined to keep both. */
  readonly #combine: (first: Item, second: Item) => Item | undefined;
  #sorted: readonly Item[] = [];
  #pending: Additions<Item>[] = [];
  #sweepAt = FIRST_SWEEP_AT;
  #refresh: Promise<readonly Item[]> | undefined;

  constructor(combine: (first: Item, second: Item) => Item | undefined) {
    this.#combine = combine;
  }

  /** Items to take in when the list is next asked for. */
  add(additions: Additions<Item>): void {
    this.#pending.push(additions);
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

  async #makeRuns(added: readonly Additions<Item>[], slice: TimeSlice): Promise<Item[][]> {
    const runs: Item[][] = [];
    let run: Item[] = [];
    for (const [at, additions] of added.entries()) {
      if (additions.isLive) run.push(...additions.make());
      if (run.length < RUN_LENGTH && at < added.length - 1) continue;
      runs.push(run.sort(byName));
      run = [];
      if (slice.isOverNow()) await slice.rest();
    }
    return runs;
  }

  /** Leaves out what has died, so that the list does not keep the stats of removed owners. */
  async #merge(left: readonly Item[], right: readonly Item[], slice: TimeSlice): Promise<Item[]> {
    const merged: Item[] = [];
    let l = 0;
    let r = 0;
    while (l < left.length || r < right.length) {
      const takeLeft = r >= right.length || (l < left.length && byName(left[l]!, right[r]!) <= 0);
      this.#append(merged, takeLeft ? left[l++]! : right[r++]!);
      if (slice.isOver()) await slice.rest();
    }
    return merged;
  }

  #append(list: Item[], item: Item): void {
    if (!item.isLive) return;
    const last = list.at(-1);
    const combined = last?.name === item.name ? this.#combine(last, item) : undefined;
    if (combined) list[list.length - 1] = combined;
    else list.push(item);
  }
}

/** UTF-16 order, which is byte order for all that stat names hold in practice. */
function byName(a: Listed, b: Listed): number {
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}
