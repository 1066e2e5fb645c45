// Entry point of the command `weir-bench`; wires, does not decide.

import { SYSTEM_CLOCK } from '../base/clock.ts';
import { readVersion } from '../base/version.ts';
import { runBench } from './run.ts';
import { SUITES } from './suites.ts';

process.exitCode = runBench(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  release: readVersion().release,
  suites: SUITES,
  clock: SYSTEM_CLOCK,
});
