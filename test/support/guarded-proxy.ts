// A proxy that asks an authorization service about its requests, and the service of HTTP that tests put there.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { JsonObject } from './bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from './embedded.ts';
import { filteredListener, filterOf, routeTo } from './embedded-filters.ts';
import { WireClient, WireUpstream } from './wire.ts';

export const EXT_AUTHZ = 'ext_authz.v3.ExtAuthz';
export const HTTP2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};
/** Logs what no client sees. */
export const REPLIES = {
  local_reply_config: {
    body_format: { text_format: '%LOCAL_REPLY_BODY%|%RESPONSE_FLAGS%|%RESPONSE_CODE_DETAILS%' },
  },
};
export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-from: web\r\n\r\nok';

export type Proxy = Awaited<ReturnType<typeof createProxy>>;

export interface Bench {
  readonly proxy: Proxy;
  readonly client: WireClient;
  readonly upstream: WireUpstream & { heads: string[] };
}

/** A proxy whose requests are asked about at `guard`. */
export async function guarded(
  guardPort: number,
  fields: JsonObject,
  {
    routes = [routeTo('/')],
    manager = {},
    guard = {},
    bootstrap = {},
  }: {
    routes?: readonly JsonObject[];
    manager?: JsonObject;
    guard?: JsonObject;
    bootstrap?: JsonObject;
  } = {},
): Promise<Bench> {
  const upstream = await WireUpstream.answering(OK);
  const listener = filteredListener([filterOf(EXT_AUTHZ, fields)], routes, {
    manager: { ...REPLIES, use_remote_address: true, ...manager },
  });
  const clusters = [clusterAt('web', upstream.port), clusterAt('guard', guardPort, guard)];
  const proxy = await createProxy(bootstrapOf([listener], clusters, { stats_flush_on_admin: true, ...bootstrap }));
  return { proxy, client: new WireClient(proxy.listeners.get('main')!.port), upstream };
}

export async function close({ proxy, client, upstream }: Bench): Promise<void> {
  client.close();
  await proxy.close();
  await upstream.close();
}

export function request(lines: readonly string[] = [], target = '/a?b=c', body = '', method = 'GET'): string {
  const length = body === '' && method === 'GET' ? [] : [`content-length: ${body.length}`];
  return `${[`${method} ${target} HTTP/1.1`, 'host: shop.test', ...lines, ...length].join('\r\n')}\r\n\r\n${body}`;
}

export function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

export function valuesOf(head: string, name: string): string[] {
  const lines = head.split('\r\n').filter((line) => line.toLowerCase().startsWith(`${name}:`));
  return lines.map((line) => line.slice(name.length + 1).trim());
}

/** Those that are not 0. */
export async function counts(proxy: Proxy, scope = 'http.main.ext_authz.'): Promise<Record<string, number>> {
  const entries = Object.entries(await proxy.stats.counters(scope));
  return Object.fromEntries(entries.filter(([, n]) => n > 0).map(([name, n]) => [name.slice(scope.length), n]));
}

interface Told {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An authorization service of HTTP. */
export class Guard {
  port = 0;
  readonly told: Told[] = [];
  answer: (response: ServerResponse) => void = (response) => response.end();
  readonly #server: Server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming;
      this.told.push({ method, url, headers, body: Buffer.concat(parts).toString() });
      this.answer(response);
    });
  });

  async start(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  get last(): Told {
    return this.told.at(-1)!;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

export const HTTP_SERVICE = { server_uri: { uri: 'http://guard', cluster: 'guard', timeout: '5s' } };
export const list = (...names: readonly string[]): JsonObject => ({ patterns: names.map((exact) => ({ exact })) });

export async function benchFor(t: TestContext, ...args: Parameters<typeof guarded>): Promise<Bench> {
  const bench = await guarded(...args);
  t.after(() => close(bench));
  return bench;
}

export async function guardFor(t: TestContext): Promise<Guard> {
  const guard = await new Guard().start();
  t.after(() => guard.close());
  return guard;
}
