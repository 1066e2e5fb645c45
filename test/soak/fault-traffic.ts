// What clients do during the fault run. An answer may fail, since faults are what the run is about; it may not be wrong,
// belong to another request, or stay away for ever.

import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { HttpWire } from './http-wire.ts';
import type { Ledger } from './ledger.ts';
import { PayloadCheck, payload } from './payload.ts';
import { anyLength, anySeed, below, framing, head, nextId, writeBody } from './traffic.ts';

export interface FaultGround {
  readonly httpPort: number;
  readonly tcpPort: number;
  readonly adminUrl: string;
  readonly ledger: Ledger;
  /** Clients that stay idle, more than there are descriptors. */
  readonly crowd: number;
  isOver(): boolean;
}

type Kind = (ground: FaultGround) => Promise<void>;

/** What the proxy may say by itself while it is short of something, or an upstream stalls. */
const EXCUSES = new Set([408, 503, 504]);
const CROWD_STAYS_MS = 400;
const ADMIN_LIMIT_MS = 60_000;

function judge({ ledger }: FaultGround, kind: string, id: string, answer: string | null, fault: string): void {
  const status = answer === null ? 'cut off' : answer.slice(9, 12);
  ledger.count(kind, status);
  if (answer === null || EXCUSES.has(Number(status))) return;
  if (status !== '200') ledger.violation(`${kind}: unexpected ${answer}`);
  else if (!answer.includes(`\r\nx-soak-id: ${id}\r\n`))
    ledger.violation(`${kind}: not the answer to ${id}: ${answer}`);
  else if (fault !== '') ledger.violation(`${kind}: ${fault}`);
}

/** Asks the upstream that works, again and again on one connection. */
const steady: Kind = async (ground) => {
  const wire = new HttpWire(ground.httpPort);
  try {
    for (let count = 0; count < 20 && !ground.isOver(); count += 1) {
      const [id, seed, length] = [nextId(), anySeed(), anyLength(100, 50_000)];
      const check = new PayloadCheck(seed, length);
      await wire.write(head('GET', `/get/${seed}/${length}`, id));
      const response = await wire.response((chunk) => check.accept(chunk));
      judge(ground, 'steady', id, response?.head ?? null, response?.status === 200 ? check.verdict() : '');
      if (response === null || response.isLast) return;
    }
  } finally {
    wire.close();
  }
};

/** Asks the upstream that stalls, and leaves at any moment: its reading may be paused then. */
const vanishing: Kind = async (ground) => {
  const wire = new HttpWire(ground.httpPort);
  const isPipelined = below(2) === 0;
  const length = anyLength(1000, 2_000_000);
  const isChunked = below(2) === 0;
  try {
    if (isPipelined) await wire.write(head('GET', '/stall', nextId()) + head('GET', '/get/1/10', nextId()).repeat(50));
    else {
      await wire.write(head('POST', '/stall', nextId(), framing(length, isChunked)));
      // Its end in the middle of this is what it is for.
      void writeBody(wire, anySeed(), length, isChunked).catch(() => {});
    }
    await delay(below(100));
    const byReset = below(2) === 0;
    ground.ledger.count('vanishing', byReset ? 'by reset' : 'by closing');
    if (byReset) wire.socket.resetAndDestroy();
  } finally {
    wire.close();
  }
};

/** Waits for what comes of a stalling upstream: a timeout, or whatever it had to say. */
const patient: Kind = async (ground) => {
  const wire = new HttpWire(ground.httpPort);
  try {
    await wire.write(head('GET', '/stall', nextId()));
    const response = await wire.response();
    ground.ledger.count('patient', response === null ? 'cut off' : String(response.status));
    if (response !== null && ![413, 503, 504].includes(response.status)) {
      ground.ledger.violation(`patient: unexpected ${response.head}`);
    }
  } finally {
    wire.close();
  }
};

