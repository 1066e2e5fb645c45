// `npm run bench`: runs the benchmarks of this folder one after the other, each in a process of its own, so that none
// finds the compiler warmed up by another. `npm run bench -- http1-head config-load` runs those named; what begins with a
// dash and everything behind it goes to them: `npm run bench -- proxy --rounds 3`. A benchmark is a file, or a folder
// with a main.ts.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const SELF = path.basename(import.meta.filename);
const scripts = new Map<string, string>();
for (const entry of readdirSync(import.meta.dirname).sort()) {
  const file = path.join(import.meta.dirname, entry);
  if (entry.endsWith('.ts') && entry !== SELF) scripts.set(path.basename(entry, '.ts'), file);
  else if (existsSync(path.join(file, SELF))) scripts.set(entry, path.join(file, SELF));
}
const available = [...scripts.keys()];

const args = process.argv.slice(2);
const firstOption = args.findIndex((arg) => arg.startsWith('-'));
const named = firstOption === -1 ? args : args.slice(0, firstOption);
const passedOn = firstOption === -1 ? [] : args.slice(firstOption);
const USAGE = `usage: npm run bench -- [benchmark...] [option...]

Runs the benchmarks named, or all of them one after the other; options go to each that runs.
There are: ${available.join(', ')}
`;
const unknown = named.filter((name) => !available.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`no such benchmark: ${unknown.join(', ')}\n\n${USAGE}`);
  process.exit(1);
}
if (passedOn.some((arg) => arg === '--help' || arg === '-h')) {
  process.stdout.write(named.length === 0 ? USAGE : named.map(headOf).join('\n'));
  process.exit(0);
}
if (named.length === 0 && passedOn.length > 0) {
  process.stderr.write(`name the benchmarks that ${passedOn[0]} is for\n\n${USAGE}`);
  process.exit(1);
}

process.stdout.write(
  `${os.cpus()[0]?.model ?? 'unknown CPU'}, ${os.availableParallelism()} cores, Node ${process.versions.node}\n`,
);
/** What the benchmark says of itself and of its options. */
function headOf(name: string): string {
  const lines = readFileSync(scripts.get(name)!, 'utf8').split('\n');
  const head = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith('//')),
  );
  return `# ${name}\n\n${head.map((line) => `${line.slice(3)}\n`).join('')}`;
}

let failed = false;
for (const name of named.length > 0 ? named : available) {
  process.stdout.write(`\n# ${name}\n`);
  const { status } = spawnSync(process.execPath, [...process.execArgv, scripts.get(name)!, ...passedOn], {
    stdio: 'inherit',
  });
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
