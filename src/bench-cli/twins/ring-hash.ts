// A hash ring in plain TypeScript: entries sorted by comparison, found by binary search.

import type { PlainHost } from './maglev.ts';
import { plainXxHash64 } from './xxhash64.ts';

const encoder = new TextEncoder();
const LOW_HALF = 0xffff_ffffn;

interface Entry {
  readonly hi: number;
  readonly lo: number;
  readonly host: number;
}

export class PlainRing {
  readonly #hi: Uint32Array;
  readonly #lo: Uint32Array;
  readonly #hosts: Uint32Array;

  constructor(hosts: readonly PlainHost[], minimumRingSize: number, maximumRingSize: number) {
    const entries = ringEntries(hosts, minimumRingSize, maximumRingSize).sort((a, b) => a.hi - b.hi || a.lo - b.lo);
    this.#hi = Uint32Array.from(entries, ({ hi }) => hi);
    this.#lo = Uint32Array.from(entries, ({ lo }) => lo);
    this.#hosts = Uint32Array.from(entries, ({ host }) => host);
  }

  /** Host of the first entry at or after the hash, or of the first of all. */
  lookup(hashHi: number, hashLo: number): number {
    let low = 0;
    let high = this.#hi.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const hi = this.#hi[middle]!;
      if (hi < hashHi || (hi === hashHi && this.#lo[middle]! < hashLo)) low = middle + 1;
      else high = middle;
    }
    return this.#hosts[low === this.#hi.length ? 0 : low]!;
  }

  hashAndLookup(key: string): number {
    const hash = plainXxHash64(encoder.encode(key));
    return this.lookup(Number(hash >> 32n), Number(hash & LOW_HALF));
  }
}

function ringEntries(hosts: readonly PlainHost[], minimum: number, maximum: number): Entry[] {
  const total = hosts.reduce((sum, { weight }) => sum + weight, 0);
  const weights = hosts.map(({ weight }) => weight / total);
  const least = weights.reduce((a, b) => Math.min(a, b));
  const scale = Math.min(Math.ceil(least * minimum) / least, maximum);
  const entries: Entry[] = [];
  let target = 0;
  for (const [host, { key }] of hosts.entries()) {
    target += scale * weights[host]!;
    for (let n = 0; entries.length < target; n += 1) {
      const hash = plainXxHash64(encoder.encode(`${key}_${n}`));
      entries.push({ hi: Number(hash >> 32n), lo: Number(hash & LOW_HALF), host });
    }
  }
  return entries;
}
