// From `weir` to LIVE with the demo's bootstrap, the process's own start included: compiled files, two workers, and
// the code cache that `npm start` and bin/weir.mjs use (filled by the first round, which does not count).
// Bar: 500 ms.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';

const ROUNDS = 9;
const MAIN = path.join(PACKAGE_ROOT, 'dist/src/main.js');

/** Milliseconds until the demo has printed what it prints once the server is live. */
async function startMs(): Promise<number> {
  const start = performance.now();
  const weir = spawn(process.execPath, [MAIN, '--concurrency', '2', '-l', 'error'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_COMPILE_CACHE: path.join(PACKAGE_ROOT, 'build/compile-cache') },
  });
  const ended = once(weir, 'exit');
  const said = await Promise.race([once(weir.stdout, 'data'), ended.then(() => undefined)]);
  if (!said) throw new Error('weir ended before it was live');
  const elapsed = performance.now() - start;
  weir.kill();
  await ended;
  return elapsed;
}

await startMs();
const times: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) times.push(await startMs());
times.sort((a, b) => a - b);
const [fastest, median, slowest] = [0, ROUNDS >> 1, ROUNDS - 1].map((index) => times[index]!.toFixed(0));
console.log(`start to LIVE: ${median} ms (median of ${ROUNDS}; ${fastest} to ${slowest})`);
