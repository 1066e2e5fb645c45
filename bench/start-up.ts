// From `weir` to LIVE with the demo's bootstrap, the process's own start included: compiled files, two workers, and
// the code cache, which the first round fills that does not count.
// In turn with it, Node itself starts with nothing to do: how long that takes tells how fast the machine is just now.
// Bar: 500 ms.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';

const ROUNDS = 9;
const WEIR = path.join(PACKAGE_ROOT, 'bin/weir');

/** Milliseconds until the demo has printed what it prints once the server is live. */
async function startMs(): Promise<number> {
  const start = performance.now();
  const weir = spawn(WEIR, ['--concurrency', '2', '-l', 'error'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(weir, 'exit');
  const said = await Promise.race([once(weir.stdout, 'data'), ended.then(() => undefined)]);
  if (!said) throw new Error('weir ended before it was live');
  const elapsed = performance.now() - start;
  weir.kill();
  await ended;
  return elapsed;
}

/** Milliseconds of a Node that ends as soon as it has started. */
async function bareNodeMs(): Promise<number> {
  const start = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - start;
}

function summary(times: readonly number[]): { readonly median: number; readonly text: string } {
  const sorted = times.toSorted((a, b) => a - b);
  const [fastest, median, slowest] = [0, ROUNDS >> 1, ROUNDS - 1].map((index) => sorted[index]!);
  const text = `${median!.toFixed(0)} ms (median of ${ROUNDS}; ${fastest!.toFixed(0)} to ${slowest!.toFixed(0)})`;
  return { median: median!, text };
}

await startMs();
const starts: number[] = [];
const bareStarts: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  starts.push(await startMs());
  bareStarts.push(await bareNodeMs());
}
const [weir, bare] = [summary(starts), summary(bareStarts)];
console.log(`start to LIVE: ${weir.text}`);
console.log(`Node alone:    ${bare.text}; weir takes ${(weir.median / bare.median).toFixed(1)} times as long`);
