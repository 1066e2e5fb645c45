// What a pick may know of its request.

import { keySetName, type MetadataPair, subsetKey } from '../../../base/subset-key.ts';

/** What a request asks of its host's metadata. Made once per route. */
export class Criteria {
  /** Of the subset whose hosts say all of this. */
  readonly name: string;
  /** Of the keys alone. */
  readonly keySet: string;
  readonly #pairs: readonly MetadataPair[];
  /** With fewer keys, by the names of their sets. */
  readonly #reduced = new Map<string, Criteria | null>();

  /** @param pairs ascending by key, one or more. */
  constructor(pairs: readonly MetadataPair[]) {
    this.#pairs = pairs;
    this.name = subsetKey(pairs);
    this.keySet = keySetName(pairs.map(([key]) => key));
  }

  /** What is left of it with these keys alone; null for nothing. */
  reduce(keys: readonly string[]): Criteria | null {
    const name = keySetName(keys);
    const known = this.#reduced.get(name);
    if (known !== undefined) return known;
    const pairs = this.#pairs.filter(([key]) => keys.includes(key));
    const reduced = pairs.length === 0 ? null : new Criteria(pairs);
    this.#reduced.set(name, reduced);
    return reduced;
  }
}

export interface PickContext {
  /** False: balancers that go by hashes draw one. */
  readonly hasHash: boolean;
  /** Halves of the request's hash, each of 32 bits. */
  readonly hashHi: number;
  readonly hashLo: number;
  /** Null when it asks nothing. */
  readonly criteria: Criteria | null;
}

/** Of a request that may be picked for several times: what went before. */
export interface DrawContext {
  /** Hosts that were drawn for the attempt under way, and not taken. */
  readonly draw: number;
  /** Get nothing as long as there are others. Emptied when there are none. */
  readonly spentPriorities: Set<number>;
}

/** A request of which nothing else is known. */
export function contextOf(criteria: Criteria | null): PickContext {
  return { hasHash: false, hashHi: 0, hashLo: 0, criteria };
}

/** The hash of one request, while it is put together. */
export class RequestHash implements PickContext {
  readonly criteria: Criteria | null;
  hasHash = false;
  hashHi = 0;
  hashLo = 0;

  constructor(criteria: Criteria | null) {
    this.criteria = criteria;
  }

  /** Takes in one more hash: turns what was there by one bit, so that the order counts. */
  add(hi: number, lo: number): void {
    const turnedHi = (this.hashHi << 1) | (this.hashLo >>> 31);
    const turnedLo = (this.hashLo << 1) | (this.hashHi >>> 31);
    this.hashHi = (this.hasHash ? turnedHi : 0) ^ hi;
    this.hashLo = (this.hasHash ? turnedLo : 0) ^ lo;
    this.hasHash = true;
  }
}
