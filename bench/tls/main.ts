// TLS of clients, weir beside nginx and HAProxy on one core each: HTTPS over kept connections, handshakes, and what an idle
// connection takes. All have one certificate of ECDSA over P-256 and give tickets; a run fails where they do not agree on
// the same cipher. Processor time is what the proxy's process has used; ratios are peer/weir, so that more is better.
//
//   --rounds N     alternating rounds (7)
//   --starts N     processes of each contender that share them (3)
//   --seconds N    length of each contender's turn (2)
//   --only A,B     https-small, full, resumed, request, memory
//   --against A,B  nginx, haproxy
//   --before FOLDER  another built checkout of weir takes part as weir-before
//
// Bars, of nginx: https-small 0.80 of its requests a second; full handshakes 0.5 and resumed ones 0.6 by processor time of
// a connection. An idle connection takes 40 KiB at most.

import path from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { Arena } from '../proxy/arena.ts';
import type { Contender } from '../proxy/contender.ts';
import { haproxy } from '../proxy/contenders/haproxy.ts';
import { nginx } from '../proxy/contenders/nginx.ts';
import { weir } from '../proxy/contenders/weir.ts';
import { runWrk } from '../proxy/load.ts';
import { measureIdle, REQUEST, untilAnswered } from '../proxy/memory.ts';
import type { Entrant } from '../proxy/rounds.ts';
import { median } from '../support/contest.ts';
import { coresOfContest } from '../support/cores.ts';
import { CURVE, type HandshakeKind, runHandshakes } from './handshakes.ts';

interface Part {
  readonly title: string;
  /** Undefined for requests over connections that are kept. */
  readonly kind?: HandshakeKind;
  readonly connections: number;
  /** Of nginx; which figure it is about. */
  readonly bar: readonly [of: 'rate' | 'cpu', least: number] | null;
}

const PARTS: Readonly<Record<string, Part>> = {
  'https-small': { title: 'small GET, 64 kept connections', connections: 64, bar: ['rate', 0.8] },
  full: { title: 'full handshakes, 16 at a time', kind: 'full', connections: 16, bar: ['cpu', 0.5] },
  resumed: { title: 'resumed handshakes, 16 at a time', kind: 'resumed', connections: 16, bar: ['cpu', 0.6] },
  request: { title: 'full handshake and one request, 16 at a time', kind: 'request', connections: 16, bar: null },
};
const IDLE_CONNECTIONS = 4000;
const IDLE_BAR_KIB = 40;
const KIB = 1024;
const WARM_UP_SECONDS = 2;
const [PROXY_CORES, GENERATOR_CORES] = coresOfContest();

interface Turn {
  readonly rate: number;
  readonly cpuMicroseconds: number;
}

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    starts: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: [...Object.keys(PARTS), 'memory'].join() },
    against: { type: 'string', default: 'nginx,haproxy' },
    before: { type: 'string' },
  },
});
const wanted = options.only.split(',');
const unknown = wanted.filter((name) => name !== 'memory' && !(name in PARTS));
if (unknown.length > 0) throw new RangeError(`no such part: ${unknown.join(', ')}`);

const contenders = [
  weir('weir', PACKAGE_ROOT),
  ...(options.before === undefined ? [] : [weir('weir-before', path.resolve(options.before))]),
  ...[nginx, haproxy].filter(({ name }) => options.against.split(',').includes(name)),
].filter(({ name, version, absence }) => {
  const found = version();
  console.log(found === undefined ? `${name} is left out: ${absence}` : `${name} ${found}`);
  return found !== undefined;
});

for (const [name, part] of Object.entries(PARTS)) if (wanted.includes(name)) report(part, await measure(part));
if (wanted.includes('memory')) for (const contender of contenders) await reportIdle(contender);

