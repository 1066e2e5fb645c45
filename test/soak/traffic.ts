// The kinds of traffic. Each runs again and again until the soak is over, checks what it gets against what it asked
// for, and tells the ledger. An answer may fail only while an upstream is gone, or shortly after.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { WeirProcess } from '../support/weir-process.ts';
import { HttpWire, type WireResponse } from './http-wire.ts';
import type { Ledger } from './ledger.ts';
import { PayloadCheck, payload } from './payload.ts';
import type { Upstreams } from './upstreams.ts';

export interface Ground {
  readonly weir: WeirProcess;
  readonly httpPort: number;
  readonly tcpPort: number;
  readonly upstreams: Upstreams;
  readonly ledger: Ledger;
  isOver(): boolean;
}

/** One exchange, or one connection with several. */
type Kind = (ground: Ground) => Promise<void>;

const CONNECTION_REQUESTS = 50;
const MAX_SEED = 2 ** 32;
let lastId = 0;

export const nextId = (): string => `${process.pid}-${++lastId}`;
export const anySeed = (): number => Math.floor(Math.random() * MAX_SEED);
export const below = (limit: number): number => Math.floor(Math.random() * limit);
/** Small ones as often as large ones. */
export const anyLength = (least: number, most: number): number => Math.round(least * (most / least) ** Math.random());

export function head(method: string, target: string, id: string, more = ''): string {
  return `${method} ${target} HTTP/1.1\r\nhost: soak\r\nx-soak-id: ${id}\r\n${more}\r\n`;
}

/** Holds an answer against the request: the right one, an excused failure, or a violation. */
function judge(
  ground: Ground,
  kind: string,
  id: string,
  startMs: number,
  response: WireResponse | null,
  fault = '',
): void {
  const { ledger, upstreams } = ground;
  if (response === null || response.status === 503) {
    const outcome = response === null ? 'cut off' : '503';
    ledger.count(kind, outcome);
    if (!upstreams.wereDisturbedSince(startMs)) {
      ledger.violation(`${kind}: ${outcome} although all upstreams were there: ${response?.head ?? 'no head'}`);
    }
    return;
  }
  ledger.count(kind, String(response.status));
  if (response.status !== 200) ledger.violation(`${kind}: unexpected ${response.head} ${fault}`);
  else if (!response.head.includes(`\r\nx-soak-id: ${id}\r\n`)) {
    ledger.violation(`${kind}: the answer to ${id} is that of another request: ${response.head}`);
  } else if (fault !== '') ledger.violation(`${kind}: ${fault}`);
}

/** Requests one after the other on one connection, as long as it lasts. */
async function onConnection(
  ground: Ground,
  exchange: (wire: HttpWire) => Promise<WireResponse | null>,
  requests = CONNECTION_REQUESTS,
): Promise<void> {
  const wire = new HttpWire(ground.httpPort);
  try {
    for (let count = 0; count < requests && !ground.isOver(); count += 1) {
      const response = await exchange(wire);
      if (response === null || response.isLast) break;
    }
  } finally {
    wire.close();
  }
}

function download(kind: string, route: string, most: number, rest: () => Promise<void> | void = () => {}): Kind {
  return (ground) =>
    onConnection(ground, async (wire) => {
      const [id, seed, length, startMs] = [nextId(), anySeed(), anyLength(100, most), performance.now()];
      const check = new PayloadCheck(seed, length);
      await wire.write(head('GET', `/${route}/${seed}/${length}`, id));
      const response = await wire.response(async (chunk) => {
        // A body of 503 is looked at as well, but its verdict is not asked for.
        check.accept(chunk);
        await rest();
      });
      judge(ground, kind, id, startMs, response, response?.status === 200 ? check.verdict() : '');
      return response;
    });
}

export async function writeBody(wire: HttpWire, seed: number, length: number, isChunked: boolean): Promise<void> {
  for (const piece of payload(seed, length)) {
    if (wire.isOver) return;
    if (!isChunked) await wire.write(piece);
    else {
      await wire.write(`${piece.length.toString(16)}\r\n`);
      await wire.write(piece);
      await wire.write('\r\n');
    }
  }
  if (isChunked) await wire.write('0\r\n\r\n');
}

export function framing(length: number, isChunked: boolean): string {
  return isChunked ? 'transfer-encoding: chunked\r\n' : `content-length: ${length}\r\n`;
}

function upload(kind: string, isEcho: boolean): Kind {
  return (ground) =>
    onConnection(
      ground,
      async (wire) => {
        const [id, seed, length, startMs] = [nextId(), anySeed(), anyLength(100_000, 10_000_000), performance.now()];
        const isChunked = below(2) === 0;
        await wire.write(head('POST', isEcho ? '/echo' : `/sink/${seed}/${length}`, id, framing(length, isChunked)));
        const check = new PayloadCheck(seed, length);
        const answered = wire.response((chunk) => check.accept(chunk));
        await writeBody(wire, seed, length, isChunked);
        const response = await answered;
        const fault = isEcho && response?.status === 200 ? check.verdict() : '';
        judge(ground, kind, id, startMs, response, fault);
        return response;
      },
      5,
    );
}

