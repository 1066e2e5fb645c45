// How many threads the machine runs at once, and how many of them this process may use.

import { availableParallelism, cpus } from 'node:os';

/** Hardware threads, whatever this process may use of them; what it may use where the system does not say. */
export function hardwareThreads(): number {
  return cpus().length || availableParallelism();
}

/** Those of the CPU set of this process, or less where a quota of its group is less. */
export function usableThreads(): number {
  return availableParallelism();
}
