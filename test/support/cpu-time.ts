// Time that this thread has worked. Limits on it hold on a busy machine too, where the clock on the wall
// counts the work of others.

/** Milliseconds of processor time that `run` took. */
export function cpuTimeMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