const burst: Kind = (ground) =>
  onConnection(
    ground,
    async (wire) => {
      const asked = Array.from({ length: 20 }, () => ({ id: nextId(), seed: anySeed(), length: anyLength(10, 5000) }));
      const startMs = performance.now();
      await wire.write(asked.map(({ id, seed, length }) => head('GET', `/get/${seed}/${length}`, id)).join(''));
      let response: WireResponse | null = null;
      for (const { id, seed, length } of asked) {
        const check = new PayloadCheck(seed, length);
        response = await wire.response((chunk) => check.accept(chunk));
        judge(ground, 'pipelined', id, startMs, response, response?.status === 200 ? check.verdict() : '');
        if (response === null || response.isLast) break;
      }
      return response;
    },
    5,
  );

const BROKEN = [
  'GET / HTTP/1.1\r\n\r\n',
  'GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n',
  'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  'GET / HTTP/1.1\r\nhost: a\r\nbroken\r\n\r\n',
  'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n',
  'GET / HTTP/3.0\r\nhost: a\r\n\r\n',
  `GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(70_000)}\r\n\r\n`,
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
];
const REFUSALS = new Set([400, 431, 501, 505]);

/** Refused with one answer, and nothing behind it is served. */
const badRequest: Kind = async (ground) => {
  const wire = new HttpWire(ground.httpPort);
  const request = BROKEN[below(BROKEN.length)]!;
  await wire.write(`${request}${head('GET', '/get/1/10', nextId())}`);
  const response = await wire.response();
  const behind = await wire.rest();
  wire.close();
  ground.ledger.count('bad request', String(response?.status ?? 'cut off'));
  if (!REFUSALS.has(response?.status ?? 0) || behind > 0) {
    ground.ledger.violation(
      `bad request ${JSON.stringify(request.slice(0, 80))}: ${response?.head ?? 'no answer'}, ${behind} bytes behind it`,
    );
  }
};

/** Leaves in one of three ways at any place of its request or of the answer. */
const deserter: Kind = async (ground) => {
  const wire = new HttpWire(ground.httpPort);
  try {
    await leaveAnywhere(wire);
    const way = below(3);
    ground.ledger.count('client leaves', ['by reset', 'by closing', 'by its half'][way]!);
    if (way === 0) wire.socket.resetAndDestroy();
    if (way !== 2) return;
    // The proxy has to end the other half.
    wire.socket.end();
    await wire.rest();
  } finally {
    wire.close();
  }
};

/** So that an answer shorter than expected ends as well. */
const LAST = 'connection: close\r\n';

async function leaveAnywhere(wire: HttpWire): Promise<void> {
  const [seed, length] = [anySeed(), anyLength(1000, 3_000_000)];
  const isUpload = below(2) === 0;
  const start = isUpload
    ? head('POST', '/echo', nextId(), framing(length, true) + LAST)
    : head('GET', `/get/${seed}/${length}`, nextId(), LAST);
  if (below(4) === 0) {
    await wire.write(start.slice(0, below(start.length)));
    return;
  }
  await wire.write(start);
  // Its end in the middle of this is what it is for.
  if (isUpload) void writeBody(wire, seed, length, true).catch(() => {});
  if (below(3) === 0) await delay(below(20));
  else await readUpTo(wire, below(length));
}

async function readUpTo(wire: HttpWire, enough: number): Promise<void> {
  for (let bytes = 0; bytes < enough; ) {
    const chunk = await wire.chunk();
    if (chunk === null) return;
    bytes += chunk.length;
  }
}

/** The upstream leaves instead: 503 before its answer has begun, a cut within. */
const abandoned: Kind = async (ground) => {
  const stage = below(2) === 0 ? 'head' : 'body';
  const wire = new HttpWire(ground.httpPort);
  const startMs = performance.now();
  await wire.write(head('GET', `/reset/${stage}`, nextId()));
  const response = await wire.response();
  wire.close();
  ground.ledger.count(`upstream resets ${stage}`, String(response?.status ?? 'cut off'));
  const isRight = stage === 'head' ? response?.status === 503 : response === null;
  if (!isRight && !ground.upstreams.wereDisturbedSince(startMs)) {
    ground.ledger.violation(`upstream resets ${stage}: ${response?.head ?? 'cut off'}`);
  }
};

