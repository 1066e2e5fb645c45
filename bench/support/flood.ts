// What clients that misbehave do to the others: so many of them a second, of every kind in turn, and beside them requests at a fixed
// rate over connections that are kept. Measured in turns with and without them, with memory and descriptors before and after.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { Arena } from '../proxy/arena.ts';
import { weir } from '../proxy/contenders/weir.ts';
import { type LoadResult, runAtRate } from '../proxy/load.ts';
import { median } from './contest.ts';

const BAR = 2;
const CONNECTIONS = 16;
const MIB = 1024 * 1024;
const TICK_MS = 10;
const SETTLE_MS = 2000;

/** One connection, which is closed after some time, by whichever side. */
export type BadClient = (port: number) => Socket;

export interface Flood {
  /** Of the others. */
  readonly protocol: 'http' | 'https';
  readonly kinds: readonly BadClient[];
  /** Of bad clients, where the command line does not say so. */
  readonly perSecond: number;
  /** What they are, in the plural. */
  readonly what: string;
}

/** Goes on until it is stopped. @returns how many there have been, once all are closed. */
function begin(port: number, kinds: readonly BadClient[], perSecond: number): () => Promise<number> {
  const open = new Set<Socket>();
  const beganMs = performance.now();
  let count = 0;
  const timer = setInterval(() => {
    const due = ((performance.now() - beganMs) / 1000) * perSecond;
    for (; count < due; count += 1) {
      const socket = kinds[count % kinds.length]!(port);
      open.add(socket);
      socket.on('error', () => {}).once('close', () => open.delete(socket));
      socket.resume();
    }
  }, TICK_MS);
  return async () => {
    clearInterval(timer);
    while (open.size > 0) await delay(TICK_MS);
    return count;
  };
}

/** Takes `--rounds`, `--seconds`, `--rate` and `--flood` from the command line, and tells what it finds. */
export async function measureBeside({ protocol, kinds, perSecond: usual, what }: Flood): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '10' },
      rate: { type: 'string', default: '500' },
      flood: { type: 'string', default: String(usual) },
    },
  });
  const [rounds, seconds, rate, perSecond] = [values.rounds, values.seconds, values.rate, values.flood].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const [proxyCores, loadCores] = os.availableParallelism() > 2 ? ['0', '1,2'] : ['0', '0'];
  // Bad clients are of this process: they keep off the proxy's core where that can be said.
  spawnSync('taskset', ['-apc', loadCores!, String(process.pid)]);

  await using arena = new Arena();
  await arena.startUpstream(loadCores);
  const { process: program, port } = await arena.enter(weir('weir', PACKAGE_ROOT), protocol, proxyCores);
  const url = `${protocol}://127.0.0.1:${port}/small`;
  const measure = (forSeconds: number): Promise<LoadResult> =>
    runAtRate({ cores: loadCores, folder: arena.folder, url, connections: CONNECTIONS, seconds: forSeconds }, rate);
  const descriptors = (): number => readdirSync(`/proc/${program.pid}/fd`).length;

  // Code is compiled by the first connections, good and bad.
  const warm = begin(port, kinds, perSecond);
  await measure(3);
  await warm();
  await delay(SETTLE_MS);
  const before = { bytes: program.residentBytes(), descriptors: descriptors() };
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const calm = await measure(seconds);
    const stop = begin(port, kinds, perSecond);
    const flooded = await measure(seconds);
    const count = await stop();
    ratios.push(flooded.p99Ms / calm.p99Ms);
    console.log(
      `p50 ${calm.p50Ms.toFixed(2)} and ${flooded.p50Ms.toFixed(2)} ms, p99 ${calm.p99Ms.toFixed(2)} and ` +
        `${flooded.p99Ms.toFixed(2)} ms beside ${count} ${what}; ${(program.residentBytes() / MIB).toFixed(0)} MiB`,
    );
  }
  await delay(SETTLE_MS);
  const ratio = median(ratios);
  console.log(`p99 ${ratio.toFixed(2)} times as long: bar ${BAR} ${ratio <= BAR ? 'reached' : 'MISSED'}`);
  console.log(
    `descriptors ${before.descriptors} before, ${descriptors()} after; memory ${(before.bytes / MIB).toFixed(0)} MiB before, ` +
      `${(program.residentBytes() / MIB).toFixed(0)} after`,
  );
}
