// What threads of weir contend for. They take no locks of one another: they meet in messages, and in shared memory by single
// atomic operations. What is left to wait for is a processor, so that is what --enable-mutex-tracing counts: with more workers
// than processors, or neighbours on the machine, these numbers grow. Main thread.

import type { Clock } from '../../base/clock.ts';
import { type ProcessorWaits, readProcessorWaits } from '../../base/processor-waits.ts';

export interface Contention {
  /** How often a thread that wanted to go on had to let another have its processor. */
  readonly count: number;
  /** Nanoseconds that threads have waited for processors while this was measured. */
  readonly currentWaitNs: number;
  /** The same since each of them started. */
  readonly lifetimeWaitNs: number;
}

/** How long the current waits are looked at. */
const MEASURED_MS = 100;

/** Undefined where the system does not tell. */
export async function measureContention(
  clock: Clock,
  read: () => ProcessorWaits | undefined = readProcessorWaits,
): Promise<Contention | undefined> {
  const before = read();
  await new Promise<void>((resolve) => clock.after(MEASURED_MS, resolve));
  const after = read();
  if (before === undefined || after === undefined) return undefined;
  // A thread that has ended takes what it has waited with it.
  const currentWaitNs = Math.max(0, after.waitedNs - before.waitedNs);
  return { count: after.preemptions, currentWaitNs, lifetimeWaitNs: after.waitedNs };
}
