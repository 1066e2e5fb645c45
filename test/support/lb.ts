// What the tests of tables and balancers start from.

import fc from 'fast-check';
import { WeirError } from '../../src/base/errors.ts';
import type { HashingSettings } from '../../src/snapshot/index.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { type HashedHost, LbKernel, LbTables } from '../../src/wasm/lb.ts';
import type { SharedMemoryOptions } from '../../src/wasm/shared-memory.ts';
import { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';

export const lbModule = compileModule('lb');

/** What a cluster says of hashing that says nothing. */
export const DEFAULT_HASHING: HashingSettings = {
  minimumRingSize: 1024,
  maximumRingSize: 8388608,
  hashFunction: 'XX_HASH',
  maglevTableSize: 65537,
  usesHostname: false,
  balancePercent: 0,
  policies: [],
};

export interface LbBench {
  readonly owner: SharedMemoryOwner;
  readonly kernel: LbKernel;
  readonly tables: LbTables;
}

export function openLb(options: SharedMemoryOptions = { workerCount: 1 }): LbBench {
  const owner = new SharedMemoryOwner(options);
  const kernel = new LbKernel(owner.shared, lbModule);
  return { owner, kernel, tables: new LbTables(owner, kernel) };
}

/** Main's builder over a memory that a test has already. */
export function lbTables(owner: SharedMemoryOwner): LbTables {
  return new LbTables(owner, new LbKernel(owner.shared, lbModule));
}

export function addresses(count: number, first = 0): HashedHost[] {
  return Array.from({ length: count }, (_, at) => ({ key: `10.0.${(first + at) >> 8}.${(first + at) & 255}:8080` }));
}

/** A repeatable 64-bit hash by number. */
export function hashOf(n: number): bigint {
  return (BigInt(n + 1) * 0x9e3779b97f4a7c15n) & ((1n << 64n) - 1n);
}

export const anyHash = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });

/** Lists of hosts with keys of any text, some of them alike. */
export const anyHosts = fc.array(
  fc.record({
    key: fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.ipV4(), fc.constant('same')),
    weight: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 20 })),
  }),
  { minLength: 1, maxLength: 12 },
);

/** For assert.throws: an argument's error that says all of this. */
export function refuses(...parts: readonly string[]): (error: unknown) => boolean {
  return (error) =>
    error instanceof WeirError &&
    error.code === 'WEIR_LB_ARGUMENT' &&
    parts.every((part) => error.message.includes(part));
}