/** A body there and back through the TCP proxy, left by a reset in one case of three. */
const tunnel: Kind = async (ground) => {
  const socket = connect({ port: ground.tcpPort, host: '127.0.0.1', allowHalfOpen: true });
  const [seed, length] = [anySeed(), anyLength(100, 1_000_000)];
  const check = new PayloadCheck(seed, length);
  const isLeft = below(3) === 0;
  socket.on('error', () => {});
  for (const piece of payload(seed, length)) socket.write(piece);
  if (isLeft) {
    await delay(below(20));
    socket.resetAndDestroy();
  } else socket.end();
  try {
    for await (const chunk of socket) check.accept(chunk as Buffer);
  } catch {
    // A reset; what has come before it is judged.
  }
  const verdict = isLeft ? 'left' : check.verdict();
  ground.ledger.count('tcp', isLeft ? 'left' : verdict === '' ? 'whole' : 'cut off');
  if (verdict.startsWith('wrong')) ground.ledger.violation(`tcp: ${verdict}`);
};

/** More idle clients than descriptors; they leave together, half of them by a reset. */
const crowd: Kind = async (ground) => {
  const sockets: Socket[] = [];
  for (let count = 0; count < ground.crowd && !ground.isOver(); count += 1) {
    sockets.push(connect(ground.httpPort, '127.0.0.1').on('error', () => {}));
  }
  await delay(CROWD_STAYS_MS);
  ground.ledger.count('crowd', 'came and left');
  for (const [index, socket] of sockets.entries()) {
    if (index % 2 === 0) socket.resetAndDestroy();
    else socket.destroy();
  }
};

const ADMIN_REQUESTS = [
  ['GET', '/stats'],
  ['GET', '/clusters'],
  ['GET', '/ready'],
  ['POST', '/reopen_logs'],
  ['POST', '/healthcheck/ok'],
] as const;

/** The admin interface answers whatever happens, on a new connection each time. */
const admin: Kind = async (ground) => {
  const [method, target] = ADMIN_REQUESTS[below(ADMIN_REQUESTS.length)]!;
  const outcome = await adminStatus(ground.adminUrl + target, method);
  ground.ledger.count('admin', outcome);
  if (outcome !== '200') ground.ledger.violation(`admin: ${method} ${target} answered ${outcome}`);
};

/** @returns the status, or what went wrong. */
export function adminStatus(url: string, method: string): Promise<string> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(ADMIN_LIMIT_MS);
    request(url, { method, agent: false, signal }, (response) => {
      response.resume().on('end', () => resolve(String(response.statusCode)));
    })
      .on('error', (error) => resolve(error.message))
      .end();
  });
}

const KINDS: readonly (readonly [kind: Kind, actors: number, pauseMs: number])[] = [
  [steady, 4, 5],
  [vanishing, 6, 5],
  [patient, 4, 5],
  [tunnel, 3, 10],
  [crowd, 1, 300],
  [admin, 1, 50],
];

/** Runs all of it until it is over; resolves when every client has left. */
export async function runFaultTraffic(ground: FaultGround): Promise<void> {
  const actors = KINDS.flatMap(([kind, count, pauseMs]) =>
    Array.from({ length: count }, async () => {
      while (!ground.isOver()) {
        try {
          await kind(ground);
        } catch (error) {
          ground.ledger.violation(`${kind.name}: ${error}`);
        }
        await delay(pauseMs);
      }
    }),
  );
  await Promise.all(actors);
}

/** When all faults are over, every request is answered again. */
export async function askInPeace(ground: FaultGround, requests: number): Promise<void> {
  for (let count = 0; count < requests; count += 1) {
    const wire = new HttpWire(ground.httpPort);
    const id = nextId();
    await wire.write(head('GET', '/get/1/1000', id));
    const response = await wire.response();
    wire.close();
    ground.ledger.count('in peace', response === null ? 'cut off' : String(response.status));
    if (response?.status !== 200) ground.ledger.violation(`in peace: ${response?.head ?? 'cut off'}`);
  }
}
