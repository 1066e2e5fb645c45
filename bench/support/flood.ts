// What clients that misbehave do to the others: so many of them a second, of every kind in turn, and beside them requests at a fixed
// rate over connections that are kept. Measured in turns with and without them, with memory and descriptors before and after.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { Arena } from '../proxy/arena.ts';
import type { Contender } from '../proxy/contender.ts';
import { weir } from '../proxy/contenders/weir.ts';
import { type LoadResult, runAtRate } from '../proxy/load.ts';
import type { Entrant } from '../proxy/rounds.ts';
import { median } from './contest.ts';
import { coresOfContest } from './cores.ts';

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
  /** Go through the same beside weir, those of them that are there. */
  readonly peers?: readonly Contender[];
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
export async function measureBeside({ protocol, kinds, perSecond: usual, what, peers = [] }: Flood): Promise<void> {
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
  const [proxyCores, loadCores] = coresOfContest();
  // Bad clients are of this process: they keep off the proxy's core where that can be said.
  spawnSync('taskset', ['-apc', loadCores, String(process.pid)]);

  await using arena = new Arena();
  await arena.startUpstream(loadCores);
  const measure = (port: number, forSeconds: number): Promise<LoadResult> => {
    const url = `${protocol}://127.0.0.1:${port}/small`;
    const task = { cores: loadCores, folder: arena.folder, url, connections: CONNECTIONS, seconds: forSeconds };
    return runAtRate(task, rate);
  };
  const entrants: Entrant[] = [];
  for (const contender of [weir('weir', PACKAGE_ROOT), ...peers.filter((peer) => peer.version() !== undefined)]) {
    entrants.push(await arena.enter(contender, protocol, proxyCores));
  }
  const [{ process: program }] = entrants as [Entrant];
  const descriptors = (): number => readdirSync(`/proc/${program.pid}/fd`).length;

  for (const { port } of entrants) {
    // Code is compiled by the first connections, good and bad.
    const warm = begin(port, kinds, perSecond);
    await measure(port, 3);
    await warm();
  }
  await delay(SETTLE_MS);
  const before = { bytes: program.residentBytes(), descriptors: descriptors() };
  const ratios = new Map(entrants.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, port, process: own } of round % 2 === 0 ? entrants : entrants.toReversed()) {
      const calm = await measure(port, seconds);
      const stop = begin(port, kinds, perSecond);
      const flooded = await measure(port, seconds);
      const count = await stop();
      ratios.get(name)!.push(flooded.p99Ms / calm.p99Ms);
      console.log(
        `${name}: p50 ${calm.p50Ms.toFixed(2)} and ${flooded.p50Ms.toFixed(2)} ms, p99 ${calm.p99Ms.toFixed(2)} and ` +
          `${flooded.p99Ms.toFixed(2)} ms beside ${count} ${what}; ${(own.residentBytes() / MIB).toFixed(0)} MiB`,
      );
    }
  }
  await delay(SETTLE_MS);
  for (const [name, own] of ratios) {
    const ratio = median(own);
    const verdict = name === 'weir' ? `: bar ${BAR} ${ratio <= BAR ? 'reached' : 'MISSED'}` : '';
    console.log(`${name}: p99 ${ratio.toFixed(2)} times as long${verdict}`);
  }
  console.log(
    `descriptors ${before.descriptors} before, ${descriptors()} after; memory ${(before.bytes / MIB).toFixed(0)} MiB before, ` +
      `${(program.residentBytes() / MIB).toFixed(0)} after`,
  );
}
