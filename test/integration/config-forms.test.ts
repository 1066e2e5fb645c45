// One front proxy, written in every form and in both generations of the configuration: each is run as a program of
// its own and must answer the same requests in the same way.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { dump } from 'js-yaml';
import textFormat from 'protobufjs/ext/textformat.js';
import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { readText } from '../support/config/read.ts';
import { type EchoUpstream, startEchoUpstream } from '../support/echo-upstream.ts';
import { startWeir } from '../support/weir-process.ts';

/** With a fraction, to see that read; else beyond what a crowded machine takes, so that no time runs out. */
const TIMEOUT = '90.25s';
const ANY = 'type.googleapis.com/envoy.extensions.filters';

function virtualHosts(rewriteField: string): JsonObject[] {
  return [
    {
      name: 'shop',
      domains: ['shop.test', '*.shop.test'],
      routes: [
        { match: { prefix: '/api/' }, route: { cluster: 'api', prefix_rewrite: '/', timeout: TIMEOUT } },
        { match: { path: '/exact' }, route: { cluster: 'api', [rewriteField]: 'api.internal' } },
      ],
    },
    { name: 'rest', domains: ['*'], routes: [{ match: { prefix: '/web' }, route: { cluster: 'web' } }] },
  ];
}

function bootstrapV3(api: number, web: readonly number[]): JsonObject {
  const cluster = (name: string, ports: readonly number[]): JsonObject => ({
    name,
    connect_timeout: TIMEOUT,
    type: 'STATIC',
    lb_policy: 'ROUND_ROBIN',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } })) }],
    },
  });
  const http = {
    '@type': `${ANY}.network.http_connection_manager.v3.HttpConnectionManager`,
    codec_type: 'AUTO',
    stat_prefix: 'front',
    route_config: { name: 'local', virtual_hosts: virtualHosts('host_rewrite_literal') },
    http_filters: [{ name: 'envoy.filters.http.router', typed_config: { '@type': `${ANY}.http.router.v3.Router` } }],
  };
  const tcp = { '@type': `${ANY}.network.tcp_proxy.v3.TcpProxy`, stat_prefix: 'raw', cluster: 'web' };
  const listener = (name: string, filter: string, typed: JsonObject): JsonObject => ({
    name,
    address: socketAddress('127.0.0.1', 0),
    filter_chains: [{ filters: [{ name: filter, typed_config: typed }] }],
  });
  return {
    node: { id: 'front-1', cluster: 'front' },
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [
        listener('http', 'envoy.filters.network.http_connection_manager', http),
        listener('tcp', 'envoy.filters.network.tcp_proxy', tcp),
      ],
      clusters: [cluster('api', [api]), cluster('web', web)],
    },
  };
}

/** The same with what only v2 had: `hosts`, opaque `config`, short names. */
function bootstrapV2(api: number, web: readonly number[]): JsonObject {
  const cluster = (name: string, ports: readonly number[]): JsonObject => ({
    name,
    connect_timeout: TIMEOUT,
    type: 'static',
    lb_policy: 'round_robin',
    hosts: ports.map((port) => socketAddress('127.0.0.1', port)),
  });
  const http = {
    codec_type: 'auto',
    stat_prefix: 'front',
    route_config: { name: 'local', virtual_hosts: virtualHosts('host_rewrite') },
    http_filters: [{ name: 'envoy.router', config: {} }],
  };
  const listener = (name: string, filter: string, config: JsonObject): JsonObject => ({
    name,
    address: socketAddress('127.0.0.1', 0),
    filter_chains: [{ filters: [{ name: filter, config }] }],
  });
  return {
    node: { id: 'front-1', cluster: 'front' },
    admin: { access_log_path: '/dev/null', address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [
        listener('http', 'envoy.http_connection_manager', http),
        listener('tcp', 'envoy.tcp_proxy', { stat_prefix: 'raw', cluster: 'web' }),
      ],
      clusters: [cluster('api', [api]), cluster('web', web)],
    },
  };
}

