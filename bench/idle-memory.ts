// Resident memory of weir at rest: one HTTP listener, one cluster, the admin interface, two workers, no request yet. In the
// same run what bare Node takes, nginx and HAProxy with as many workers.
// Bar: 130 MB.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { haproxy } from './proxy/contenders/haproxy.ts';
import { nginx } from './proxy/contenders/nginx.ts';
import { weir } from './proxy/contenders/weir.ts';
import { residentBytesOf } from './proxy/pinned-process.ts';

const WORKERS = 2;
/** weir gives back what its start has left a second after that. */
const REST_MS = 5_000;
const STARTS = 3;
const ALL_CORES = `0-${os.availableParallelism() - 1}`;
const MEGABYTE = 1e6;

function shown(bytes: number): string {
  return `${(bytes / MEGABYTE).toFixed(0)} MB`;
}

async function bareNodeBytes(): Promise<number> {
  const node = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const ended = once(node, 'exit');
  await delay(REST_MS);
  const bytes = residentBytesOf(node.pid!);
  node.kill();
  await ended;
  return bytes;
}

console.log(`bare Node: ${shown(await bareNodeBytes())}`);
for (const contender of [weir('weir', PACKAGE_ROOT), nginx, haproxy]) {
  if (contender.version() === undefined) {
    console.log(`${contender.name} is left out: ${contender.absence}`);
    continue;
  }
  const sizes: number[] = [];
  for (let start = 0; start < STARTS; start += 1) {
    await using arena = new Arena();
    await arena.startUpstream(ALL_CORES);
    const { process: program } = await arena.enter(contender, 'http', ALL_CORES, WORKERS);
    await delay(REST_MS);
    sizes.push(program.residentBytes());
  }
  console.log(`${contender.name}: ${sizes.map(shown).join(', ')} in ${STARTS} starts`);
}
