// What an idle keep-alive connection costs in resident memory, and whether memory stays flat under load. The clients
// are in this process: each sends one request, so that the proxy has done all it ever does for a connection.

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Arena } from './arena.ts';
import type { Contender } from './contender.ts';
import { openHttp2 } from './http2-client.ts';
import { runWrk } from './load.ts';
import type { BenchOptions } from './options.ts';
import type { Entrant } from './rounds.ts';

export interface MemoryResult {
  readonly name: string;
  readonly protocol: 'HTTP/1' | 'HTTP/2';
  readonly connections: number;
  readonly idleBytes: number;
  readonly perConnectionBytes: number;
  /** Resident memory after each stretch of load. */
  readonly underLoadBytes: readonly number[];
}

const CONNECTIONS = 10_000;
/** Opened at a time, so that no backlog overflows. */
const BATCH = 100;
const SETTLE_MS = 3000;
const LOAD_STRETCHES = 5;
const LOAD_SECONDS = 4;
export const REQUEST = 'GET /small HTTP/1.1\r\nhost: bench\r\n\r\n';

export async function measureMemory(
  contenders: readonly Contender[],
  options: BenchOptions,
): Promise<readonly MemoryResult[]> {
  const results: MemoryResult[] = [];
  for (const contender of contenders) {
    await using arena = new Arena();
    await arena.startUpstream(options.generatorCores);
    const entrant = await arena.enter(contender, 'http', options.proxyCores);
    const load = (): Promise<unknown> => runLoad(entrant, arena.folder, options.generatorCores);
    // Before any load: afterwards a grown heap would have room for them, and they would seem to cost nothing.
    const idle = await measureIdle(entrant);
    const underLoadBytes: number[] = [];
    for (let stretch = 0; stretch < LOAD_STRETCHES; stretch += 1) {
      await load();
      underLoadBytes.push(entrant.process.residentBytes());
    }
    results.push({ name: contender.name, protocol: 'HTTP/1', ...idle, underLoadBytes });
  }
  return results;
}

/** Of idle connections of HTTP/2 only: bodies and heads are the same under load. */
export async function measureHttp2Memory(
  contenders: readonly Contender[],
  { generatorCores, proxyCores }: BenchOptions,
): Promise<readonly MemoryResult[]> {
  const results: MemoryResult[] = [];
  for (const contender of contenders) {
    await using arena = new Arena();
    await arena.startUpstream(generatorCores);
    const idle = await measureIdle(await arena.enter(contender, 'http2', proxyCores), openHttp2);
    results.push({ name: contender.name, protocol: 'HTTP/2', ...idle, underLoadBytes: [] });
  }
  return results;
}

/** @param open makes a connection that has been answered and stays open. */
export async function measureIdle(
  entrant: Entrant,
  open: (port: number) => Promise<Socket> = openAndAsk,
  connections = CONNECTIONS,
): Promise<Omit<MemoryResult, 'name' | 'protocol' | 'underLoadBytes'>> {
  // Code is loaded and compiled by the first connections, not by each.
  const first = await Promise.all(Array.from({ length: BATCH }, () => open(entrant.port)));
  for (const socket of first) socket.destroy();
  await delay(SETTLE_MS);
  const before = entrant.process.residentBytes();
  const sockets: Socket[] = [];
  while (sockets.length < connections) {
    sockets.push(...(await Promise.all(Array.from({ length: BATCH }, () => open(entrant.port)))));
  }
  await delay(SETTLE_MS);
  const idleBytes = entrant.process.residentBytes();
  for (const socket of sockets) socket.destroy();
  await delay(SETTLE_MS);
  return {
    connections,
    idleBytes,
    perConnectionBytes: Math.max(0, idleBytes - before) / connections,
  };
}

function openAndAsk(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1', () => socket.write(REQUEST));
  return untilAnswered(socket);
}

/** @param socket about to have sent REQUEST. */
export function untilAnswered(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.once('close', () => reject(new Error('a connection was closed instead of answered')));
    socket.once('data', (bytes) => {
      if (bytes.toString('latin1').startsWith('HTTP/1.1 200')) resolve(socket);
      else reject(new Error(`not the answer expected: ${bytes.toString('latin1')}`));
    });
  });
}

function runLoad({ port }: Entrant, folder: string, cores: string): Promise<unknown> {
  const url = `http://127.0.0.1:${port}/small`;
  return runWrk({ cores, folder, url, connections: 64, seconds: LOAD_SECONDS });
}
