// What the filters of a chain do with the bodies of one direction. Which of them have a use for those of a certain request is
// known when they are made: one that has no use for them sees none, and changes none.

import type { BodyUse, HttpFilter } from './filter.ts';

/** As many filters as fit into the bits of a number; further ones see every body that their kind does. */
const MOST_READERS = 31;

/** What each filter does with the body of one message, in the order of its direction. */
export class BodyPlan {
  readonly uses: readonly BodyUse[];
  /** Any filter sees it. */
  readonly isRead: boolean;
  /** Any filter may change it. */
  readonly isEdited: boolean;

  constructor(uses: readonly BodyUse[]) {
    this.uses = uses;
    this.isRead = uses.some((use) => use !== 'none');
    this.isEdited = uses.includes('edits');
  }

  with(index: number, use: BodyUse): BodyPlan {
    return new BodyPlan(this.uses.with(index, use));
  }

  /** The same without the filters before this one. */
  from(first: number): BodyPlan {
    return new BodyPlan(this.uses.map((use, index) => (index < first ? 'none' : use)));
  }
}

export class BodyUses {
  /** Of all filters. */
  readonly #plan: BodyPlan;
  readonly #isReversed: boolean;
  readonly #sees: (filter: HttpFilter, use: BodyUse) => boolean;
  /** Of the kinds that have any use for bodies: where they stand among the filters. */
  readonly #readers: readonly number[];
  /** By a bit for each reader that has no use for bodies. */
  readonly #without = new Map<number, BodyPlan>();

  /** @param uses in the order of requests. @param isReversed for responses, which pass the last filter first. */
  constructor(uses: readonly BodyUse[], isReversed: boolean, sees: (filter: HttpFilter, use: BodyUse) => boolean) {
    this.#plan = new BodyPlan(isReversed ? uses.toReversed() : uses);
    this.#isReversed = isReversed;
    this.#sees = sees;
    const readers = uses.flatMap((use, index) => (use === 'none' ? [] : [index]));
    this.#readers = readers.slice(0, MOST_READERS);
  }

  /** Any of the kinds may change bodies. */
  get isEdited(): boolean {
    return this.#plan.isEdited;
  }

  /** @param filters of a request, in their order. */
  wantedBy(filters: readonly HttpFilter[]): BodyPlan {
    const readers = this.#readers;
    let unused = 0;
    for (let at = 0; at < readers.length; at += 1) {
      const index = readers[at]!;
      if (!this.#sees(filters[index]!, this.#plan.uses[this.#placeOf(index)]!)) unused |= 1 << at;
    }
    if (unused === 0) return this.#plan;
    let wanted = this.#without.get(unused);
    if (wanted === undefined) {
      wanted = this.#planWithout(unused);
      this.#without.set(unused, wanted);
    }
    return wanted;
  }

  #planWithout(unused: number): BodyPlan {
    const uses = [...this.#plan.uses];
    for (const [at, index] of this.#readers.entries()) {
      if ((unused & (1 << at)) !== 0) uses[this.#placeOf(index)] = 'none';
    }
    return new BodyPlan(uses);
  }

  /** Of a filter, in the order of the direction. */
  #placeOf(index: number): number {
    return this.#isReversed ? this.#plan.uses.length - 1 - index : index;
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
