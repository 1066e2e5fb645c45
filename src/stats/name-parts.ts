// What all names begin with, or have in them, that are asked for: spares making the names of owners and rows that cannot have it.

import type { StatList } from './listing.ts';

export class NameParts {
  readonly #prefix: string;
  readonly #part: string;
  /** The part cut after each of its dots: it may begin in an owner's prefix and end in the name of a row. */
  readonly #cuts: readonly (readonly [head: string, tail: string])[];
  /** By shape: the rows that have the part in them. */
  readonly #narrowed = new Map<object, { readonly places: readonly number[] }>();

  constructor(prefix = '', part = '') {
    this.#prefix = prefix;
    this.#part = part;
    this.#cuts = [...part].flatMap((character, at) =>
      character === '.' && at + 1 < part.length ? [[part.slice(0, at + 1), part.slice(at + 1)] as const] : [],
    );
  }

  mayBeUnder(ownerPrefix: string): boolean {
    return ownerPrefix.startsWith(this.#prefix) || this.#prefix.startsWith(ownerPrefix);
  }

  /** The stats of the list that may have the part in their names. */
  narrow<Stat>(ownerPrefix: string, list: StatList<Stat>): StatList<Stat> {
    if (this.#part === '' || ownerPrefix.includes(this.#part)) return list;
    const tails = this.#cuts.filter(([head]) => ownerPrefix.endsWith(head)).map(([, tail]) => tail);
    const { shape } = list;
    if (shape === undefined || tails.length > 0) return chosen(list, { places: this.#places(list, tails) });
    const known = this.#narrowed.get(shape) ?? { places: this.#places(list, tails) };
    this.#narrowed.set(shape, known);
    return chosen(list, known, known);
  }

  #places(list: StatList<unknown>, tails: readonly string[]): readonly number[] {
    const places: number[] = [];
    for (let at = 0; at < list.length; at++) {
      const name = list.nameAt(at);
      if (name.includes(this.#part) || tails.some((tail) => name.startsWith(tail))) places.push(at);
    }
    return places;
  }
}

function chosen<Stat>(
  list: StatList<Stat>,
  { places }: { readonly places: readonly number[] },
  shape?: object,
): StatList<Stat> {
  return {
    shape,
    length: places.length,
    kindAt: (at) => list.kindAt(places[at]!),
    nameAt: (at) => list.nameAt(places[at]!),
    make: (at, name) => list.make(places[at]!, name),
  };
}
