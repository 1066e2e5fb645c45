// --mode validate: the whole of a bootstrap is checked as if it were served; nothing is opened or connected.

import type { ServerOptions } from '../cli/index.ts';
import { loadAndReport } from './load.ts';
import type { ProcessLog } from './log.ts';
import { printDocument } from './print.ts';

/** @returns the exit code: 0 for a good configuration (spec 2.7). */
export function validate(options: ServerOptions, log: ProcessLog): number {
  if (!loadAndReport(options, log).bootstrap) return 1;
  return printDocument(`configuration '${options.configPath}' OK\n`);
}
