// The sizes of young generations. What lives on in one is copied each time that it is full, while its thread stands still: an update of
// thousands of clusters leaves a fifth of it alive, and the larger it is, the longer main stops at once. So main has a small one, by a
// flag of the launcher (scripts/setup/launch.sh), which workers are not to have: nothing of a request lives that long, and the larger
// it is, the more seldom they are stopped (docs/decisions/0094-main-has-a-small-young-generation.md). Main thread.

/** As the launcher gives it; it also holds for threads that are started from then on. */
export const MAIN_FLAG = '--max-semi-space-size=8';
const ENGINES_OWN = '--max-semi-space-size=0';

/** Threads that are started from now on have what the engine thinks best. Where others have chosen sizes, these stay. */
export function leaveThreadsTheirYoungGeneration(execArgv: readonly string[] = process.execArgv): void {
  if (execArgv.includes(MAIN_FLAG)) process.getBuiltinModule('node:v8').setFlagsFromString(ENGINES_OWN);
}
