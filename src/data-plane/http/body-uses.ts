// What the filters of a chain do with the bodies of one direction. Which of them have a use for those of a certain request is
// known when they are made: one that has no use for them sees none, and changes none.

import type { BodyUse, HttpFilter } from './filter.ts';

/** As many filters as fit into the bits of a number; further ones see every body that their kind does. */
const MOST_READERS = 31;

export class BodyUses {
  /** In the order of the direction. */
  readonly #uses: readonly BodyUse[];
  readonly #isReversed: boolean;
  readonly #sees: (filter: HttpFilter, use: BodyUse) => boolean;
  /** Of the kinds that have any use for bodies: where they stand among the filters. */
  readonly #readers: readonly number[];
  /** By a bit for each reader that has no use for bodies. */
  readonly #without = new Map<number, readonly BodyUse[]>();

  /** @param uses in the order of requests. @param isReversed for responses, which pass the last filter first. */
  constructor(uses: readonly BodyUse[], isReversed: boolean, sees: (filter: HttpFilter, use: BodyUse) => boolean) {
    this.#uses = isReversed ? uses.toReversed() : uses;
    this.#isReversed = isReversed;
    this.#sees = sees;
    const readers = uses.flatMap((use, index) => (use === 'none' ? [] : [index]));
    this.#readers = readers.slice(0, MOST_READERS);
  }

  /** Any of the kinds may change bodies. */
  get edits(): boolean {
    return this.#uses.includes('edits');
  }

  /** @param filters of a request, in their order. @returns in the order of the direction; not to be changed. */
  wantedBy(filters: readonly HttpFilter[]): readonly BodyUse[] {
    const readers = this.#readers;
    let unused = 0;
    for (let at = 0; at < readers.length; at += 1) {
      const index = readers[at]!;
      if (!this.#sees(filters[index]!, this.#uses[this.#placeOf(index)]!)) unused |= 1 << at;
    }
    if (unused === 0) return this.#uses;
    let wanted = this.#without.get(unused);
    if (wanted === undefined) {
      wanted = this.#usesWithout(unused);
      this.#without.set(unused, wanted);
    }
    return wanted;
  }

  #usesWithout(unused: number): readonly BodyUse[] {
    const uses = [...this.#uses];
    for (const [at, index] of this.#readers.entries()) {
      if ((unused & (1 << at)) !== 0) uses[this.#placeOf(index)] = 'none';
    }
    return uses;
  }

  /** Of a filter, in the order of the direction. */
  #placeOf(index: number): number {
    return this.#isReversed ? this.#uses.length - 1 - index : index;
  }
}

/** One that edits bodies may add to them from the head on. */
export function seesRequestBodies(filter: HttpFilter, use: BodyUse): boolean {
  if (use === 'edits' && filter.decodeHeaders !== undefined) return true;
  return filter.decodeData !== undefined || filter.decodeTrailers !== undefined;
}

export function seesResponseBodies(filter: HttpFilter, use: BodyUse): boolean {
  if (use === 'edits' && filter.encodeHeaders !== undefined) return true;
  return filter.encodeData !== undefined || filter.encodeTrailers !== undefined;
}
