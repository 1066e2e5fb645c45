// Stats as the main thread shows them: live views that read the cells of all slabs when asked. Made by each listing for as long
// as it lasts: a million stats are not a million objects.

import type { HistogramMerger } from '../wasm/histogram-merger.ts';
import type { Derivation, DerivedRow } from './derived-table.ts';
import type { Tag, TaggedName } from './tags/tag-producer.ts';

export interface NamedStat {
  /** Full name with all tag values in it. */
  readonly name: string;
  readonly tags: readonly Tag[];
  /** Name without the values of its tags: what Prometheus groups by. */
  readonly extractedName: string;
  /** False once its owner is gone. */
  readonly isLive: boolean;
}

export interface NumericStat extends NamedStat {
  readonly kind: 'counter' | 'gauge';
  /** Total over all threads at this moment; a whole number up to 2^53. */
  readonly value: number;
  /** Written at least once since it was made, be it with 0. */
  readonly isUsed: boolean;
  /** What a counter has counted since this was last called, resets aside; 0 of a gauge. For flushes to sinks alone. */
  takeIncrement(): number;
  /** What takeIncrement would return. */
  readonly increment: number;
}

export interface TextReadoutStat extends NamedStat {
  readonly value: string;
  readonly isUsed: boolean;
}

/** What a stat needs of its store. */
export interface StatSource {
  /** Total of a cell over all slabs less its baseline; -0 when no slab has touched it. */
  total(cell: number): number;
  /** What a counter has counted since the last call for its cell. */
  takeIncrement(cell: number): number;
  /** The same, without taking it. */
  increment(cell: number): number;
  tagged(name: string): TaggedName;
  /** Upper bounds of a histogram's buckets, ascending. */
  bucketBounds(name: string): readonly number[];
  readonly histograms: HistogramMerger;
}

/** Lives as long as the block or single cell of a stat does. */
export interface StatLife {
  readonly isLive: boolean;
}

export abstract class Named {
  readonly name: string;
  protected readonly source: StatSource;
  readonly #life: StatLife;
  #tagged: TaggedName | undefined;

  constructor(name: string, source: StatSource, life: StatLife) {
    this.name = name;
    this.source = source;
    this.#life = life;
  }

  get isLive(): boolean {
    return this.#life.isLive;
  }

  get tags(): readonly Tag[] {
    return this.#names.tags;
  }

  get extractedName(): string {
    return this.#names.extractedName;
  }

  get #names(): TaggedName {
    this.#tagged ??= this.source.tagged(this.name);
    return this.#tagged;
  }
}

/** A counter or gauge with a cell in every slab. */
export class CellStat extends Named implements NumericStat {
  readonly kind: 'counter' | 'gauge';
  readonly cell: number;

  constructor(kind: 'counter' | 'gauge', name: string, cell: number, source: StatSource, life: StatLife) {
    super(name, source, life);
    this.kind = kind;
    this.cell = cell;
  }

  get value(): number {
    return shownValue(this.source.total(this.cell));
  }

  get isUsed(): boolean {
    return !Object.is(this.source.total(this.cell), -0);
  }

  takeIncrement(): number {
    return this.kind === 'counter' ? this.source.takeIncrement(this.cell) : 0;
  }

  get increment(): number {
    return this.kind === 'counter' ? this.source.increment(this.cell) : 0;
  }
}

/** A gauge that is worked out when read, because no single thread could keep it. */
export class DerivedGauge extends Named implements NumericStat {
  readonly kind = 'gauge';
  readonly #row: DerivedRow<unknown>;
  readonly #derivation: Derivation;

  constructor(name: string, row: DerivedRow<unknown>, derivation: Derivation, source: StatSource, life: StatLife) {
    super(name, source, life);
    this.#row = row;
    this.#derivation = derivation;
  }

  get value(): number {
    const value = shownValue(this.#row.read(this.#derivation.source));
    if (value !== 0) this.#derivation.seen |= 1 << this.#row.index;
    return value;
  }

  get isUsed(): boolean {
    return this.value !== 0 || (this.#derivation.seen & (1 << this.#row.index)) !== 0;
  }

  takeIncrement(): number {
    return 0;
  }

  get increment(): number {
    return 0;
  }
}

/** Several stats of one name, as overlapping scopes can make them: shown as one. */
export class CombinedStat implements NumericStat {
  readonly #parts: readonly NumericStat[];

  constructor(first: NumericStat, second: NumericStat) {
    this.#parts = [first, second];
  }

  get kind(): 'counter' | 'gauge' {
    return this.#parts[0]!.kind;
  }

  get name(): string {
    return this.#parts[0]!.name;
  }

  get tags(): readonly Tag[] {
    return this.#parts[0]!.tags;
  }

  get extractedName(): string {
    return this.#parts[0]!.extractedName;
  }

  get value(): number {
    return this.#parts.reduce((sum, part) => sum + (part.isLive ? part.value : 0), 0);
  }

  get isUsed(): boolean {
    return this.#parts.some((part) => part.isLive && part.isUsed);
  }

  takeIncrement(): number {
    return this.#parts.reduce((sum, part) => sum + (part.isLive ? part.takeIncrement() : 0), 0);
  }

  get increment(): number {
    return this.#parts.reduce((sum, part) => sum + (part.isLive ? part.increment : 0), 0);
  }

  get isLive(): boolean {
    return this.#parts.some((part) => part.isLive);
  }
}

/** A short text, such as a version. Main only. */
export class TextReadout extends Named implements TextReadoutStat {
  #value = '';
  #isUsed = false;

  get value(): string {
    return this.#value;
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  set(value: string): void {
    this.#value = value;
    this.#isUsed = true;
  }
}

/** -0 becomes 0; a gauge that two threads hold halves of may be seen below 0 for a moment. */
function shownValue(total: number): number {
  return Math.max(total, 0);
}
