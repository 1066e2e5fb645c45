// request_mirror_policies as configurations have them: at which level they stand, whom they name and what their copies say.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { WireClient } from '../support/wire.ts';

type Copy = readonly [cluster: string, host: string, body: string];

interface Case {
  readonly name: string;
  /** Policies of each level. */
  readonly table?: readonly JsonObject[];
  readonly host?: readonly JsonObject[];
  readonly route?: readonly JsonObject[];
  readonly action?: JsonObject;
  readonly runtime?: JsonObject;
  /** Further lines of the request. */
  readonly lines?: readonly string[];
  readonly body?: string;
  readonly copies: readonly Copy[];
}

const TRAILERS: JsonObject = { http_protocol_options: { enable_trailers: true } };
const SHADOW = 'web.test-shadow:80';
const ONE: Copy = ['one', SHADOW, ''];
const TWO: Copy = ['two', SHADOW, ''];
const to = (cluster: string, fields: JsonObject = {}): JsonObject => ({ cluster, ...fields });
const share = (numerator: number, fields: JsonObject = {}): JsonObject => ({
  runtime_fraction: { default_value: { numerator, denominator: 'HUNDRED' }, ...fields },
});

const CASES: readonly Case[] = [
  { name: 'of a route', route: [to('one')], copies: [ONE] },
  { name: 'of a virtual host', host: [to('one')], copies: [ONE] },
  { name: 'of a table', table: [to('one')], copies: [ONE] },
  { name: 'of a route, in place of those around it', route: [to('one')], host: [to('two')], copies: [ONE] },
  { name: 'of a virtual host, in place of those of its table', host: [to('one')], table: [to('two')], copies: [ONE] },
  { name: 'of several, each for itself', route: [to('one'), to('two'), to('one')], copies: [ONE, ONE, TWO] },
  { name: 'that a header names', route: [{ cluster_header: 'x-to' }], lines: ['x-to: two'], copies: [TWO] },
  { name: 'that a header names, when it is not there', route: [{ cluster_header: 'x-to' }], copies: [] },
  {
    name: 'that a header names, of a cluster that is not',
    route: [{ cluster_header: 'x-to' }],
    lines: ['x-to: no'],
    copies: [],
  },
  { name: 'of no share', route: [to('one', share(0)), to('two', share(100))], copies: [TWO] },
  {
    name: 'of a share that the runtime says',
    route: [to('one', share(0, { runtime_key: 'some.share' }))],
    runtime: { some: { share: 100 } },
    copies: [ONE],
  },
  {
    name: 'without the mark in the host',
    route: [to('one', { disable_shadow_host_suffix_append: true })],
    copies: [['one', 'web.test:80', '']],
  },
  {
    name: 'of the older field',
    action: { request_mirror_policy: { cluster: 'one' } },
    copies: [ONE],
  },
  {
    name: 'of what has been rewritten',
    route: [to('one')],
    action: { host_rewrite_literal: 'other.test' },
    copies: [['one', 'other.test-shadow', '']],
  },
  {
    name: 'of a body',
    route: [to('one')],
    lines: ['content-length: 3'],
    body: 'abc',
    copies: [['one', SHADOW, 'abc']],
  },
  {
    name: 'of a body in chunks, with trailers',
    route: [to('one')],
    lines: ['transfer-encoding: chunked', 'trailer: x-sum'],
    body: '3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n',
    copies: [['one', SHADOW, 'abc x-sum 6']],
  },
  {
    name: 'that asks for another protocol, which is none',
    route: [to('one')],
    action: { upgrade_configs: [{ upgrade_type: 'websocket' }] },
    lines: ['connection: upgrade', 'upgrade: websocket'],
    copies: [],
  },
];

describe('a copy of a request', () => {
  const servers: Server[] = [];
  const copies: Copy[] = [];

  async function listen(onRequest: (request: IncomingMessage, body: string) => void): Promise<number> {
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      onRequest(request, [body, ...request.rawTrailers].join(' '));
      response.setHeader('content-length', 0).end();
    });
    server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  let ports: { readonly web: number; readonly one: number; readonly two: number };

  before(async () => {
    const note =
      (cluster: string) =>
      ({ headers }: IncomingMessage, body: string): void => {
        copies.push([cluster, headers.host!, body]);
      };
    ports = { web: await listen(() => {}), one: await listen(note('one')), two: await listen(note('two')) };
  });

  after(() => {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  });

  for (const { name, table, host, route, action, runtime, lines = [], body = '', copies: expected } of CASES) {
    it(name, async (t) => {
      copies.length = 0;
      const of = (policies: readonly JsonObject[] | undefined): JsonObject =>
        policies === undefined ? {} : { request_mirror_policies: policies };
      const routes = [routeTo('/', {}, { route: { cluster: 'web', ...of(route), ...action } })];
      const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes, ...of(host) }], ...of(table) };
      const listener = filteredListener([], [], { manager: { route_config, ...TRAILERS } });
      const layers = [{ name: 'base', static_layer: runtime ?? {} }];
      const clusters = Object.entries(ports).map(([cluster, port]) => clusterAt(cluster, port, TRAILERS));
      const proxy = await createProxy(bootstrapOf([listener], clusters, { layered_runtime: { layers } }));
      t.after(() => proxy.close());
      const client = new WireClient(proxy.listeners.get('main')!.port);
      t.after(() => client.close());
      const head = ['POST / HTTP/1.1', 'host: web.test:80', ...lines];
      const { status } = await client.write(`${head.join('\r\n')}\r\n\r\n${body}`).response();
      assert.equal(status, 200);
      // A copy has its place at a host by then, or there is none.
      const sent = (cluster: string): number => proxy.stats.value(`cluster.${cluster}.upstream_cx_total`) ?? 0;
      assert.equal(sent('one') + sent('two') > 0, expected.length > 0);
      await untilEqual(JSON.stringify(expected), () => JSON.stringify(copies.toSorted()), 'what has been copied');
      await untilEqual(expected.length, () => completed(proxy.stats), 'the count of copies');
    });
  }
});

function completed(stats: { value(name: string): number | undefined }): number {
  return ['one', 'two'].reduce((sum, name) => sum + (stats.value(`cluster.${name}.upstream_rq_completed`) ?? 0), 0);
}
