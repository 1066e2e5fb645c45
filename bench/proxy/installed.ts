// What of the programs that the benchmark uses is installed on this machine.

import { spawnSync } from 'node:child_process';

/** The first match of `pattern` in what the program says of its version; undefined when there is no such program. */
export function programVersion(program: string, flag: string, pattern: RegExp): string | undefined {
  const { error, stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8' });
  if (error) return undefined;
  return pattern.exec(stdout + stderr)?.[1] ?? 'of unknown version';
}
