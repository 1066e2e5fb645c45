// The profilers of V8 in main and in the workers. Main thread.

import type { WorkerPool } from '../workers/worker-pool.ts';
import type { Engines, ProfiledHeap, ProfileKind, ProfileOptions, RunningProfile } from './profilers.ts';

const MAIN = 'main';

export function engines(workers: Pick<WorkerPool, 'startProfile' | 'heaps'>): Engines {
  const v8 = process.getBuiltinModule('node:v8');
  const startOwn = (kind: ProfileKind, options: ProfileOptions): RunningProfile => {
    const handle = kind === 'cpu' ? v8.startCpuProfile(options) : v8.startHeapProfile(options);
    return { thread: MAIN, stop: async () => handle.stop() };
  };
  const own: ProfiledHeap = { thread: MAIN, snapshot: async () => v8.getHeapSnapshot() };
  return {
    async startProfile(kind, options) {
      const others = await workers.startProfile(kind, options);
      return [startOwn(kind, options), ...others];
    },
    heaps: () => [own, ...workers.heaps()],
  };
}
