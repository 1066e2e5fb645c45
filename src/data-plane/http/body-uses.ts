// What the filters of a chain do with the bodies of one direction. Which of them have a use for those of a certain request is
// known when they are made: one that would only read, and does not want to, sees none.

import type { BodyUse, HttpFilter } from './filter.ts';

/** As many filters as fit into the bits of a number; further ones see every body that their kind reads. */
const MOST_READERS = 31;

export class BodyUses {
  /** In the order of the direction. */
  readonly #uses: readonly BodyUse[];
  readonly #isReversed: boolean;
  readonly #sees: (filter: HttpFilter) => boolean;
  /** Of the kinds that only read: where they stand among the filters. */
  readonly #readers: readonly number[];
  /** By a bit for each reader that has no use for bodies. */
  readonly #without = new Map<number, readonly BodyUse[]>();

  /** @param uses in the order of requests. @param isReversed for responses, which pass the last filter first. */
  constructor(uses: readonly BodyUse[], isReversed: boolean, sees: (filter: HttpFilter) => boolean) {
    this.#uses = isReversed ? uses.toReversed() : uses;
    this.#isReversed = isReversed;
    this.#sees = sees;
    const readers = uses.flatMap((use, index) => (use === 'reads' ? [index] : []));
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
    for (let at = 0; at < readers.length; at += 1) if (!this.#sees(filters[readers[at]!]!)) unused |= 1 << at;
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
      if ((unused & (1 << at)) !== 0) uses[this.#isReversed ? uses.length - 1 - index : index] = 'none';
    }
    return uses;
  }
}

export function seesRequestBodies(filter: HttpFilter): boolean {
  return filter.decodeData !== undefined || filter.decodeTrailers !== undefined;
}

export function seesResponseBodies(filter: HttpFilter): boolean {
  return filter.encodeData !== undefined || filter.encodeTrailers !== undefined;
}