const REQUESTS: readonly { readonly host: string; readonly path: string; readonly body?: string }[] = [
  { host: 'shop.test', path: '/api/v1/items?id=7' },
  { host: 'EU.shop.test', path: '/exact' },
  { host: 'shop.test', path: '/exact/not' },
  { host: 'elsewhere.test', path: '/web/a', body: 'x'.repeat(50_000) },
  { host: 'elsewhere.test', path: '/web/b' },
  { host: 'elsewhere.test', path: '/other' },
];

/** What one running form answers: status and echo of each request, then a request through the TCP listener. */
async function answers(bootstrapFile: string): Promise<unknown[]> {
  await using weir = await startWeir({ args: ['-c', bootstrapFile] });
  const listeners = await weir.listeners();
  const http = `http://127.0.0.1:${listeners.get('http')!.port}`;
  const tcp = `http://127.0.0.1:${listeners.get('tcp')!.port}`;
  const seen: unknown[] = [];
  for (const { host, path: target, body } of REQUESTS) seen.push(await ask(http, host, target, body));
  seen.push(await ask(tcp, 'raw.test', '/through/tcp'));
  for (const name of ['http.front.downstream_rq_total', 'http.front.no_route', 'tcp.raw.downstream_cx_total']) {
    seen.push(`${name} ${await weir.stat(name)}`);
  }
  return seen;
}

async function ask(base: string, host: string, target: string, body = ''): Promise<unknown> {
  const url = new URL(target, base);
  const sent = request(url, { agent: false, method: body === '' ? 'GET' : 'POST', headers: { host } });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const answer = await text(response);
  return [response.statusCode, answer === '' ? '' : JSON.parse(answer)];
}

describe('a front proxy runs alike from', () => {
  let folder = '';
  let upstreams: readonly EchoUpstream[] = [];
  let v3: JsonObject = {};
  let expected: unknown[] = [];

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'weir-forms-'));
    upstreams = await Promise.all(['api', 'web-0', 'web-1'].map(startEchoUpstream));
    const [api, ...web] = upstreams.map((upstream) => upstream.port);
    v3 = bootstrapV3(api!, web);
    const echo = (upstream: string, method: string, target: string, host: string, bodyBytes = 0): unknown => [
      200,
      { upstream, method, path: target, host, bodyBytes },
    ];
    expected = [
      echo('api', 'GET', '/v1/items?id=7', 'shop.test'),
      echo('api', 'GET', '/exact', 'api.internal'),
      [404, ''],
      echo('web', 'POST', '/web/a', 'elsewhere.test', 50_000),
      echo('web', 'GET', '/web/b', 'elsewhere.test'),
      [404, ''],
      echo('web', 'GET', '/through/tcp', 'raw.test'),
      'http.front.downstream_rq_total 6',
      'http.front.no_route 2',
      'tcp.raw.downstream_cx_total 1',
    ];
  });

  after(async () => {
    for (const upstream of upstreams) await upstream[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Which of the two web hosts answers first is up to the balancer; that both take their turn is not. */
  function settleTurns(seen: readonly unknown[]): unknown[] {
    const turns = seen.flatMap((entry) => (JSON.stringify(entry).match(/web-\d/g) ?? []).slice(0, 1));
    assert.equal(new Set(turns.slice(0, 2)).size, 2, 'two requests in a row go to two hosts');
    return JSON.parse(JSON.stringify(seen).replaceAll(/web-\d/g, 'web')) as unknown[];
  }

  async function runsAlike(name: string, content: string | Uint8Array): Promise<void> {
    const file = path.join(folder, name);
    writeFileSync(file, content);
    assert.deepEqual(settleTurns(await answers(file)), expected);
  }

  const message = () => readText('config.bootstrap.v3.Bootstrap', JSON.stringify(v3), { form: 'json' }).message;

  it('v3 YAML', async () => {
    await runsAlike('v3.yaml', dump(v3));
  });
  it('v2 YAML', async () => {
    const [api, ...web] = upstreams.map((upstream) => upstream.port);
    await runsAlike('v2.yaml', dump(bootstrapV2(api!, web)));
  });
  it('JSON', () => runsAlike('v3.json', JSON.stringify(v3)));
  it('binary proto', () => runsAlike('v3.pb', message().$type.encode(message()).finish()));
  it('text proto', () => runsAlike('v3.pb_text', textFormat.toText(message().$type, message())));
});
