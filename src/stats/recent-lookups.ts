// Which stats are looked up by their names as text, where a cell that was worked out beforehand would be quicker: for whoever looks
// for such places. Looking up is always counted; the names are only collected when that is asked for. Main thread.

/** The names that were looked up last. */
const MOST_NAMES = 100;

export class RecentLookups {
  #total = 0;
  /** How often each was looked up, the one of the last lookup at the end; undefined when nothing is collected. */
  #names: Map<string, number> | undefined;

  /** Since the start, or since it was last cleared. */
  get total(): number {
    return this.#total;
  }

  get isCollecting(): boolean {
    return this.#names !== undefined;
  }

  /** In the order of their counts, then of their names. */
  get names(): readonly (readonly [name: string, count: number])[] {
    return [...(this.#names ?? [])].sort(([a, countOfA], [b, countOfB]) => countOfA - countOfB || (a < b ? -1 : 1));
  }

  record(name: string): void {
    this.#total += 1;
    const names = this.#names;
    if (names === undefined) return;
    const count = names.get(name) ?? 0;
    names.delete(name);
    names.set(name, count + 1);
    if (names.size > MOST_NAMES) names.delete(names.keys().next().value!);
  }

  /** Begins or ends collecting; what was collected is forgotten when it ends, but not how much there was. */
  collect(isCollecting: boolean): void {
    this.#names = isCollecting ? (this.#names ?? new Map()) : undefined;
  }

  clear(): void {
    this.#total = 0;
    this.#names?.clear();
  }
}
