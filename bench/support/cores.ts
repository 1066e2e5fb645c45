// Where programs of a benchmark run, as `taskset` has it.

import os from 'node:os';

/** One core for the proxy; generator and upstream share the next one, or have a core each where there are three. */
export function coresOfContest(): readonly [proxy: string, generator: string] {
  const count = os.availableParallelism();
  if (count === 1) return ['0', '0'];
  return ['0', count === 2 ? '1' : '1,2'];
}
