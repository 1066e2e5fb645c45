// All suites of weir-bench, as the command runs them but from the sources.
// node bench/core.ts [suite and options of weir-bench]

import { SYSTEM_CLOCK } from '../src/base/clock.ts';
import { readVersion } from '../src/base/version.ts';
import { runBench } from '../src/bench-cli/run.ts';
import { SUITES } from '../src/bench-cli/suites.ts';

const args = process.argv.slice(2);
const namesSuite = args[0] !== undefined && !args[0].startsWith('-');
process.exitCode = runBench(namesSuite ? args : ['all', ...args], {
  stdout: process.stdout,
  stderr: process.stderr,
  release: readVersion().release,
  suites: SUITES,
  clock: SYSTEM_CLOCK,
});
