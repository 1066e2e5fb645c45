// Gives back at once what a large piece of work has left on the heap of this thread. The collector by itself leaves it there
// until as much again has been allocated: it cannot know that nothing of this size will come again.

import { ProcessMemory } from './process-memory.ts';
import { trimAllocator } from './system-calls.ts';

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
  collect();
  return true;
}

/**
 * Gives back what a start has left, once it is over: the collector waits with that until much more has been allocated, which a
 * thread that rests never does. Stops this thread for some 50 ms. What a large configuration has left is not for this.
 * @returns bytes that the process has given back.
 */
export function settleMemory(): number {
  const memory = new ProcessMemory();
  const before = memory.read();
  if (before.heapBytes < WORTH_BYTES) collect();
  trimAllocator();
  return Math.max(0, before.residentBytes - memory.read().residentBytes);
}

/**
 * Gives back what a piece of work has left that is rare and takes long itself, however large the heap is: what it freed within
 * the engine or a library stays with the C library's allocator otherwise, and nobody comes to reuse it.
 */
export function giveBackMemory(): void {
  collect();
  trimAllocator();
}

function collect(): void {
  collector ??= findCollector();
  // Gives pages back to the system, which other flavors do not.
  collector({ type: 'major', flavor: 'last-resort', execution: 'sync' });
}

/** The flag puts the collector into contexts that are made from then on. */
function findCollector(): Collector {
  process.getBuiltinModule('node:v8').setFlagsFromString('--expose-gc');
  return process.getBuiltinModule('node:vm').runInNewContext('gc') as Collector;
}
