// The exports of assembly/lb/index.ts. Addresses in bytes; a 64-bit hash or seed is two u32, high half first.

import type { WasmExports } from '../instantiate.ts';

export interface LbExports extends WasmExports {
  xxHash64(key: number, length: number, seedHi: number, seedLo: number, out: number): void;
  xxHash64Begin(state: number, seedHi: number, seedLo: number): void;
  xxHash64Stripes(state: number, at: number, length: number): void;
  xxHash64End(state: number, at: number, length: number, totalLength: number, out: number): void;
  murmurHash2(key: number, length: number, seedHi: number, seedLo: number, out: number): void;
  murmurHash2Begin(state: number, totalLength: number, seedHi: number, seedLo: number): void;
  murmurHash2Words(state: number, at: number, length: number): void;
  murmurHash2End(state: number, at: number, length: number, out: number): void;
  buildMaglev(table: number, hosts: number, taken: number): void;
  maglevLookupKey(table: number, key: number, length: number, attempt: number): number;
  buildRing(table: number, hosts: number, hashes: number, hashFunction: number): void;
  ringLookup(table: number, hashHi: number, hashLo: number, attempt: number): number;
  ringLookupKey(table: number, key: number, length: number, attempt: number): number;
  seedRandom(state: number, seedHi: number, seedLo: number): void;
  leastRequestPick(table: number, state: number): number;
  drawPairs(table: number, state: number): void;
  startQueue(table: number, queue: number, picksDone: number): void;
  schedulePick(table: number, queue: number): number;
}

/** How entries of a ring are placed; requests are always hashed by xxHash64. */
export const HASH_FUNCTIONS = { XX_HASH: 0, MURMUR_HASH_2: 1 } as const;
export type HashFunction = keyof typeof HASH_FUNCTIONS;
