// Counters and gauges of their own that no listing has taken in yet, some at a time: a program that makes a
// million of them should not pay for a million things to sort later.

import type { Additions } from './sorted-list.ts';
import { CellStat, type NumericStat, type StatLife, type StatSource } from './stat.ts';

/** As many as a listing sorts at once. */
const BATCH_LENGTH = 256;

interface Single {
  readonly kind: NumericStat['kind'];
  readonly name: string;
  readonly cell: number;
}

export class SingleBatch implements Additions<NumericStat> {
  readonly #source: StatSource;
  readonly #life: StatLife;
  readonly #singles: Single[] = [];
  #isTaken = false;

  constructor(source: StatSource, life: StatLife) {
    this.#source = source;
    this.#life = life;
  }

  get isLive(): boolean {
    return this.#life.isLive;
  }

  /** Whether there is room, and a listing is still to come. */
  get isOpen(): boolean {
    return !this.#isTaken && this.#singles.length < BATCH_LENGTH;
  }

  /** `name` is the full name. */
  add(kind: NumericStat['kind'], name: string, cell: number): void {
    this.#singles.push({ kind, name, cell });
  }

  make(): NumericStat[] {
    this.#isTaken = true;
    return this.#singles.map(({ kind, name, cell }) => new CellStat(kind, name, cell, this.#source, this.#life));
  }
}
