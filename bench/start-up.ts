// How long starts take, each as whole processes in turns, with Node itself that starts with nothing to do: how long that
// takes tells how fast the machine is just now. What is kept compiled from one start to the next is there: the first round
// does not count.
//
//   demo to LIVE    `weir`, two workers, until it prints its addresses       at most 350 ms where a bare Node takes 30; 11 times it
//   --version       until its end                                            at most 4 times a bare Node
//   validate        5,000 clusters, 3.1 MB of YAML, until its end            at most 1 s
//   nginx, HAProxy  with two workers, until they accept connections

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os, { tmpdir } from 'node:os';
import path from 'node:path';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import type { Contender } from './proxy/contender.ts';
import { haproxy } from './proxy/contenders/haproxy.ts';
import { nginx } from './proxy/contenders/nginx.ts';
import { manyClusters } from './support/many-clusters-config.ts';

const ROUNDS = 9;
const WORKERS = 2;
const ALL_CORES = `0-${os.availableParallelism() - 1}`;
const WEIR = path.join(PACKAGE_ROOT, 'bin/weir');

type Measure = () => Promise<number>;

/** Milliseconds until the demo has printed what it prints once the server is live. */
async function demoMs(): Promise<number> {
  const start = performance.now();
  const weir = spawn(WEIR, ['--concurrency', String(WORKERS), '-l', 'error'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(weir, 'exit');
  const said = await Promise.race([once(weir.stdout, 'data'), ended.then(() => undefined)]);
  if (!said) throw new Error('weir ended before it was live');
  const elapsed = performance.now() - start;
  weir.kill();
  await ended;
  return elapsed;
}

/** Milliseconds of a command that ends by itself. */
async function wholeMs(program: string, ...args: string[]): Promise<number> {
  const start = performance.now();
  const [code] = await once(spawn(program, args, { stdio: 'ignore' }), 'exit');
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
  return performance.now() - start;
}

async function acceptingMs(contender: Contender): Promise<number> {
  await using arena = new Arena();
  await arena.startUpstream(ALL_CORES);
  const start = performance.now();
  await arena.enter(contender, 'http', ALL_CORES, WORKERS);
  return performance.now() - start;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
}

const folder = mkdtempSync(path.join(tmpdir(), 'weir-bench-'));
const config = path.join(folder, 'bootstrap.yaml');
writeFileSync(config, manyClusters());
const measures = new Map<string, Measure>([
  ['bare Node', () => wholeMs(process.execPath, '-e', '0')],
  ['demo to LIVE', demoMs],
  ['--version', () => wholeMs(WEIR, '--version')],
  ['validate', () => wholeMs(WEIR, '--mode', 'validate', '-c', config)],
]);
for (const peer of [nginx, haproxy]) {
  if (peer.version() !== undefined) measures.set(peer.name, () => acceptingMs(peer));
}
try {
  const times = new Map([...measures.keys()].map((name) => [name, [] as number[]]));
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [name, measure] of measures) {
      const elapsed = await measure();
      if (round > 0) times.get(name)!.push(elapsed);
    }
  }
  const bare = median(times.get('bare Node')!);
  for (const [name, all] of times) {
    const [least, most] = [Math.min(...all), Math.max(...all)].map((time) => time.toFixed(0));
    const ratio = (median(all) / bare).toFixed(1);
    console.log(
      `${name.padEnd(13)} ${median(all).toFixed(0)} ms (median of ${ROUNDS}; ${least} to ${most}), ${ratio} bare Nodes`,
    );
  }
} finally {
  rmSync(folder, { recursive: true });
}
