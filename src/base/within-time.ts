// Work that the end of the process waits for, but not for ever.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** Of the event loop, that work needs from an event to its end where nobody is waited for. */
const TURNS_AT_END = 3;

/** Resolves when the work has ended, or the time is over. @throws what the work does until then. */
export async function withinTime(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  const isOver = Promise.withResolvers<void>();
  // The time may have passed while this thread had no processor: what has come meanwhile is looked at first.
  const callOff = clock.after(limitMs, async () => {
    for (let turn = 0; turn < TURNS_AT_END; turn += 1) await nextTurn();
    isOver.resolve();
  });
  await Promise.race([work, isOver.promise]);
  callOff();
}
