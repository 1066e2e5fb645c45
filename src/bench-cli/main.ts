// Entry point of the command `weir-bench`; wires, does not decide.

import { SYSTEM_CLOCK } from '../base/clock.ts';
import { readVersion } from '../base/version.ts';
import { EXIT_FAULT, runBench } from './run.ts';
import { SUITES } from './suites.ts';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever has read enough (head, a pager) is no fault.
  if (error.code === 'EPIPE') return;
  process.stderr.write(`weir-bench: standard output: ${error.message}\n`);
  process.exitCode = EXIT_FAULT;
});
// There is nowhere left to tell it.
process.stderr.on('error', () => {});

process.exitCode = runBench(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  release: readVersion().release,
  suites: SUITES,
  clock: SYSTEM_CLOCK,
});
