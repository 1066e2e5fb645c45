// 10,000 clusters of 10 hosts each, two workers: how long from `weir` to LIVE, and what memory the process holds then. In
// turn with it Node itself starts with nothing to do, which tells how fast the machine is just now.
// Bars: 4 s, 600 MB.
// `npm run bench -- many-clusters --clusters 10000 --hosts 10 --rounds 3`

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { socketAddress } from './proxy/contenders/weir.ts';
import { residentBytesOf } from './proxy/pinned-process.ts';
import { median } from './support/contest.ts';

const WEIR = path.join(PACKAGE_ROOT, 'bin/weir');
const BAR = { ms: 4000, megabytes: 600 };
const POLL_MS = 20;
/** What was needed for the start alone is given back by then. */
const SETTLE_MS = 3000;
const MEGABYTE = 1e6;

const { values } = parseArgs({
  options: {
    clusters: { type: 'string', default: '10000' },
    hosts: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
  },
});
const [clusters, hosts, rounds] = [Number(values.clusters), Number(values.hosts), Number(values.rounds)];

function cluster(index: number): object {
  const name = `service-${index}`;
  const lbEndpoints = Array.from({ length: hosts }, (_, host) => {
    return { endpoint: { address: socketAddress(8080, `10.${index >> 8}.${index & 255}.${host + 1}`) } };
  });
  return {
    name,
    connect_timeout: '0.25s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: lbEndpoints }] },
  };
}

async function isLive(addressFile: string): Promise<boolean> {
  try {
    return (await fetch(`http://${readFileSync(addressFile, 'latin1')}/ready`)).status === 200;
  } catch {
    return false;
  }
}

async function end(weir: ChildProcess): Promise<void> {
  const ended = once(weir, 'exit');
  weir.kill();
  await ended;
}

/** Milliseconds to LIVE, and megabytes a while after. */
async function start(
  config: string,
  addressFile: string,
): Promise<{ readonly ms: number; readonly megabytes: number }> {
  rmSync(addressFile, { force: true });
  const startedAt = performance.now();
  const options = [
    '--disable-hot-restart',
    '-c',
    config,
    '--concurrency',
    '2',
    '-l',
    'error',
    '--admin-address-path',
    addressFile,
  ];
  const weir = spawn(WEIR, options, { stdio: ['ignore', 'ignore', 'inherit'] });
  while (!(await isLive(addressFile))) {
    if (weir.exitCode !== null) throw new Error('weir ended before it was live');
    await delay(POLL_MS);
  }
  const ms = performance.now() - startedAt;
  await delay(SETTLE_MS);
  const megabytes = residentBytesOf(weir.pid!) / MEGABYTE;
  await end(weir);
  return { ms, megabytes };
}

async function bareNodeMs(): Promise<number> {
  const startedAt = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - startedAt;
}

const folder = mkdtempSync(path.join(tmpdir(), 'weir-bench-'));
try {
  const [config, addressFile] = [path.join(folder, 'bootstrap.json'), path.join(folder, 'admin-address')];
  const admin = { address: socketAddress(0) };
  const resources = { clusters: Array.from({ length: clusters }, (_, index) => cluster(index)) };
  writeFileSync(config, JSON.stringify({ admin, static_resources: resources }));
  const starts: Awaited<ReturnType<typeof start>>[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    starts.push(await start(config, addressFile));
    bare.push(await bareNodeMs());
  }
  const ms = median(starts.map((result) => result.ms));
  const megabytes = median(starts.map((result) => result.megabytes));
  const verdict = ms <= BAR.ms && megabytes <= BAR.megabytes ? 'reached' : 'MISSED';
  console.log(
    `${clusters} clusters of ${hosts} hosts: LIVE after ${(ms / 1000).toFixed(1)} s ` +
      `(${(ms / median(bare)).toFixed(0)} bare starts of Node), ${megabytes.toFixed(0)} MB resident; ` +
      `bars ${BAR.ms / 1000} s, ${BAR.megabytes} MB: ${verdict}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
