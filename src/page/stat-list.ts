// The names and values of all stats, as the server has told them last. Tens of thousands of them: looked through at every key.

import type { Stats } from './data.ts';

/** Values kept of rows that are shown. */
const KEPT_VALUES = 150;

export interface StatRow {
  readonly name: string;
  /** A letter of Stats.kinds. */
  readonly kind: string;
  readonly value: number | string;
  /** A second; null before the second answer. */
  readonly change: number | null;
  /** Of rows that are shown, while they are: changes of counters, values of gauges. */
  readonly values: readonly (number | null)[];
  readonly seconds: number;
}

interface Followed {
  readonly sinceSeconds: number;
  readonly values: (number | null)[];
}

export class StatList {
  hash = '';
  #names: readonly string[] = [];
  #lowerCase: readonly string[] = [];
  #kinds = '';
  #values: readonly (number | string)[] = [];
  #changes: Float64Array = new Float64Array(0);
  #places = new Map<string, number>();
  #atSeconds = 0;
  readonly #followed = new Map<string, Followed>();

  get size(): number {
    return this.#names.length;
  }

  take({ hash, names, kinds, values }: Stats, atSeconds: number): void {
    const seconds = Math.max(0.001, atSeconds - this.#atSeconds);
    const isSame = hash === this.hash;
    const former = this.#values;
    const formerPlaces = this.#places;
    if (!isSame && names !== undefined && kinds !== undefined) this.#takeNames(hash, names, kinds);
    this.#changes = new Float64Array(values.length);
    for (let at = 0; at < values.length; at++) {
      const before = isSame ? former[at] : former[formerPlaces.get(this.#names[at]!) ?? -1];
      const value = values[at]!;
      const isKnown = typeof before === 'number' && typeof value === 'number';
      const change = isKnown ? (value - before) / seconds : Number.NaN;
      // A counter that has shrunk was reset.
      this.#changes[at] = change < 0 && this.#kinds[at] !== 'g' ? Number.NaN : change;
    }
    this.#values = values;
    this.#atSeconds = atSeconds;
    for (const [name, { values: kept }] of this.#followed) {
      const row = this.row(name);
      if (row === undefined) continue;
      kept.push(row.kind === 'c' ? row.change : Number(row.value));
      if (kept.length > KEPT_VALUES) kept.shift();
    }
  }

  /**
   * Those whose names hold all words, in any case, or match the expression between two slashes; by name, as the server has them.
   * Their places alone: a row is made of those that are shown.
   * @param kind a letter, or empty for all.
   */
  matching(text: string, kind: string): { readonly places: number[]; readonly isWrong: boolean } {
    const places: number[] = [];
    const test = tester(text.trim());
    if (test === undefined) return { places, isWrong: true };
    for (let at = 0; at < this.#names.length; at++) {
      if (kind !== '' && this.#kinds[at] !== kind) continue;
      if (test(this.#names[at]!, this.#lowerCase[at]!)) places.push(at);
    }
    return { places, isWrong: false };
  }

  /** What a place is sorted by. */
  keyAt(at: number, key: 'kind' | 'value' | 'change'): number | string | null {
    if (key === 'kind') return this.#kinds[at]!;
    if (key === 'value') return this.#values[at] ?? 0;
    const change = this.#changes[at]!;
    return Number.isNaN(change) ? null : change;
  }

  row(name: string | undefined): StatRow | undefined {
    const at = name === undefined ? undefined : this.#places.get(name);
    return at === undefined ? undefined : this.rowAt(at);
  }

  /** Keeps values of these from now on. */
  follow(rows: readonly StatRow[]): void {
    const names = new Set(rows.map(({ name }) => name));
    for (const name of this.#followed.keys()) if (!names.has(name)) this.#followed.delete(name);
    for (const name of names) {
      if (!this.#followed.has(name)) this.#followed.set(name, { sinceSeconds: this.#atSeconds, values: [] });
    }
  }

  #takeNames(hash: string, names: readonly string[], kinds: string): void {
    this.hash = hash;
    this.#names = names;
    this.#lowerCase = names.map((name) => name.toLowerCase());
    this.#kinds = kinds;
    this.#places = new Map(names.map((name, at) => [name, at]));
  }

  rowAt(at: number): StatRow {
    const name = this.#names[at]!;
    const change = this.#changes[at]!;
    const followed = this.#followed.get(name);
    return {
      name,
      kind: this.#kinds[at]!,
      value: this.#values[at] ?? 0,
      change: Number.isNaN(change) ? null : change,
      values: followed?.values ?? [],
      seconds: followed === undefined ? 0 : this.#atSeconds - followed.sinceSeconds,
    };
  }
}

type Test = (name: string, lowerCase: string) => boolean;

/** Undefined for an expression that is none. */
function tester(text: string): Test | undefined {
  if (text.length > 1 && text.startsWith('/')) {
    try {
      const regex = new RegExp(text.slice(1).replace(/\/$/, ''));
      return (name) => regex.test(name);
    } catch {
      return undefined;
    }
  }
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (_name, lowerCase) => words.every((word) => lowerCase.includes(word));
}
