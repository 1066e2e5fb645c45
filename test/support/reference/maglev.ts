// Plain twin of Maglev tables: the published algorithm with weights, word for word.

import { xxHash64 } from './hash.ts';

export interface ReferenceHost {
  readonly key: string;
  readonly weight?: number;
}

export interface MaglevReference {
  /** Index of the host of each slot. */
  readonly slots: readonly number[];
  lookup(hash: bigint, attempt?: number): number;
}

/** Shares of 1 in the order of the hosts. */
export function shares(hosts: readonly ReferenceHost[]): number[] {
  const sum = hosts.reduce((total, host) => total + (host.weight ?? 1), 0);
  return hosts.map((host) => (host.weight ?? 1) / sum);
}

export function buildMaglev(hosts: readonly ReferenceHost[], size: number): MaglevReference {
  const weights = shares(hosts);
  const largest = Math.max(...weights);
  const turns = hosts
    .map(({ key }, index) => ({ bytes: Buffer.from(key), index }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes) || a.index - b.index)
    .map(({ bytes, index }) => ({
      index,
      offset: xxHash64(bytes) % BigInt(size),
      skip: (xxHash64(bytes, 1n) % BigInt(size - 1)) + 1n,
      next: 0n,
      target: 0,
    }));
  const slots = new Array<number>(size).fill(-1);
  let filled = 0;
  for (let iteration = 1; filled < size; iteration += 1) {
    for (const turn of turns) {
      if (filled === size) break;
      if (iteration * weights[turn.index]! < turn.target) continue;
      turn.target += largest;
      const preference = (): number => Number((turn.offset + turn.skip * turn.next) % BigInt(size));
      while (slots[preference()] !== -1) turn.next += 1n;
      slots[preference()] = turn.index;
      turn.next += 1n;
      filled += 1;
    }
  }
  return {
    slots,
    lookup(hash, attempt = 0) {
      const tried = attempt === 0 ? hash : hash ^ ((1n << 64n) - BigInt(attempt));
      return slots[Number(tried % BigInt(size))]!;
    },
  };
}
