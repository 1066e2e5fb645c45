// Plain twin of hash rings: entries one at a time, a sort by comparison, and ketama's binary search.

import { murmurHash2, xxHash64 } from './hash.ts';
import { type ReferenceHost, shares } from './maglev.ts';

export interface RingReference {
  readonly entries: readonly { readonly hash: bigint; readonly host: number }[];
  readonly nominalSize: number;
  lookup(hash: bigint, attempt?: number): number;
}

export interface RingReferenceOptions {
  readonly minimumRingSize?: number;
  readonly maximumRingSize?: number;
  readonly hashFunction?: 'XX_HASH' | 'MURMUR_HASH_2';
}

export function buildRing(hosts: readonly ReferenceHost[], options: RingReferenceOptions = {}): RingReference {
  const { minimumRingSize = 1024, maximumRingSize = 8 * 1024 * 1024, hashFunction = 'XX_HASH' } = options;
  const hashOf = hashFunction === 'XX_HASH' ? xxHash64 : murmurHash2;
  const weights = shares(hosts);
  const smallest = Math.min(...weights);
  const scale = Math.min(Math.ceil(smallest * minimumRingSize) / smallest, maximumRingSize);
  const entries: { hash: bigint; host: number }[] = [];
  let target = 0;
  for (const [host, { key }] of hosts.entries()) {
    target += scale * weights[host]!;
    for (let entry = 0; entries.length < target; entry += 1) {
      entries.push({ hash: hashOf(Buffer.from(`${key}_${entry}`)), host });
    }
  }
  entries.sort((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0));
  return {
    entries,
    nominalSize: Math.ceil(scale),
    lookup: (hash, attempt = 0) => entries[(find(entries, hash) + attempt) % entries.length]!.host,
  };
}

function find(entries: RingReference['entries'], hash: bigint): number {
  let low = 0;
  let high = entries.length;
  for (;;) {
    const middle = Math.trunc((low + high) / 2);
    if (middle === entries.length) return 0;
    const here = entries[middle]!.hash;
    const before = middle === 0 ? 0n : entries[middle - 1]!.hash;
    if (hash <= here && hash > before) return middle;
    if (here < hash) low = middle + 1;
    else high = middle - 1;
    if (low > high) return 0;
  }
}
