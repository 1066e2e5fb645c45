// One HTTP connection manager as a configuration describes it, with clients that ask it the same over HTTP/1.1 and HTTP/2,
// and an upstream that keeps what reaches it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Stream, connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { LoadBootstrapInput } from '../../src/config/index.ts';
import type { HttpConnectionManagerSettings, ListenerSettings } from '../../src/snapshot/index.ts';
import { httpFilter, type JsonObject, listenerWith, mustLoad, withListeners } from './bootstrap.ts';
import { type ClusterOverrides, DataPlaneFixture, type FixtureOptions, loopback } from './data-plane.ts';
import { filterChain } from './listeners.ts';
import { WireClient, WireUpstream } from './wire.ts';

export const PROTOCOLS = ['HTTP/1.1', 'HTTP/2'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface Question {
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** Bytes before the protocol itself. */
  readonly before?: string;
  /** Sent with a body of one byte. */
  readonly trailers?: readonly (readonly [name: string, value: string])[];
}

export interface Reply {
  /** 0 when the stream was reset. */
  readonly status: number;
  /** By lower-case names; those of one name are joined. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ManagerBench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  /** Head by head, as they came. */
  readonly heads: string[];
  ask(protocol: Protocol, question?: Question): Promise<Reply>;
  /** The one head that has reached the upstream since it was last asked for. */
  head(): string;
}

interface BenchOptions extends FixtureOptions {
  readonly answer?: string;
  readonly cluster?: ClusterOverrides;
  /** Of its listener. */
  readonly listener?: Partial<ListenerSettings>;
  /** What the bootstrap is read with. */
  readonly load?: Partial<LoadBootstrapInput>;
}

const ROUTES = {
  virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] }],
};
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** The settings of a connection manager of this configuration. */
export function managerOf(fields: JsonObject, load: Partial<LoadBootstrapInput> = {}): HttpConnectionManagerSettings {
  const listener = listenerWith([httpFilter({ route_config: ROUTES, ...fields })]);
  const { filter } = mustLoad(withListeners(listener), load).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter;
}

/** Its routes lead to the cluster `web`, unless the configuration has others. It ends with the test. */
export async function managerBench(
  t: TestContext,
  fields: JsonObject,
  options: BenchOptions = {},
): Promise<ManagerBench> {
  const upstream = await WireUpstream.answering(options.answer ?? OK);
  const proxy = new DataPlaneFixture(options);
  proxy.cluster('web', [loopback(upstream.port)], options.cluster);
  const chain = filterChain(managerOf(fields, options.load));
  const addresses = [loopback(0)] as const;
  const [port = 0] = await proxy.listenWith({ addresses, filterChains: [chain], ...options.listener });
  t.after(async () => {
    await proxy.close();
    await upstream.close();
  });
  const { heads } = upstream;
  return {
    proxy,
    port,
    heads,
    ask: (protocol, question = {}) => (protocol === 'HTTP/2' ? askHttp2(port, question) : askHttp1(port, question)),
    head: () => {
      const taken = heads.splice(0);
      assert.equal(taken.length, 1, `${taken.length} requests have come`);
      return taken[0]!;
    },
  };
}

/** Values of a field of a head, in order. */
export function valuesOf(head: string, name: string): string[] {
  const lines = head.split('\r\n').filter((line) => line.toLowerCase().startsWith(`${name}:`));
  return lines.map((line) => line.slice(name.length + 1).trim());
}

async function askHttp1(port: number, question: Question): Promise<Reply> {
  const { method = 'GET', path = '/', host = 'h', headers = [], trailers, before = '' } = question;
  const client = new WireClient(port);
  const lines = [`${method} ${path} HTTP/1.1`, `host: ${host}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (trailers !== undefined) lines.push('transfer-encoding: chunked');
  const end = trailers?.map(([name, value]) => `${name}: ${value}\r\n`).join('') ?? '';
  client.write(`${before}${lines.join('\r\n')}\r\n\r\n${trailers === undefined ? '' : `1\r\na\r\n0\r\n${end}\r\n`}`);
  const { head, body, status } = await client.response();
  client.close();
  const fields: Record<string, string> = {};
  for (const line of head.split('\r\n').slice(1, -2)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    fields[name] = fields[name] === undefined ? value : `${fields[name]}, ${value}`;
  }
  return { status, headers: fields, body };
}

async function askHttp2(port: number, question: Question): Promise<Reply> {
  const { method = 'GET', path = '/', host = 'h', headers = [], trailers, before = '' } = question;
  const socket = connectSocket(port, '127.0.0.1');
  socket.write(before);
  const session = connect(`http://127.0.0.1:${port}`, { createConnection: () => socket });
  session.on('error', () => {});
  const fields: Record<string, string | string[]> = { ':method': method, ':path': path, ':authority': host };
  for (const [name, value] of headers) fields[name] = [...[fields[name] ?? []].flat(), value];
  const stream = session.request(fields, {
    endStream: trailers === undefined,
    waitForTrailers: trailers !== undefined,
  });
  if (trailers !== undefined) {
    stream.on('wantTrailers', () => stream.sendTrailers(Object.fromEntries(trailers)));
    stream.end('a');
  }
  try {
    return await replyOf(stream);
  } finally {
    session.destroy();
  }
}

async function replyOf(stream: ClientHttp2Stream): Promise<Reply> {
  const answered = once(stream, 'response').then(async ([fields]) => {
    const { ':status': status, ...headers } = fields as Record<string, string>;
    return { status: Number(status), headers, body: await text(stream) };
  });
  return await answered.catch(() => ({ status: 0, headers: {}, body: '' }));
}
