// Gives back at once what a large piece of work has left on the heap of this thread. The collector by itself leaves it there
// until as much again has been allocated: it cannot know that nothing of this size will come again.

import { ProcessMemory } from './process-memory.ts';

/** Below this there is too little to gain. */
const WORTH_BYTES = 64 * 1024 * 1024;

type Collector = (options: {
  readonly type: 'major';
  readonly flavor: 'last-resort';
  readonly execution: 'sync';
}) => void;

let collector: Collector | undefined;

/**
 * To be called when little of the heap is in use: that is what it takes time for, some 2 ms a megabyte.
 * @returns whether there was enough to be worth it.
 */
export function collectGarbage(): boolean {
  // Loading these modules takes milliseconds, which a start with a small configuration does not have.
  if (new ProcessMemory().read().heapBytes < WORTH_BYTES) return false;
  collector ??= findCollector();
  // Gives pages back to the system, which other flavors do not.
  collector({ type: 'major', flavor: 'last-resort', execution: 'sync' });
  return true;
}

/** The flag puts the collector into contexts that are made from then on. */
function findCollector(): Collector {
  process.getBuiltinModule('node:v8').setFlagsFromString('--expose-gc');
  return process.getBuiltinModule('node:vm').runInNewContext('gc') as Collector;
}