/** @returns the turns of each contender. */
async function measure(part: Part): Promise<Turn[][]> {
  const turns = contenders.map((): Turn[] => []);
  const starts = Number(options.starts);
  for (let start = 0; start < starts; start += 1) {
    await using arena = new Arena();
    await arena.startUpstream(GENERATOR_CORES);
    const entrants: Entrant[] = [];
    for (const contender of contenders) entrants.push(await arena.enter(contender, 'https', PROXY_CORES));
    const agreed = new Set<string>();
    for (const entrant of entrants) {
      agreed.add((await runHandshakes(GENERATOR_CORES, entrant.port, part.kind ?? 'request', 1, 1)).agreed);
      await takeTurn(part, entrant, arena.folder, WARM_UP_SECONDS);
    }
    if (agreed.size > 1) throw new Error(`contenders agree on different ciphers: ${[...agreed].join('; ')}`);
    for (let round = start; round < Number(options.rounds); round += starts) {
      const order = [...entrants.keys()];
      if (round % 2 === 1) order.reverse();
      for (const at of order) {
        turns[at]!.push(await takeTurn(part, entrants[at]!, arena.folder, Number(options.seconds)));
      }
    }
  }
  return turns;
}

async function takeTurn({ kind, connections }: Part, entrant: Entrant, to: string, seconds: number): Promise<Turn> {
  const { process: program, port } = entrant;
  const cpuBefore = program.cpuSeconds();
  const url = `https://127.0.0.1:${port}/small`;
  const [count, took] =
    kind === undefined
      ? await runWrk({ cores: GENERATOR_CORES, folder: to, url, connections, seconds }).then((load) => [
          load.requests,
          load.seconds,
        ])
      : await runHandshakes(GENERATOR_CORES, port, kind, connections, seconds).then((made) => [
          made.count,
          made.seconds,
        ]);
  return { rate: count! / took!, cpuMicroseconds: ((program.cpuSeconds() - cpuBefore) * 1e6) / count! };
}

function report({ title, bar }: Part, turns: readonly (readonly Turn[])[]): void {
  console.log(`\n${title}`);
  for (const [at, { name }] of contenders.entries()) {
    const rate = median(turns[at]!.map((turn) => turn.rate));
    const cpu = median(turns[at]!.map((turn) => turn.cpuMicroseconds));
    const figures = `${rate.toFixed(0)} a second, ${cpu.toFixed(1)} us of processor time each`;
    if (at === 0) {
      console.log(`  ${name}: ${figures}`);
      continue;
    }
    const rates = turns[0]!.map((turn, round) => turn.rate / turns[at]![round]!.rate);
    const cpus = turns[0]!.map((turn, round) => turns[at]![round]!.cpuMicroseconds / turn.cpuMicroseconds);
    const held = name === 'nginx' && bar !== null ? verdict(median(bar[0] === 'rate' ? rates : cpus), bar[1]) : '';
    console.log(`  ${name}: ${figures}; rate ${spread(rates)}, processor time ${spread(cpus)}${held}`);
  }
}

function verdict(figure: number, bar: number): string {
  return `; bar ${bar} ${figure >= bar ? 'reached' : 'MISSED'}`;
}

function spread(ratios: readonly number[]): string {
  return `${median([...ratios]).toFixed(3)} (${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)})`;
}

async function reportIdle(contender: Contender): Promise<void> {
  await using arena = new Arena();
  await arena.startUpstream(GENERATOR_CORES);
  const entrant = await arena.enter(contender, 'https', PROXY_CORES);
  const { perConnectionBytes } = await measureIdle(entrant, openSecured, IDLE_CONNECTIONS);
  const kib = perConnectionBytes / KIB;
  const held = contender.name === 'weir' ? `; bar ${IDLE_BAR_KIB} ${kib <= IDLE_BAR_KIB ? 'reached' : 'MISSED'}` : '';
  console.log(`${contender.name}: ${kib.toFixed(1)} KiB for each of ${IDLE_CONNECTIONS} idle connections${held}`);
}

function openSecured(port: number): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ecdhCurve: CURVE }, () =>
    socket.write(REQUEST),
  );
  return untilAnswered(socket) as Promise<TLSSocket>;
}
