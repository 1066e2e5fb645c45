// --enable-core-dump: whether the system may write a core file when the process crashes. Main thread, at its start.

import { SystemCalls } from '../base/system-calls.ts';
import type { Loggers } from '../log/index.ts';

/** Says in the log what has come of it. */
export function enableCoreDump(loggers: Loggers): void {
  if (SystemCalls.open()?.allowCoreDump()) loggers.get('misc').info('core dump enabled');
  else loggers.get('misc').warning('failed to enable core dump');
}
