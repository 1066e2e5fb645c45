// The real program as a server of HTTP/2, with prior knowledge and over TLS, and clients of bare frames: what a test asks of one
// way, it asks of the other. `/direct`, `/empty` and `/large` are answered by the proxy; everything else goes to an upstream whose
// answers the test times.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { FrameFlag, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import { clusterNamed, socketAddress } from './bootstrap.ts';
import { CertificateFolder } from './certificates.ts';
import { untilEqual } from './eventually.ts';
import { FrameClient } from './http2-clients.ts';
import { frame, GET, headers } from './http2-session.ts';
import type { ManualClock } from './manual-clock.ts';
import { connectionManager, pair, tlsSocket } from './tls-config.ts';
import { startWeir, type WeirProcess } from './weir-process.ts';
import { WireUpstream } from './wire.ts';

export const WAYS = ['plain', 'tls'] as const;
export type Way = (typeof WAYS)[number];

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
/** From a client's confirmation of a drain to the last stream that is taken, and what a timer may be late by. */
export const DRAIN_GRACE_MS = 100;
export const DRAIN_LATE_MS = 10;
const ANY_PORT = socketAddress('127.0.0.1', 0);

export interface Http2ProgramOptions {
  readonly args?: readonly string[];
  /** Fields of the bootstrap. */
  readonly bootstrap?: object;
  /** Fields of both connection managers. */
  readonly manager?: object;
  /** Fields of both listeners. */
  readonly listener?: object;
  /** Of the upstream, in place of one whose answers are timed. */
  readonly upstreamPort?: number;
  /** Fields of its cluster. */
  readonly cluster?: object;
}

export class Http2Program {
  readonly weir: WeirProcess;
  readonly #t: TestContext;
  readonly #ports: Readonly<Record<Way, number>>;
  readonly #authority: string;
  readonly #upstream: TimedUpstream;

