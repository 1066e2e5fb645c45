// The profilers of V8 in main and in the workers. Main thread.

import { startOwnCpuProfile } from '../../base/own-cpu.ts';
import { HeapSampling } from '../../base/own-heap.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import type { Engines, ProfiledHeap, ProfileKind, ProfileOptions, RunningProfile } from './profilers.ts';

const MAIN = 'main';

export function engines(workers: Pick<WorkerPool, 'startProfile' | 'heaps'>): Engines {
  const own: ProfiledHeap = {
    thread: MAIN,
    snapshot: async () => process.getBuiltinModule('node:v8').getHeapSnapshot(),
  };
  return {
    async startProfile(kind, options) {
      const others = await workers.startProfile(kind, options);
      try {
        return [startOwn(kind, options), ...others];
      } catch (error) {
        for (const other of others) other.giveUp();
        throw error;
      }
    },
    heaps: () => [own, ...workers.heaps()],
  };
}

function startOwn(kind: ProfileKind, options: ProfileOptions): RunningProfile {
  const profile = kind === 'cpu' ? startOwnCpuProfile(options) : new HeapSampling(options);
  return {
    thread: MAIN,
    stop: async () => profile.stop(),
    giveUp() {
      profile.stop();
    },
  };
}
