// Metadata of the configuration, from a bootstrap file to access logs and header values of the real program.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import { packClusters } from '../../src/snapshot/index.ts';
import { clusterNamed, httpFilter, type Json, type JsonObject, tcpFilter } from '../support/bootstrap.ts';
import { DataPlaneFixture, loopback, routeTo } from '../support/data-plane.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const SOURCES = ['CLUSTER', 'ROUTE', 'VIRTUAL_HOST', 'UPSTREAM_HOST', 'LISTENER', 'LISTENER_FILTER_CHAIN', 'DYNAMIC'];
const FORMAT = SOURCES.map((source) => `%METADATA(${source}:com.test:owner)%`).join(' ');
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-up: 1\r\n\r\nok';
const ADMIN = { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } };

function metadata(owner: string): JsonObject {
  return {
    filter_metadata: { 'com.test': { owner, size: 3, on: true, tags: ['a', { b: 'é' }] }, other: { owner: 'nobody' } },
  };
}

function fileLog(file: string, format: string): Json {
  const type = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';
  const text = { log_format: { text_format_source: { inline_string: `${format}\n` } } };
  return { name: 'envoy.access_loggers.file', typed_config: { '@type': type, path: file, ...text } };
}

function header(key: string, value: string): Json {
  return { header: { key, value } };
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-metadata-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function upstreamOf(t: TestContext, serve: () => Promise<WireUpstream>): Promise<WireUpstream> {
  const upstream = await serve();
  t.after(() => upstream.close());
  return upstream;
}

function clusterAt(port: number, fields: JsonObject): Json {
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  const endpoint = { endpoint: { address }, metadata: metadata('host') };
  return clusterNamed('web', {
    metadata: metadata('cluster'),
    load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] },
    ...fields,
  });
}

function listener(name: string, filter: Json, fields: JsonObject = {}): Json {
  return {
    name,
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    metadata: metadata(`${name} listener`),
    filter_chains: [{ filters: [filter], metadata: metadata(`${name} chain`) }],
    ...fields,
  };
}

test('metadata of all that a request meets reaches its log line, its request and its response', async (t) => {
  const folder = folderOf(t);
  const heads: string[] = [];
  const upstream = await upstreamOf(t, () =>
    WireUpstream.start((socket) => {
      socket.on('data', (bytes: Buffer) => {
        heads.push(bytes.toString('latin1'));
        socket.write(OK);
      });
    }),
  );
  const route = {
    match: { prefix: '/' },
    route: { cluster: 'web' },
    metadata: metadata('route'),
    request_headers_to_add: [
      header('x-of-cluster', '%CLUSTER_METADATA(com.test:owner)%'),
      header('x-of-route', '%METADATA(ROUTE:com.test)%'),
      header('x-of-cluster-name', '%UPSTREAM_CLUSTER%'),
    ],
    response_headers_to_add: [
      header('x-of-host', '%UPSTREAM_METADATA(["com.test", "owner"])%'),
      header('x-size', '%UPSTREAM_METADATA(com.test:size)%'),
      header('x-missing', '%UPSTREAM_METADATA(com.test:nothing)%'),
    ],
  };
  const virtualHost = { name: 'all', domains: ['*'], routes: [route], metadata: metadata('virtual host') };
  const files = { http: path.join(folder, 'http.log'), refused: path.join(folder, 'refused.log') };
  const manager = httpFilter({
    route_config: { virtual_hosts: [virtualHost] },
    access_log: [fileLog(files.http, FORMAT)],
  });
  await using weir = await startWeir({
    configYaml: JSON.stringify({
      admin: ADMIN,
      static_resources: { listeners: [listener('main', manager)], clusters: [clusterAt(upstream.port, {})] },
    }),
  });
  const client = new WireClient((await weir.listeners()).get('main')!.port);
  t.after(() => client.close());
  const { head } = await client.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n').response();
  assert.match(head, /^x-of-host: host\r$/m);
  assert.match(head, /^x-size: 3\r$/m);
  assert.doesNotMatch(head, /x-missing/);
  assert.match(heads[0]!, /^x-of-cluster: cluster\r$/m);
  assert.match(heads[0]!, /^x-of-cluster-name: web\r$/m);
  const ofRoute = /^x-of-route: (.*)\r$/m.exec(heads[0]!)![1]!;
  assert.deepEqual(JSON.parse(Buffer.from(ofRoute, 'latin1').toString()), {
    owner: 'route',
    size: 3,
    on: true,
    tags: ['a', { b: 'é' }],
  });
  // A request that cannot be read has met a listener and a chain, and nothing else.
  await client.write('nonsense\r\n\r\n').rest();
  await weir.stop();
  assert.deepEqual(readFileSync(files.http, 'utf8').split('\n'), [
    'cluster route virtual host host main listener main chain -',
    '- - - - main listener main chain -',
    '',
  ]);
});

test('metadata of all that a raw connection meets reaches the logs of its proxy and its listener', async (t) => {
  const folder = folderOf(t);
  const upstream = await upstreamOf(t, () => WireUpstream.start((socket) => socket.end('bye')));
  const files = { tcp: path.join(folder, 'tcp.log'), listener: path.join(folder, 'listener.log') };
  const proxy = tcpFilter({ access_log: [fileLog(files.tcp, FORMAT)] });
  await using weir = await startWeir({
    configYaml: JSON.stringify({
      admin: ADMIN,
      static_resources: {
        listeners: [listener('raw', proxy, { access_log: [fileLog(files.listener, FORMAT)] })],
        clusters: [clusterAt(upstream.port, {})],
      },
    }),
  });
  const client = new WireClient((await weir.listeners()).get('raw')!.port);
  t.after(() => client.close());
  assert.equal(await client.rest(), 'bye');
  client.close();
  await weir.untilStat('tcp.tcp.downstream_cx_total', 1);
  await weir.stop();
  assert.equal(readFileSync(files.tcp, 'utf8'), 'cluster - - host raw listener raw chain -\n');
  assert.equal(readFileSync(files.listener, 'utf8'), '- - - - raw listener raw chain -\n');
});

test('new metadata of a host that stays is seen by the next request', async (t) => {
  const upstream = await upstreamOf(t, () => WireUpstream.answering(OK));
  const proxy = new DataPlaneFixture();
  const cluster = proxy.cluster('web', [loopback(upstream.port)]);
  const value = parseFormat('%UPSTREAM_METADATA(n:k)%').segments!;
  const add = [{ name: 'x-of-host', value, action: 'append', keepsEmptyValue: false }] as const;
  const client = new WireClient(await proxy.http([{ ...routeTo('web'), responseEdits: [{ remove: [], add }] }]));
  t.after(async () => {
    client.close();
    await proxy.close();
  });
  const seen = async (): Promise<string | undefined> => {
    const { head } = await client.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n').response();
    return /^x-of-host: (.*)\r$/m.exec(head)?.[1];
  };
  assert.equal(await seen(), undefined);
  for (const k of ['first', 'second']) {
    const hosts = cluster.hosts.map((host) => ({ ...host, metadata: { n: { k } } }));
    proxy.dataPlane.updateClusters(packClusters([{ ...cluster, hosts }]), []);
    assert.equal(await seen(), k);
  }
  assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
});
