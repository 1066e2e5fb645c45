// What many good handshakes at once do to the others: the first messages of a thousand clients come in one moment, every two
// seconds, and beside them HTTPS requests at a fixed rate over connections that are kept. weir beside nginx on one core, in turns
// with and without the bursts.
// `npm run bench -- tls-burst --rounds 3 --seconds 10 --rate 500 --burst 1000 --every 2000`
//
//   --before FOLDER  another built checkout of weir takes part as weir-before
//
// Clients are prepared before their moment: connected, the first message made. They end as soon as they are secured, and a run
// fails where one is not. `done` is the time from the moment until the last one is.
// Bar: p99 beside bursts is at most twice that of nginx beside the same ones.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import path from 'node:path';
import { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, createSecureContext } from 'node:tls';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { nginx } from './proxy/contenders/nginx.ts';
import { weir } from './proxy/contenders/weir.ts';
import { type FixedRateResult, runAtRate } from './proxy/load.ts';
import type { Entrant } from './proxy/rounds.ts';
import { median } from './support/contest.ts';
import { coresOfContest } from './support/cores.ts';
import { CURVE } from './tls/handshakes.ts';

const BAR = 2;
const CONNECTIONS = 16;
/** Connecting to a backlog and making the messages takes the client some time; more at once would overflow it. */
const CONNECT_AT_ONCE = 100;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '500' },
    burst: { type: 'string', default: '1000' },
    every: { type: 'string', default: '2000' },
    before: { type: 'string' },
  },
});
const [rounds, seconds, rate, burst, everyMs] = [
  values.rounds,
  values.seconds,
  values.rate,
  values.burst,
  values.every,
].map(Number) as [number, number, number, number, number];
const [proxyCores, loadCores] = coresOfContest();
spawnSync('taskset', ['-apc', loadCores, String(process.pid)]);
const secureContext = createSecureContext();

/** What TLS writes waits for its moment; after that it goes on as it comes. */
class HeldBack extends Duplex {
  readonly #raw: Socket;
  #isHeld = true;
  #first: Buffer[] = [];

  constructor(raw: Socket) {
    super();
    this.#raw = raw;
    raw.on('data', (bytes: Buffer) => this.push(bytes));
    raw.once('end', () => this.push(null));
    raw.once('error', (error) => this.destroy(error));
    raw.once('close', () => this.destroy());
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#isHeld) this.#first.push(chunk);
    else this.#raw.write(chunk);
    done();
  }

  override _final(done: () => void): void {
    this.#raw.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#raw.destroy();
    done(error);
  }

  release(): void {
    this.#isHeld = false;
    this.#raw.write(Buffer.concat(this.#first));
    this.#first = [];
  }
}

interface Client {
  readonly held: HeldBack;
  readonly secured: Promise<void>;
}

async function prepare(port: number): Promise<Client> {
  const raw = connectPlain(port, '127.0.0.1');
  await once(raw, 'connect');
  const held = new HeldBack(raw);
  const socket = connect({ socket: held, secureContext, rejectUnauthorized: false, ecdhCurve: CURVE });
  const secured = new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      // It ends politely: a server that meets a reset while it writes counts something else.
      socket.end();
      resolve();
    });
  });
  secured.catch(() => {});
  socket.resume();
  return { held, secured };
}

async function prepareAll(port: number): Promise<Client[]> {
  const clients: Client[] = [];
  while (clients.length < burst) {
    const size = Math.min(CONNECT_AT_ONCE, burst - clients.length);
    clients.push(...(await Promise.all(Array.from({ length: size }, () => prepare(port)))));
  }
  return clients;
}

/** Bursts until it is stopped. @returns milliseconds that each took until its last client was secured. */
function begin(port: number): () => Promise<readonly number[]> {
  const took: number[] = [];
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      const next = delay(everyMs);
      const clients = await prepareAll(port);
      await next;
      const atMs = performance.now();
      for (const { held } of clients) held.release();
      await Promise.all(clients.map(({ secured }) => secured));
      took.push(performance.now() - atMs);
    }
  })();
  return async () => {
    isOver = true;
    await running;
    return took;
  };
}

interface Turn {
  readonly calm: FixedRateResult;
  readonly beside: FixedRateResult;
  readonly tookMs: number;
}

async function takeTurn(arena: Arena, { port }: Entrant): Promise<Turn> {
  const url = `https://127.0.0.1:${port}/small`;
  const task = { cores: loadCores, folder: arena.folder, url, connections: CONNECTIONS, seconds };
  const calm = await runAtRate(task, rate);
  const stop = begin(port);
  const beside = await runAtRate(task, rate);
  return { calm, beside, tookMs: median(await stop()) };
}

await using arena = new Arena();
await arena.startUpstream(loadCores);
const contenders = [
  weir('weir', PACKAGE_ROOT),
  ...(values.before === undefined ? [] : [weir('weir-before', path.resolve(values.before))]),
  ...(nginx.version() === undefined ? [] : [nginx]),
];
const entrants: Entrant[] = [];
for (const contender of contenders) entrants.push(await arena.enter(contender, 'https', proxyCores));
const turns = new Map(entrants.map(({ name }) => [name, [] as Turn[]]));
for (const { port } of entrants) {
  // Code is compiled by the first connections.
  for (const { held, secured } of await prepareAll(port)) {
    held.release();
    await secured;
  }
}
for (let round = 0; round < rounds; round += 1) {
  for (const entrant of round % 2 === 0 ? entrants : entrants.toReversed()) {
    turns.get(entrant.name)!.push(await takeTurn(arena, entrant));
  }
}
const p99 = new Map<string, number>();
for (const [name, own] of turns) {
  const of = (read: (turn: Turn) => number): number => median(own.map(read));
  p99.set(
    name,
    of(({ beside }) => beside.p99Ms),
  );
  console.log(
    `${name}: p50 ${of(({ calm }) => calm.p50Ms).toFixed(2)} and ${of(({ beside }) => beside.p50Ms).toFixed(2)} ms, ` +
      `p99 ${of(({ calm }) => calm.p99Ms).toFixed(2)} and ${p99.get(name)!.toFixed(2)} ms, ` +
      `longest ${of(({ calm }) => calm.maxMs).toFixed(1)} and ${of(({ beside }) => beside.maxMs).toFixed(1)} ms; ` +
      `${burst} handshakes done in ${of(({ tookMs }) => tookMs).toFixed(0)} ms`,
  );
}
if (p99.has('nginx')) {
  const ratio = p99.get('weir')! / p99.get('nginx')!;
  console.log(`p99 ${ratio.toFixed(2)} times that of nginx: bar ${BAR} ${ratio <= BAR ? 'reached' : 'MISSED'}`);
}
