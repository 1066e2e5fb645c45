// `npm run check`: everything about the tree that a machine can judge without running the tests. Each step prints one
// line; all run, whatever the others say; the end is non-zero when one failed. Set-up has built everything before.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  boundaryBreaches,
  cycleBreaches,
  frontDoorBreaches,
  importBreaches,
  missingFileBreaches,
  ownerBreaches,
} from './architecture/breaches.ts';
import { readModules } from './architecture/modules.ts';
import { documentBreaches } from './repository/documents.ts';
import { repositoryFiles } from './repository/files.ts';
import { layoutSourceBreaches, moduleBreaches } from './repository/layouts.ts';
import { lockfileBreaches } from './repository/lockfile.ts';
import { privateNameBreaches } from './repository/private-names.ts';
import { longFileRemarks } from './repository/sizes.ts';
import { PACKAGE_ROOT as root } from './setup/runtime.mjs';

const tool = (name) => path.join(root, 'node_modules', '.bin', name);

/** Runs a command to its end; its output is the fault when it fails. */
function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.on('error', (error) => resolve({ status: 1, output: `${command}: ${error.message}` }));
    child.on('close', (status) => resolve({ status, output }));
  });
}

async function faultsOf(command, args) {
  const { status, output } = await run(command, args);
  return status === 0 ? [] : output.trimEnd().split('\n');
}

function importRules() {
  const modules = readModules(root);
  if (modules.size === 0) return ['no module was read'];
  const rules = [
    importBreaches,
    frontDoorBreaches,
    ownerBreaches,
    boundaryBreaches,
    missingFileBreaches,
    cycleBreaches,
  ];
  return rules.flatMap((rule) => rule(modules));
}

async function privateNames() {
  const registry = await run('npm', ['config', 'get', 'registry', '--loglevel=error']);
  return privateNameBreaches(root, registry.output.trim(), repositoryFiles(root));
}

/** In the order in which a reader wants to hear of them; `remarks` are printed and fail nothing. */
const STEPS = [
  { name: 'types', faults: () => faultsOf(tool('tsc'), ['--noEmit', '-p', 'tsconfig.json']) },
  { name: 'types of the page', faults: () => faultsOf(tool('tsc'), ['-p', 'src/page/tsconfig.json']) },
  {
    name: 'types of browser tests',
    faults: () => faultsOf(tool('tsc'), ['--noEmit', '-p', 'test/browser/tsconfig.json']),
  },
  { name: 'lint and format', faults: () => faultsOf(tool('biome'), ['ci', '--error-on-warnings', '--colors=off']) },
  { name: 'import rules, cycles, owners', faults: importRules },
  {
    name: 'memory layouts',
    faults: async () => [...(await layoutSourceBreaches(root)), ...(await moduleBreaches(root))],
  },
  { name: 'configuration types', faults: () => faultsOf(process.execPath, ['scripts/build-proto.mjs', '--check']) },
  { name: 'configuration support', faults: () => faultsOf(process.execPath, ['scripts/config-support.ts', '--check']) },
  { name: 'admin documents', faults: () => faultsOf(process.execPath, ['scripts/admin-documents.ts', '--check']) },
  { name: 'option document', faults: () => faultsOf(process.execPath, ['scripts/option-document.ts', '--check']) },
  { name: 'example documents', faults: () => faultsOf(process.execPath, ['scripts/example-documents.ts', '--check']) },
  { name: 'lockfile', faults: () => lockfileBreaches(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) },
  { name: 'no private names', faults: privateNames },
  { name: 'files named in documents', faults: () => documentBreaches(root, repositoryFiles(root)) },
  { name: 'file sizes', faults: () => [], remarks: () => longFileRemarks(repositoryFiles(root)) },
];

async function runStep({ name, faults, remarks = () => [] }) {
  const startMs = performance.now();
  let found;
  try {
    found = await faults();
  } catch (error) {
    found = [error.stack];
  }
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`${found.length === 0 ? 'ok  ' : 'FAIL'}  ${name.padEnd(32)}${seconds.padStart(5)} s`);
  for (const line of [...found, ...remarks()]) console.log(`      ${line}`);
  return found.length === 0;
}

let failed = 0;
for (const step of STEPS) if (!(await runStep(step))) failed += 1;
if (failed > 0) {
  console.log(`${failed} of ${STEPS.length} steps failed`);
  process.exitCode = 1;
}
