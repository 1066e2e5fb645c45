// What balancer cases share: hosts, keys, hashes, and the facades that the proxy itself calls. The suites go to these
// and not to the public API, which takes hashes as bigints: a proxy has them by halves.
//
// Each suite writes its loops out, one per table class. A loop shared by two classes would see calls of two kinds, and
// the compiler would inline neither.

import { compileModule } from '../wasm/instantiate.ts';
import { LbKernel } from '../wasm/lb/kernel.ts';
import { LbTables } from '../wasm/lb/table-builder.ts';
import { SharedMemoryOwner } from '../wasm/shared-memory-owner.ts';
import type { PlainHost } from './twins/maglev.ts';

/** A power of two, so that going round is a mask. */
export const QUESTIONS = 4096;

export interface Balancers {
  readonly owner: SharedMemoryOwner;
  readonly kernel: LbKernel;
  readonly tables: LbTables;
}

export function openBalancers(): Balancers {
  const owner = new SharedMemoryOwner({ workerCount: 1 });
  const kernel = new LbKernel(owner.shared, compileModule('lb'));
  return { owner, kernel, tables: new LbTables(owner, kernel) };
}

/** Equal weights; or 1, 2, 3 in turn. */
export function hostsOf(count: number, weighted = false): PlainHost[] {
  return Array.from({ length: count }, (_, index) => ({
    key: `10.0.${index >> 8}.${index & 255}:8080`,
    weight: weighted ? 1 + (index % 3) : 1,
  }));
}

/** Keys of 21 bytes, as session ids are. */
export function sessionKeys(): string[] {
  return Array.from({ length: QUESTIONS }, (_, n) => `session-${String(n).padStart(13, '0')}`);
}

/** Spread over all 64 bits; the same in every run. */
export function hashes(): { hi: Uint32Array; lo: Uint32Array } {
  let state = 1;
  const next = (): number => {
    state = Math.imul(state, 1_664_525) + 1_013_904_223;
    return state;
  };
  const hi = new Uint32Array(QUESTIONS).map(next);
  return { hi, lo: new Uint32Array(QUESTIONS).map(next) };
}