  static async start(t: TestContext, options: Http2ProgramOptions = {}): Promise<Http2Program> {
    const folder = new CertificateFolder();
    t.after(() => folder[Symbol.dispose]());
    const certificate = await folder.make('server', { altNames: 'DNS:a.example' });
    const upstream = await TimedUpstream.start();
    t.after(() => upstream.close());
    const endpoint = { endpoint: { address: socketAddress('127.0.0.1', options.upstreamPort ?? upstream.port) } };
    const load_assignment = { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] };
    const direct = { status: 200, body: { inline_string: 'direct' } };
    const routes = [
      { match: { prefix: '/direct' }, direct_response: direct },
      { match: { prefix: '/empty' }, direct_response: { status: 204 } },
      { match: { prefix: '/large' }, direct_response: { status: 200, body: { inline_string: 'x'.repeat(4096) } } },
      { match: { prefix: '/' }, route: { cluster: 'web', timeout: '0s' } },
    ];
    const manager = connectionManager({
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      ...options.manager,
    });
    const listener = (name: Way, chain: object): object => ({
      name,
      stat_prefix: name,
      address: ANY_PORT,
      filter_chains: [{ filters: [manager], ...chain }],
      ...options.listener,
    });
    const secured = {
      transport_socket: tlsSocket({ tls_certificates: [pair(certificate)], alpn_protocols: ['h2', 'http/1.1'] }),
    };
    const configYaml = JSON.stringify({
      admin: { address: ANY_PORT },
      static_resources: {
        listeners: [listener('plain', {}), listener('tls', secured)],
        clusters: [clusterNamed('web', { load_assignment, ...options.cluster })],
      },
      ...options.bootstrap,
    });
    const weir = await startWeir({ configYaml, args: options.args ?? [] });
    t.after(() => weir.stop('SIGKILL'));
    const ports = await weir.listeners();
    const portOf = (way: Way): number => ports.get(way)!.port;
    return new Http2Program(t, weir, { plain: portOf('plain'), tls: portOf('tls') }, certificate.certificate, upstream);
  }

  private constructor(
    t: TestContext,
    weir: WeirProcess,
    ports: Readonly<Record<Way, number>>,
    authority: string,
    upstream: TimedUpstream,
  ) {
    this.#t = t;
    this.weir = weir;
    this.#ports = ports;
    this.#authority = authority;
    this.#upstream = upstream;
  }

  port(way: Way): number {
    return this.#ports[way];
  }

  /** Bytes of its memory at its fullest. */
  peakBytes(): number {
    const status = readFileSync(`/proc/${this.weir.pid}/status`, 'latin1');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)![1]) * 1024;
  }

  /** Resolves when so many requests wait for their answers at the upstream. */
  async asked(count: number): Promise<void> {
    await untilEqual(count, async () => this.#upstream.waiting, 'requests at the upstream');
  }

  /** Answers all that wait. */
  answer(): void {
    this.#upstream.answer();
  }

  /** @param opening bytes in place of the usual ones. @param protocols that it offers over TLS. */
  async client(way: Way, opening?: Buffer, protocols?: readonly string[]): Promise<FrameClient> {
    return new FrameClient(this.#t, await this.connect(way, protocols), opening);
  }

  /** A connection that is there. @param protocols that it offers over TLS. */
  async connect(way: Way, protocols?: readonly string[]): Promise<Socket> {
    const socket = connect(this.port(way), '127.0.0.1');
    if (way === 'plain') {
      await once(socket, 'connect');
      return socket;
    }
    const secured = this.secure(socket, protocols);
    await once(secured, 'secureConnect');
    return secured;
  }

  /** A client that has read the proxy's settings, and has had an answer on its first stream. */
  async settled(way: Way): Promise<FrameClient> {
    const client = await this.client(way);
    client.acknowledge();
    client.send(get(1, '/direct'));
    await ended(client, 1);
    return client;
  }

  /** Shakes hands over `socket`, for HTTP/2 unless told otherwise. */
  secure(socket: Duplex, protocols: readonly string[] = ['h2']): TLSSocket {
    const options = { ca: this.#authority, servername: 'a.example', ALPNProtocols: [...protocols] };
    const secured = connectTls({ socket, ...options });
    secured.on('error', () => {});
    this.#t.after(() => secured.destroy());
    return secured;
  }

  /** Resolves when nobody gets a connection any more: every worker closes a socket of its own. */
  async untilRefused(way: Way): Promise<void> {
    await untilEqual('ECONNREFUSED', () => connecting(this.port(way)), 'who connects');
  }

  /** @returns status of POST. */
  async order(path: string): Promise<number> {
    const response = await fetch(`${this.weir.adminUrl}${path}`, { method: 'POST' });
    await response.text();
    return response.status;
  }
}

/** Answers requests of HTTP/1.1 when it is told to. */
class TimedUpstream {
  readonly port: number;
  readonly #server: WireUpstream;
  readonly #waiting: Socket[];

  static async start(): Promise<TimedUpstream> {
    const waiting: Socket[] = [];
    const server = await WireUpstream.start((socket) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
          text = text.slice(end + 4);
          waiting.push(socket);
        }
      });
      socket.on('end', () => socket.end());
    });
    return new TimedUpstream(server, waiting);
  }

  private constructor(server: WireUpstream, waiting: Socket[]) {
    this.#server = server;
    this.#waiting = waiting;
    this.port = server.port;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  answer(): void {
    for (const socket of this.#waiting.splice(0)) socket.write(OK);
  }

  async close(): Promise<void> {
    await this.#server.close();
  }
}

/** A request without content. */
export function get(streamId: number, path: string): Buffer {
  return headers(streamId, [...GET.slice(0, 3), [':path', path]]);
}

/** Content of a stream that has ended well; undefined for one that has not. */
export async function ended(client: FrameClient, streamId: number): Promise<string | undefined> {
  const last = await client.find(
    (found) =>
      found.streamId === streamId &&
      (found.type === FrameType.RST_STREAM ||
        ((found.type === FrameType.DATA || found.type === FrameType.HEADERS) &&
          (found.flags & FrameFlag.END_STREAM) !== 0)),
  );
  if (last === undefined || last.type === FrameType.RST_STREAM) return undefined;
  const pieces = client.frames.filter(({ type, streamId: id }) => type === FrameType.DATA && id === streamId);
  return Buffer.concat(pieces.map(({ payload }) => payload)).toString('latin1');
}

/** Last streams of the GOAWAYs that have come, in order. */
export function goaways(client: FrameClient): number[] {
  return client.frames.filter(({ type }) => type === FrameType.GOAWAY).map(({ payload }) => payload.readUInt32BE(0));
}

/** Answers the ping by which the proxy finds out that its first GOAWAY has been read. */
export async function confirmDrain(client: FrameClient): Promise<void> {
  const ping = await client.find(({ type, flags }) => type === FrameType.PING && (flags & FrameFlag.ACK) === 0);
  client.send(frame(FrameType.PING, FrameFlag.ACK, 0, ping!.payload));
}

/** Confirms a drain by a clock of the test, and lets the grace behind that pass. */
export async function drainedBy(clock: ManualClock, client: FrameClient): Promise<void> {
  await confirmDrain(client);
  await readSoFar(client, 'confirms');
  clock.turn(DRAIN_GRACE_MS + DRAIN_LATE_MS);
}

/** Resolves when the proxy has read all that this client has sent so far. */
export async function readSoFar(client: FrameClient, mark: string): Promise<void> {
  client.send(frame(FrameType.PING, 0, 0, Buffer.from(mark.padEnd(8).slice(0, 8))));
  await client.find(
    ({ type, flags, payload }) =>
      type === FrameType.PING &&
      (flags & FrameFlag.ACK) !== 0 &&
      payload.toString('latin1') === mark.padEnd(8).slice(0, 8),
  );
}

/** What becomes of somebody who connects now. */
async function connecting(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  const refused = once(socket, 'error').then(([error]) => (error as NodeJS.ErrnoException).code ?? 'refused');
  const outcome = await Promise.race([once(socket, 'connect').then(() => 'connected'), refused]);
  socket.destroy();
  return outcome;
}

/** A socket that lets only its first bytes through until it is released. */
export class HaltedSocket extends Duplex {
  readonly #socket: Socket;
  readonly #sentBytes: number;
  #written = 0;
  #isReleased = false;
  readonly #waiting: (() => void)[] = [];

  /** @param sentBytes that go through at once. */
  constructor(port: number, sentBytes: number) {
    super();
    this.#socket = connect(port, '127.0.0.1');
    this.#sentBytes = sentBytes;
    this.#socket.on('data', (chunk: Buffer) => this.push(chunk));
    this.#socket.on('end', () => this.push(null));
    this.#socket.on('error', (error) => this.destroy(error));
    this.#socket.on('close', () => this.destroy());
  }

  release(): void {
    this.#isReleased = true;
    for (const send of this.#waiting.splice(0)) send();
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const now = this.#isReleased ? chunk.length : Math.min(chunk.length, this.#sentBytes - this.#written);
    this.#written += now;
    if (now > 0) this.#socket.write(chunk.subarray(0, now));
    const rest = (): void => void this.#socket.write(chunk.subarray(now), done);
    if (now === chunk.length) done();
    else this.#waiting.push(rest);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
