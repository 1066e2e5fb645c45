// What all names begin with, or have in them, that are asked for: spares making the names of owners and rows that cannot have it.

import type { StatList } from './listing.ts';

/** A text that names must have in them. */
interface Part {
  readonly text: string;
  /** Cut after each of its dots: it may begin in an owner's prefix and end in the name of a row. */
  readonly cuts: readonly (readonly [head: string, tail: string])[];
}

/** Rows of a list; the same object for the same rows of the same shape. */
interface Rows {
  readonly places: readonly number[];
}

export class NameParts {
  readonly #prefix: string;
  readonly #parts: readonly Part[];
  /** By shape, then by what the rows have to have. */
  readonly #narrowed = new Map<object, Map<string, Rows>>();

  constructor(prefix = '', parts: readonly string[] = []) {
    this.#prefix = prefix;
    this.#parts = parts.map((text) => ({ text, cuts: cutsOf(text) }));
  }

  mayBeUnder(ownerPrefix: string): boolean {
    return ownerPrefix.startsWith(this.#prefix) || this.#prefix.startsWith(ownerPrefix);
  }

  /** The stats of the list that may have all parts in their names. */
  narrow<Stat>(ownerPrefix: string, list: StatList<Stat>): StatList<Stat> {
    const key = this.#keyOf(ownerPrefix);
    if (key === '') return list;
    const { shape } = list;
    if (shape === undefined) return chosen(list, placesOf(list, this.#needs(ownerPrefix)), undefined);
    const byKey = this.#narrowed.get(shape) ?? new Map<string, Rows>();
    this.#narrowed.set(shape, byKey);
    const rows = byKey.get(key) ?? placesOf(list, this.#needs(ownerPrefix));
    byKey.set(key, rows);
    return chosen(list, rows, rows);
  }

  /** The same for prefixes that leave the same to the rows; empty when nothing is left. Called for every owner. */
  #keyOf(ownerPrefix: string): string {
    let key = '';
    for (let at = 0; at < this.#parts.length; at++) {
      const { text, cuts } = this.#parts[at]!;
      if (ownerPrefix.includes(text)) continue;
      key += `,${at}`;
      for (let cut = 0; cut < cuts.length; cut++) if (ownerPrefix.endsWith(cuts[cut]![0])) key += `.${cut}`;
    }
    return key;
  }

  #needs(ownerPrefix: string): readonly Need[] {
    return this.#parts
      .filter(({ text }) => !ownerPrefix.includes(text))
      .map(({ text, cuts }) => ({
        text,
        tails: cuts.filter(([head]) => ownerPrefix.endsWith(head)).map(([, tail]) => tail),
      }));
  }
}

interface Need {
  readonly text: string;
  /** One of them at the beginning will do as well. */
  readonly tails: readonly string[];
}

function placesOf(list: StatList<unknown>, needs: readonly Need[]): Rows {
  const places: number[] = [];
  for (let at = 0; at < list.length; at++) {
    const name = list.nameAt(at);
    const has = ({ text, tails }: Need): boolean => name.includes(text) || tails.some((tail) => name.startsWith(tail));
    if (needs.every(has)) places.push(at);
  }
  return { places };
}

function chosen<Stat>(list: StatList<Stat>, { places }: Rows, shape: object | undefined): StatList<Stat> {
  return {
    shape,
    length: places.length,
    kindAt: (at) => list.kindAt(places[at]!),
    nameAt: (at) => list.nameAt(places[at]!),
    make: (at, name) => list.make(places[at]!, name),
  };
}

function cutsOf(text: string): Part['cuts'] {
  const cuts: (readonly [string, string])[] = [];
  for (let dot = text.indexOf('.'); dot !== -1; dot = text.indexOf('.', dot + 1)) {
    cuts.push([text.slice(0, dot + 1), text.slice(dot + 1)]);
  }
  return cuts;
}
