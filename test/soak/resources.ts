// What a process holds, as Linux tells it.

import { readdirSync, readFileSync } from 'node:fs';

export interface Resources {
  readonly residentMiB: number;
  readonly descriptors: number;
  readonly threads: number;
}

/** Undefined where there is no /proc. */
export function resourcesOf(pid: number): Resources | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
    return {
      residentMiB: Math.round(field('VmRSS') / 1024),
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
      threads: field('Threads'),
    };
  } catch {
    return undefined;
  }
}
