// What a process holds, as Linux tells it.

import { readdirSync, readFileSync } from 'node:fs';
import type { Ledger } from './ledger.ts';

/** The allocator gives back late and not all; a leak of minutes is more than this. */
const MEMORY_TOLERANCE = { factor: 1.25, MiB: 48 };
const DESCRIPTOR_TOLERANCE = 16;
/** The pool for blocking calls starts when it is first needed. */
const THREAD_TOLERANCE = 4;

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

/** Holds what is left at the end against what was held when warm. @param withMemory takes minutes to mean anything. */
export function checkResources(
  ledger: Ledger,
  warm: Resources | undefined,
  end: Resources | undefined,
  withMemory: boolean,
): void {
  if (warm === undefined || end === undefined) return;
  if (end.descriptors > warm.descriptors + DESCRIPTOR_TOLERANCE) {
    ledger.violation(`${end.descriptors} descriptors are open at the end, ${warm.descriptors} were when warm`);
  }
  if (end.threads > warm.threads + THREAD_TOLERANCE) {
    ledger.violation(`${end.threads} threads at the end, ${warm.threads} when warm`);
  }
  const limitMiB = warm.residentMiB * MEMORY_TOLERANCE.factor + MEMORY_TOLERANCE.MiB;
  if (withMemory && end.residentMiB > limitMiB) {
    ledger.violation(`${end.residentMiB} MiB are resident at the end, ${warm.residentMiB} were when warm`);
  }
}
