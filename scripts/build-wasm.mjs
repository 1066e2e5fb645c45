// Compiles every AssemblyScript module of asconfig.json to build/wasm/. A target's entry is
// assembly/<name up to the first dash>/index.ts: "http1-scalar" is the scalar build of http1.

import { mkdirSync, readFileSync } from 'node:fs';
import asc from 'assemblyscript/asc';

const targets = Object.keys(JSON.parse(readFileSync('asconfig.json', 'utf8')).targets);
mkdirSync('build/wasm', { recursive: true });
for (const target of targets) {
  const entry = `assembly/${target.split('-')[0]}/index.ts`;
  const { error, stdout, stderr } = await asc.main([entry, '--config', 'asconfig.json', '--target', target]);
  if (error) {
    console.error(`${target}: ${error.message}\n${stdout}${stderr}`);
    process.exit(1);
  }
}