/** A body there and back through the TCP proxy; one in four is left in the middle. */
const tunnel: Kind = async (ground) => {
  const socket = connect({ port: ground.tcpPort, host: '127.0.0.1', allowHalfOpen: true });
  const [seed, length, startMs] = [anySeed(), anyLength(100, 5_000_000), performance.now()];
  const leavesAt = below(4) === 0 ? below(length) : length;
  const check = new PayloadCheck(seed, length);
  let sent = 0;
  let isOver = false;
  socket
    .on('error', () => {})
    .on('close', () => {
      isOver = true;
    });
  const send = async (): Promise<void> => {
    for (const piece of payload(seed, length)) {
      if (isOver || sent >= leavesAt) break;
      sent += piece.length;
      if (!socket.write(piece)) await new Promise<void>((go) => socket.once('drain', go).once('close', go));
    }
    if (leavesAt < length) socket.resetAndDestroy();
    else socket.end();
  };
  const receive = async (): Promise<void> => {
    try {
      for await (const chunk of socket) check.accept(chunk as Buffer);
    } catch {
      // A reset; what has come before it does not count.
    }
  };
  await Promise.all([send(), receive()]);
  if (leavesAt < length) {
    ground.ledger.count('tcp', 'left');
    return;
  }
  const verdict = check.verdict();
  ground.ledger.count('tcp', verdict === '' ? 'whole' : 'cut off');
  const isWrong = verdict.startsWith('wrong') || (verdict !== '' && !ground.upstreams.wereDisturbedSince(startMs));
  if (isWrong) ground.ledger.violation(`tcp: ${verdict}`);
};

/** An upgraded connection with a body there and back; one in four is left in the middle. */
const upgraded: Kind = async (ground) => {
  const wire = new HttpWire(ground.httpPort);
  try {
    const [id, seed, length, startMs] = [nextId(), anySeed(), anyLength(100, 3_000_000), performance.now()];
    await wire.write(head('GET', '/upgrade', id, 'connection: upgrade\r\nupgrade: websocket\r\n'));
    const response = await wire.response();
    if (response?.status !== 101) {
      judge(ground, 'upgrade', id, startMs, response, 'not upgraded');
      return;
    }
    const check = new PayloadCheck(seed, length);
    const isLeft = below(4) === 0;
    const sent = writeBody(wire, seed, length, false).then(() => wire.socket.end());
    for (let chunk = await wire.chunk(); chunk !== null; chunk = await wire.chunk()) {
      check.accept(chunk);
      if (isLeft && below(3) === 0) break;
    }
    if (isLeft) {
      ground.ledger.count('upgrade', 'left');
      // Its end in the middle of this is what it is for.
      void sent.catch(() => {});
      return;
    }
    await sent;
    const verdict = response.head.includes(`\r\nx-soak-id: ${id}\r\n`) ? check.verdict() : 'wrong answer';
    ground.ledger.count('upgrade', verdict === '' ? 'whole' : 'cut off');
    const isWrong = verdict.startsWith('wrong') || (verdict !== '' && !ground.upstreams.wereDisturbedSince(startMs));
    if (isWrong) ground.ledger.violation(`upgrade: ${verdict}`);
  } finally {
    wire.close();
  }
};

/** Connects, asks once and stays, so that many connections are open at any time. */
const lingering: Kind = async (ground) => {
  await onConnection(
    ground,
    async (wire) => {
      const [id, startMs] = [nextId(), performance.now()];
      await wire.write(head('GET', '/get/1/10', id));
      const response = await wire.response();
      judge(ground, 'lingering', id, startMs, response);
      for (let turns = 0; turns < 50 && !ground.isOver(); turns += 1) await delay(100);
      return response;
    },
    1,
  );
};

interface KindRow {
  readonly name: string;
  readonly kind: Kind;
  /** How many do it at once. */
  readonly actors: number;
  readonly pauseMs: number;
}

const row = (name: string, actors: number, pauseMs: number, kind: Kind): KindRow => ({ name, kind, actors, pauseMs });

const KINDS: readonly KindRow[] = [
  row('get', 8, 0, download('get', 'get', 20_000)),
  row('chunked get', 2, 0, download('chunked get', 'chunked', 50_000)),
  row('large get', 1, 5, download('large get', 'get', 10_000_000)),
  row(
    'slow reader',
    2,
    0,
    download('slow reader', 'get', 1_000_000, () => delay(5)),
  ),
  row(
    'slow chunked reader',
    2,
    0,
    download('slow chunked reader', 'chunked', 1_000_000, () => delay(5)),
  ),
  row('upload', 2, 5, upload('upload', false)),
  row('echo', 1, 5, upload('echo', true)),
  row('pipelined', 2, 5, burst),
  row('bad request', 1, 10, badRequest),
  row('deserter', 4, 5, deserter),
  row('abandoned', 1, 20, abandoned),
  row('tunnel', 3, 5, tunnel),
  row('upgraded', 2, 5, upgraded),
  row('lingering', 20, 50, lingering),
];

/** Runs all of it until the soak is over; resolves when the last connection is closed. */
export async function runTraffic(ground: Ground): Promise<void> {
  const actors = KINDS.flatMap(({ name, kind, actors: count, pauseMs }) =>
    Array.from({ length: count }, async () => {
      while (!ground.isOver()) {
        try {
          await kind(ground);
        } catch (error) {
          ground.ledger.violation(`${name}: ${error}`);
        }
        await delay(pauseMs);
      }
    }),
  );
  await Promise.all(actors);
}
