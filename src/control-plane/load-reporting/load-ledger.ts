// Whose load is to be told, and what has come together of it since it was told last: by the names of clusters, whatever takes the
// place of what under a name. Nothing is lost between two reports and nothing told twice: what was taken for a report that could
// not be sent is given back. Main thread.
//
//   want(names) ──► counts from now on ──take──► reported
//                          ▲                        │ could not be sent
//                          └──────── giveBack ◄─────┘

import type { Clock } from '../../base/clock.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { CounterLatch, StatsStore } from '../../stats/index.ts';
import { ClusterLoad, type LoadedHost, type LoadListener } from './cluster-load.ts';
import { LoadSum } from './load-sum.ts';

/** What a report says of one cluster. */
export interface TakenLoad {
  readonly cluster: string;
  /** What discovery calls it, where that is not its name; else empty. */
  readonly serviceName: string;
  readonly sum: LoadSum;
  /** By the clock. */
  readonly sinceMs: number;
  readonly untilMs: number;
}

export class LoadLedger {
  readonly #stats: StatsStore;
  readonly #clock: Clock;
  readonly #latch: CounterLatch;
  /** Of clusters that there are, and of those that have gone and are still to be told of. */
  readonly #entries = new Map<string, LedgerEntry>();
  #wanted: ReadonlySet<string> | 'all' = new Set();
  #isByHost = false;

  constructor(stats: StatsStore, clock: Clock) {
    this.#stats = stats;
    this.#clock = clock;
    this.#latch = stats.newLatch();
  }

  /** Of hosts, too. */
  get isByHost(): boolean {
    return this.#isByHost;
  }

  /** A cluster has been made. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  open(name: string, serviceName: string, members: () => readonly LoadedHost[]): ClusterLoad {
    const entry = this.#entries.get(name) ?? this.#entry(name);
    const load = new ClusterLoad(this.#stats, this.#latch, members, entry);
    this.#entries.set(name, entry);
    entry.add(load, serviceName);
    return load;
  }

  /** Those who were wanted before go on counting; the others begin now, or when they come. */
  async want(names: ReadonlySet<string> | 'all', isByHost: boolean): Promise<void> {
    this.#wanted = names;
    this.#isByHost = isByHost;
    const slice = new TimeSlice();
    for (const entry of [...this.#entries.values()]) {
      await entry.tell(this.#wants(entry.name), this.#clock, slice);
      this.#drop(entry);
      if (slice.isOver()) await slice.rest();
    }
  }

  /** Those to be told of. */
  names(): string[] {
    return [...this.#entries.values()].filter(({ isTold }) => isTold).map(({ name }) => name);
  }

  /** @returns undefined where nobody wants to know any more. */
  async take(name: string, slice: TimeSlice): Promise<TakenLoad | undefined> {
    const entry = this.#entries.get(name);
    if (entry?.isTold !== true) return undefined;
    const taken = await entry.take(this.#clock.monotonicMs(), slice);
    this.#drop(entry);
    return taken;
  }

  /** It has not been told. */
  giveBack({ cluster, serviceName, sum, sinceMs }: TakenLoad): void {
    if (!this.#wants(cluster)) return;
    const entry = this.#entries.get(cluster) ?? this.#entry(cluster, serviceName);
    this.#entries.set(cluster, entry);
    entry.giveBack(sum, sinceMs);
    this.#drop(entry);
  }

  #wants(name: string): boolean {
    return this.#wanted === 'all' || this.#wanted.has(name);
  }

  #entry(name: string, serviceName = ''): LedgerEntry {
    const isByHost = (): boolean => this.#isByHost;
    const onClosed = (entry: LedgerEntry): void => this.#drop(entry);
    return new LedgerEntry(name, serviceName, this.#wants(name), this.#clock.monotonicMs(), { isByHost, onClosed });
  }

  /** If there is nothing more to be told. */
  #drop(entry: LedgerEntry): void {
    if (entry.isOver && this.#entries.get(entry.name) === entry) this.#entries.delete(entry.name);
  }
}

interface EntryOwner {
  isByHost(): boolean;
  onClosed(entry: LedgerEntry): void;
}

class LedgerEntry implements LoadListener {
  readonly name: string;
  /** Of the last that had the name. */
  #serviceName: string;
  #isTold: boolean;
  /** When it was told last. */
  #sinceMs: number;
  #pending = new LoadSum();
  /** Those that have the name: one that serves, others that drain or warm. */
  readonly #loads = new Set<ClusterLoad>();
  readonly #owner: EntryOwner;

  constructor(name: string, serviceName: string, isTold: boolean, sinceMs: number, owner: EntryOwner) {
    this.name = name;
    this.#serviceName = serviceName;
    this.#isTold = isTold;
    this.#sinceMs = sinceMs;
    this.#owner = owner;
  }

  get isTold(): boolean {
    return this.#isTold;
  }

  get isByHost(): boolean {
    return this.#owner.isByHost();
  }

  get pending(): LoadSum {
    return this.#pending;
  }

  /** No cluster has the name, and nothing is to be told of those that had. */
  get isOver(): boolean {
    return this.#loads.size === 0 && this.#pending.isEmpty;
  }

  add(load: ClusterLoad, serviceName: string): void {
    this.#loads.add(load);
    this.#serviceName = serviceName;
  }

  closed(load: ClusterLoad): void {
    this.#loads.delete(load);
    this.#owner.onClosed(this);
  }

  async tell(isTold: boolean, clock: Clock, slice: TimeSlice): Promise<void> {
    if (isTold === this.#isTold) return;
    this.#isTold = isTold;
    // Of what was before nobody is told.
    if (isTold) await this.take(clock.monotonicMs(), slice);
    else this.#pending = new LoadSum();
  }

  async take(nowMs: number, slice: TimeSlice): Promise<TakenLoad> {
    const sum = this.#pending;
    const sinceMs = this.#sinceMs;
    this.#pending = new LoadSum();
    this.#sinceMs = nowMs;
    for (const load of [...this.#loads]) await load.takeInto(sum, slice);
    return { cluster: this.name, serviceName: this.#serviceName, sum, sinceMs, untilMs: nowMs };
  }

  giveBack(sum: LoadSum, sinceMs: number): void {
    this.#pending.addIncrements(sum);
    this.#sinceMs = Math.min(this.#sinceMs, sinceMs);
  }
}
