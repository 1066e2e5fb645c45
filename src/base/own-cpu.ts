// Where this thread spends its time, as the engine sees it. Any thread.

export interface CpuProfileOptions {
  /** Milliseconds between two looks. */
  readonly sampleInterval: number;
  /** Samples beyond these are not kept. */
  readonly maxBufferSize: number;
}

/**
 * Begins a profile, which ends with the process at the latest: the thread of the engine that looks at this one would go on while the
 * process is taken down under it (docs/decisions/0095-profilers-end-before-their-threads.md).
 * @returns what ends it, and gives V8's profile as JSON.
 */
export function startOwnCpuProfile(options: CpuProfileOptions): { stop(): string } {
  const handle = process.getBuiltinModule('node:v8').startCpuProfile(options);
  const stop = (): string => {
    process.off('exit', stop);
    return handle.stop();
  };
  process.once('exit', stop);
  return { stop };
}
