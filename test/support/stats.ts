// A stats store over a fresh shared memory, with as many worker sides as a test wants.

import { StatsStore, type TagOptions, WorkerStats } from '../../src/stats/index.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { SharedMemory } from '../../src/wasm/shared-memory.ts';
import { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';

const module = compileModule('stats');

export interface StatsFixture {
  readonly owner: SharedMemoryOwner;
  readonly store: StatsStore;
  readonly workers: readonly FixtureWorker[];
}

/** A worker's side in this thread; messages wait in `asked` until a test delivers them. */
export class FixtureWorker {
  readonly stats: WorkerStats;
  readonly memory: SharedMemory;
  readonly asked: { readonly scope: string; readonly name: string }[] = [];

  constructor(memory: WebAssembly.Memory, index: number) {
    this.memory = SharedMemory.attach(memory, index);
    this.stats = new WorkerStats({ memory: this.memory, module, requestCell: (key) => this.asked.push(key) });
  }

  /** Delivers all questions and their answers. */
  answer(store: StatsStore): void {
    for (const key of this.asked.splice(0)) this.stats.resolve(key, store.dynamicCell(key));
  }
}

export function statsFixture(
  options: { workerCount?: number; maxBytes?: number; tags?: TagOptions; accepts?: (name: string) => boolean } = {},
): StatsFixture {
  const { workerCount = 2, maxBytes = 512 * 1024 * 1024, tags = {}, accepts } = options;
  const owner = new SharedMemoryOwner({ workerCount, maxBytes });
  const store = new StatsStore({ owner, module, tags, ...(accepts ? { accepts } : {}) });
  const workers = Array.from({ length: workerCount }, (_, index) => new FixtureWorker(owner.memory, index));
  return { owner, store, workers };
}

/** `name: value` of each counter and gauge, as a listing shows them. */
export async function listing(store: StatsStore, usedOnly = false): Promise<string[]> {
  const lines: string[] = [];
  for await (const batch of store.countersAndGauges()) {
    for (const stat of batch) {
      if (usedOnly && !stat.isUsed) continue;
      // Always there; shown only where it says something.
      if (stat.name !== 'stats.overflow' || stat.value > 0) lines.push(`${stat.name}: ${stat.value}`);
    }
  }
  return lines;
}
