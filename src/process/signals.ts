// What signals mean to the process: SIGTERM and SIGINT end it cleanly, a second one at once; SIGUSR1 reopens
// the log files; SIGHUP belongs to a restart wrapper and is ignored.
//
// SIGUSR1 has no moment in which it would end the process, or open Node's debugger:
//
//   bin/weir ignores it ──exec──▶ Node blocks it (--disable-sigusr1) ──letReopeningIn──▶ handled, until the end
//
// The others end the process while there is no handler for them, which is what they are for.

import { constants } from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import type { SystemCalls } from '../base/system-calls.ts';

export interface SignalActions {
  readonly stop: () => void;
  readonly stopAtOnce: () => void;
  readonly reopenLogs: () => void;
}

/**
 * One key press reaches the process twice when a launcher passes on what the terminal has sent to its whole group;
 * signals this close together are one.
 */
const ECHO_MS = 500;

/**
 * Takes over the signals until the returned function is called.
 * @param faults  contains what an action throws.
 */
export function handleSignals(actions: SignalActions, clock: Clock, faults: FaultBoundary): () => void {
  let stoppingSinceMs: number | undefined;
  const stop = (): void => {
    const nowMs = clock.monotonicMs();
    stoppingSinceMs ??= nowMs;
    if (nowMs - stoppingSinceMs > ECHO_MS) actions.stopAtOnce();
    else actions.stop();
  };
  const handlers: readonly (readonly [NodeJS.Signals, () => void])[] = [
    ['SIGTERM', stop],
    ['SIGINT', stop],
    ['SIGUSR1', actions.reopenLogs],
    ['SIGHUP', () => {}],
  ];
  const contained = handlers.map(([signal, handler]) => [signal, () => faults.run(signal, handler)] as const);
  for (const [signal, handler] of contained) process.on(signal, handler);
  return () => {
    // Without a handler SIGUSR1 would end the process in its last milliseconds.
    for (const [signal, handler] of contained) if (signal !== 'SIGUSR1') process.off(signal, handler);
  };
}

/** Lets SIGUSR1 in, which Node blocks from its start on; one that has come meanwhile is handled now. Main thread. */
export function letReopeningIn(systemCalls: SystemCalls | undefined): void {
  systemCalls?.unblockSignal(constants.signals.SIGUSR1);
}
