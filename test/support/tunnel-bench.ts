// A data plane in front of one upstream, with an access log; made for tests of upgrades and of CONNECT.

import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import type { HttpConnectionManagerSettings, RouteSnapshot, UpgradeSettings } from '../../src/snapshot/index.ts';
import { type ClusterOverrides, DataPlaneFixture, type FixtureOptions, loopback, routeTo } from './data-plane.ts';
import { eventually } from './eventually.ts';
import { ManualClock } from './manual-clock.ts';
import { WireClient } from './wire.ts';

export const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n';
export const UPGRADE =
  'GET /chat HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n';

export function upgrade(type: string, fields: Partial<UpgradeSettings> = {}): UpgradeSettings {
  return { type, isEnabled: true, httpFilters: null, ...fields };
}

interface TunnelOptions extends FixtureOptions {
  readonly upstreamPort: number;
  readonly routes?: readonly RouteSnapshot[];
  readonly settings?: Partial<HttpConnectionManagerSettings>;
  readonly cluster?: ClusterOverrides;
  /** Of the log. */
  readonly format?: string;
}

/** Goes through the kernel's buffers in one read. */
const FILL_PIECE_BYTES = 32 * 1024;
const FLOOD_PIECE_BYTES = 256 * 1024;
const FORMAT = '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_RECEIVED% %BYTES_SENT%\n';

export interface TunnelBench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  client(): WireClient;
  /**
   * Ends the data plane, and reads what its log says: by default status, flags, details, bytes of the client, bytes
   * to it.
   */
  entries(): Promise<string[]>;
}

/** Everything goes to the cluster `web`, and WebSocket is enabled, unless said otherwise. */
export async function tunnelBench(t: TestContext, options: TunnelOptions): Promise<TunnelBench> {
  const { upstreamPort, routes = [routeTo('web')], settings, cluster, format = FORMAT, ...fixture } = options;
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-tunnel-'));
  const log = path.join(folder, 'access.log');
  const content = { kind: 'text', segments: parseFormat(format).segments! } as const;
  const proxy = new DataPlaneFixture(fixture);
  proxy.cluster('web', [loopback(upstreamPort)], cluster);
  const port = await proxy.http(routes, {
    upgrades: [upgrade('websocket')],
    accessLogs: [
      { destination: { kind: 'file', path: log }, format: { content, omitEmptyValues: false }, filter: null },
    ],
    ...settings,
  });
  // A clock that a test turns may end the log before it is there: it would come into the folder that is being removed.
  await eventually(() => existsSync(log), 'the log file');
  const clients: WireClient[] = [];
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    for (const client of clients) client.close();
    closing ??= proxy.close();
    // What a shutdown waits for comes by the same clock.
    if (fixture.clock instanceof ManualClock) fixture.clock.turn(1000);
    return closing;
  };
  t.after(async () => {
    await close();
    rmSync(folder, { recursive: true });
  });
  return {
    proxy,
    port,
    client: () => {
      const client = new WireClient(port);
      clients.push(client);
      return client;
    },
    entries: async () => {
      await close();
      return readFileSync(log, 'latin1').split('\n').filter(Boolean);
    },
  };
}

/** Sends random bytes until a condition holds, which some queue on the way fills up to. @returns their digest. */
export async function flood(
  send: (bytes: Buffer) => void,
  isFull: () => boolean,
): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  while (!isFull()) {
    const piece = randomBytes(FLOOD_PIECE_BYTES);
    hash.update(piece);
    bytes += piece.length;
    send(piece);
    await new Promise(setImmediate);
  }
  return { sha256: hash.digest('hex'), bytes };
}

/**
 * Sends piece by piece, each when the one before it has been read, until what was read cannot go on.
 * @param received bytes that were read so far.
 * @returns bytes that were sent; nothing of them waits in front of the reader.
 */
export async function fill(
  send: (bytes: Buffer) => void,
  received: () => number,
  isFull: () => boolean,
): Promise<number> {
  const before = received();
  let bytes = 0;
  while (!isFull()) {
    send(Buffer.alloc(FILL_PIECE_BYTES, 'x'));
    bytes += FILL_PIECE_BYTES;
    await eventually(() => received() === before + bytes, 'a piece');
  }
  return bytes;
}

/** The digest of the next so many bytes of a socket. */
export async function digest(socket: Socket, bytes: number): Promise<string> {
  const hash = createHash('sha256');
  const done = Promise.withResolvers<void>();
  let left = bytes;
  const onData = (chunk: Buffer): void => {
    hash.update(chunk);
    left -= chunk.length;
    if (left <= 0) done.resolve();
  };
  socket.on('data', onData).resume();
  await done.promise;
  socket.off('data', onData);
  return hash.digest('hex');
}
