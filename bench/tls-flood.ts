// What handshakes that fail do to the others: a thousand a second, of every kind in turn (plain HTTP, garbage, cut, stopped, no
// common cipher), and beside them HTTPS requests at a fixed rate over connections that are kept. Measured in turns with and
// without the flood, with memory and descriptors before and after.
// `npm run bench -- tls-flood --rounds 3 --seconds 10 --rate 500 --flood 1000`
// Bar: p99 with the flood at most twice that without; no descriptor left.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { weir } from './proxy/contenders/weir.ts';
import { type LoadResult, runAtRate } from './proxy/load.ts';
import { median } from './support/contest.ts';

const BAR = 2;
const CONNECTIONS = 16;
const MIB = 1024 * 1024;
const TICK_MS = 10;
const SETTLE_MS = 2000;
/** Clients that stop leave after this time by themselves. */
const STOPPED_MS = 500;
/** The head of a record with a ClientHello, and the first bytes of it. */
const BEGUN_HELLO = Buffer.from('16030100c8010000c40303', 'hex');
const GARBAGE = Buffer.alloc(600, 0xff);
const NO_COMMON = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256', rejectUnauthorized: false } as const;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '500' },
    flood: { type: 'string', default: '1000' },
  },
});
const [rounds, seconds, rate, perSecond] = [values.rounds, values.seconds, values.rate, values.flood].map(Number) as [
  number,
  number,
  number,
  number,
];
const [proxyCores, loadCores] = os.availableParallelism() > 2 ? ['0', '1,2'] : ['0', '0'];

type BadClient = (port: number) => Socket;

const KINDS: readonly BadClient[] = [
  plain((socket) => socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')),
  plain((socket) => socket.write(GARBAGE)),
  plain((socket) => socket.end(BEGUN_HELLO)),
  plain((socket) => {
    socket.write(BEGUN_HELLO);
    setTimeout(() => socket.destroy(), STOPPED_MS);
  }),
  (port) => connect({ ...NO_COMMON, host: '127.0.0.1', port }),
];

function plain(act: (socket: Socket) => void): BadClient {
  return (port) => {
    const socket = connectPlain(port, '127.0.0.1', () => act(socket));
    return socket;
  };
}

/** Goes on until it is stopped. @returns how many there have been, once all are closed. */
function flood(port: number): () => Promise<number> {
  const open = new Set<Socket>();
  const beganMs = performance.now();
  let count = 0;
  const timer = setInterval(() => {
    const due = ((performance.now() - beganMs) / 1000) * perSecond;
    for (; count < due; count += 1) {
      const socket = KINDS[count % KINDS.length]!(port);
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

// Bad clients are of this process: they keep off the proxy's core where that can be said.
spawnSync('taskset', ['-apc', loadCores!, String(process.pid)]);

await using arena = new Arena();
await arena.startUpstream(loadCores);
const { process: program, port } = await arena.enter(weir('weir', PACKAGE_ROOT), 'https', proxyCores);
const url = `https://127.0.0.1:${port}/small`;
const measure = (forSeconds: number): Promise<LoadResult> =>
  runAtRate({ cores: loadCores, folder: arena.folder, url, connections: CONNECTIONS, seconds: forSeconds }, rate);
const descriptors = (): number => readdirSync(`/proc/${program.pid}/fd`).length;

// Code is compiled by the first connections, good and bad.
const warm = flood(port);
await measure(3);
await warm();
await delay(SETTLE_MS);
const before = { bytes: program.residentBytes(), descriptors: descriptors() };
const ratios: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  const calm = await measure(seconds);
  const stop = flood(port);
  const flooded = await measure(seconds);
  const count = await stop();
  ratios.push(flooded.p99Ms / calm.p99Ms);
  console.log(
    `p50 ${calm.p50Ms.toFixed(2)} and ${flooded.p50Ms.toFixed(2)} ms, p99 ${calm.p99Ms.toFixed(2)} and ` +
      `${flooded.p99Ms.toFixed(2)} ms beside ${count} bad handshakes; ${(program.residentBytes() / MIB).toFixed(0)} MiB`,
  );
}
await delay(SETTLE_MS);
const ratio = median(ratios);
console.log(`p99 ${ratio.toFixed(2)} times as long: bar ${BAR} ${ratio <= BAR ? 'reached' : 'MISSED'}`);
console.log(
  `descriptors ${before.descriptors} before, ${descriptors()} after; memory ${(before.bytes / MIB).toFixed(0)} MiB before, ` +
    `${(program.residentBytes() / MIB).toFixed(0)} after`,
);
