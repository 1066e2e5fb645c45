// A Maglev table in plain TypeScript (NSDI 2016, section 3.4, with weights): hosts in the order of their keys claim
// their next free preference in rounds.

import { plainXxHash64 } from './xxhash64.ts';

export interface PlainHost {
  readonly key: string;
  readonly weight: number;
}

const encoder = new TextEncoder();
const LOW_HALF = 0xffff_ffffn;

export class PlainMaglev {
  readonly #table: Int32Array;
  /** 2^32 modulo the size. */
  readonly #carry: number;

  constructor(hosts: readonly PlainHost[], tableSize: number) {
    this.#table = new Int32Array(tableSize).fill(-1);
    this.#carry = 2 ** 32 % tableSize;
    this.#fill(hosts, tableSize);
  }

  /** A hash by halves, modulo the size: all steps are exact in doubles up to the largest table. */
  lookup(hashHi: number, hashLo: number): number {
    const size = this.#table.length;
    return this.#table[((hashHi % size) * this.#carry + hashLo) % size]!;
  }

  hashAndLookup(key: string): number {
    const hash = plainXxHash64(encoder.encode(key));
    return this.lookup(Number(hash >> 32n), Number(hash & LOW_HALF));
  }

  #fill(hosts: readonly PlainHost[], tableSize: number): void {
    const total = hosts.reduce((sum, { weight }) => sum + weight, 0);
    const claims = hosts
      .map(({ key, weight }, index) => {
        const bytes = encoder.encode(key);
        const place = Number(plainXxHash64(bytes) % BigInt(tableSize));
        const skip = Number(plainXxHash64(bytes, 1n) % BigInt(tableSize - 1)) + 1;
        return { index, key, weight: weight / total, place, skip, target: 0 };
      })
      .sort((a, b) => (a.key < b.key ? -1 : 1));
    const heaviest = claims.reduce((most, { weight }) => Math.max(most, weight), 0);
    let filled = 0;
    for (let round = 1; filled < tableSize; round += 1) {
      for (const claim of claims) {
        if (filled === tableSize) break;
        if (round * claim.weight < claim.target) continue;
        claim.target += heaviest;
        while (this.#table[claim.place]! >= 0) claim.place = (claim.place + claim.skip) % tableSize;
        this.#table[claim.place] = claim.index;
        filled += 1;
      }
    }
  }
}
