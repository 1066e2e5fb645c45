// What slow clients do to the others: a thousand connections of slowhttptest that send their heads or their bodies, or
// read their answers, byte by byte, and beside them requests at a fixed rate. Measured in turns with and without the
// attack, on weir as it is shipped, and on HAProxy for comparison where it is asked for and installed.
// `npm run bench -- slow-attack --rounds 3 --seconds 12 --rate 500 --only 'slow bodies' --haproxy`

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import type { Contender } from './proxy/contender.ts';
import { haproxy } from './proxy/contenders/haproxy.ts';
import { weir } from './proxy/contenders/weir.ts';
import { programVersion } from './proxy/installed.ts';
import { type LoadResult, runAtRate } from './proxy/load.ts';
import type { Entrant } from './proxy/rounds.ts';

const CONNECTIONS = 1000;
const OPENED_PER_SECOND = 500;
/** The share of them that has to be there before anything is measured. */
const ENOUGH = 0.9;
const OPEN_LIMIT_MS = 30_000;
const POLL_MS = 100;
/** p99 with the attack over p99 without. */
const BAR = 2;
/** Seconds between two pieces of a slow head or body, as the tool has it by default; all connections send at once. */
const INTERVAL_SECONDS = '10';
const LEGITIMATE_CONNECTIONS = 16;

const ATTACKS: readonly { readonly name: string; readonly path: string; readonly flags: readonly string[] }[] = [
  { name: 'slow heads', path: '/small', flags: ['-H', '-i', INTERVAL_SECONDS, '-x', '24'] },
  { name: 'slow bodies', path: '/post', flags: ['-B', '-i', INTERVAL_SECONDS, '-s', '8192', '-x', '16', '-t', 'POST'] },
  { name: 'slow reading', path: '/1m', flags: ['-X', '-w', '512', '-y', '1024', '-n', '1', '-z', '64', '-k', '1'] },
];

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '12' },
    rate: { type: 'string', default: '500' },
    only: { type: 'string' },
    haproxy: { type: 'boolean', default: false },
  },
});
const [rounds, seconds, rate] = [Number(values.rounds), Number(values.seconds), Number(values.rate)];

async function startAttack(entrant: Entrant, { path, flags }: (typeof ATTACKS)[number]): Promise<ChildProcess> {
  const before = descriptorsOf(entrant.process.pid);
  const url = `http://127.0.0.1:${entrant.port}${path}`;
  // Ends by itself long after it is ended here.
  const numbers = ['-c', CONNECTIONS, '-r', OPENED_PER_SECOND, '-l', 120 + seconds, '-p', 30].map(String);
  const child = spawn('slowhttptest', [...flags, ...numbers, '-v', '0', '-u', url], { stdio: 'ignore' });
  const giveUpAt = performance.now() + OPEN_LIMIT_MS;
  while (descriptorsOf(entrant.process.pid) - before < CONNECTIONS * ENOUGH) {
    if (performance.now() > giveUpAt || child.exitCode !== null) {
      await stop(child);
      throw new Error(`slowhttptest has opened ${descriptorsOf(entrant.process.pid) - before} connections only`);
    }
    await delay(POLL_MS);
  }
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Of the process that carries traffic: taskset has replaced itself by it. */
function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
}

async function contest(attack: (typeof ATTACKS)[number], contender: Contender): Promise<void> {
  await using arena = new Arena();
  const cores = `0-${os.availableParallelism() - 1}`;
  await arena.startUpstream(cores);
  const entrant = await arena.enter(contender, 'http', cores, 2);
  const url = `http://127.0.0.1:${entrant.port}/small`;
  const measure = (): Promise<LoadResult> =>
    runAtRate({ cores, folder: arena.folder, url, connections: LEGITIMATE_CONNECTIONS, seconds }, rate);
  await measure();
  const [without, beside]: [LoadResult[], LoadResult[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    without.push(await measure());
    const attacker = await startAttack(entrant, attack);
    beside.push(await measure());
    await stop(attacker);
    // What the attacker has left behind is closed before the next round begins.
    while (descriptorsOf(entrant.process.pid) > CONNECTIONS / 2) await delay(POLL_MS);
  }
  const ratio = median(beside.map(({ p99Ms }, round) => p99Ms / without[round]!.p99Ms));
  const figures = (results: readonly LoadResult[]): string =>
    results.map(({ p50Ms, p99Ms }) => `${p50Ms.toFixed(2)}/${p99Ms.toFixed(2)}`).join(', ');
  process.stdout.write(
    `${contender.name}, ${attack.name}: p50/p99 ms without ${figures(without)}; with ${figures(beside)}; ` +
      `median ratio of p99 ${ratio.toFixed(2)}, bar ${BAR}: ${ratio <= BAR ? 'reached' : 'MISSED'}\n`,
  );
}

const missing = [
  programVersion('slowhttptest', '-h', /version (\S+)/) === undefined ? 'slowhttptest' : '',
  programVersion('h2load', '--version', /nghttp2\/(\S+)/) === undefined ? 'h2load' : '',
  process.platform === 'linux' ? '' : 'Linux',
].filter(Boolean);
if (missing.length > 0) {
  process.stdout.write(`slow-attack is left out: there is no ${missing.join(' and no ')}\n`);
} else {
  process.stdout.write(
    `${rate} requests/s over ${LEGITIMATE_CONNECTIONS} connections beside ${CONNECTIONS} slow ones, ` +
      `${rounds} rounds of ${seconds} s, 2 workers, all on the same cores\n`,
  );
  const contenders = [weir('weir', PACKAGE_ROOT)];
  if (values.haproxy && haproxy.version() !== undefined) contenders.push(haproxy);
  for (const attack of ATTACKS.filter(({ name }) => (values.only ?? name) === name)) {
    for (const contender of contenders) await contest(attack, contender);
  }
}
