// Health checks over TLS, HTTP/2 and gRPC by the real program, against servers of Node and of grpc-js: what these see of them, and what
// becomes of hosts that answer otherwise.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { createServer as createHttp2Server, createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { Server as GrpcServer, type Metadata, ServerCredentials, type ServerUnaryCall } from '@grpc/grpc-js';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { untilEqual } from '../support/eventually.ts';
import { bootstrapOf, clusterAt, pair, tlsMessage } from '../support/tls-config.ts';
import { copyPair, pairIn } from '../support/tls-files.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const SERVING = 1;
const NOT_SERVING = 2;

let folder: CertificateFolder;
let ca: TestCertificate;
let otherCa: TestCertificate;
let server: TestCertificate;
let client: TestCertificate;
let weir: WeirProcess;
const servers: { close(): unknown }[] = [];

/** What servers have seen of checks. */
const seen = { clients: new Set<string>(), protocols: new Set<string>(), connections: new Map<string, number>() };
const grpc = { status: SERVING, services: new Set<string>(), metadata: undefined as Metadata | undefined, host: '' };

function connected(name: string): void {
  seen.connections.set(name, (seen.connections.get(name) ?? 0) + 1);
}

async function listen(own: Server): Promise<number> {
  servers.push(own);
  own.listen(0, '127.0.0.1');
  await once(own, 'listening');
  return (own.address() as AddressInfo).port;
}

/** grpc.health.v1.Health, which knows one service. */
async function startGrpc(credentials: ServerCredentials): Promise<number> {
  const own = new GrpcServer();
  const asItIs = (bytes: Buffer): Buffer => bytes;
  const Check = {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    requestSerialize: asItIs,
    requestDeserialize: asItIs,
    responseSerialize: asItIs,
    responseDeserialize: asItIs,
  };
  own.addService(
    { Check },
    {
      Check: (call: ServerUnaryCall<Buffer, Buffer>, answer: (error: null, bytes: Buffer) => void) => {
        grpc.services.add(call.request.subarray(2).toString());
        grpc.metadata = call.metadata;
        grpc.host = call.getHost();
        // Field 1 of HealthCheckResponse.
        answer(null, Buffer.from([0x08, grpc.status]));
      },
    },
  );
  servers.push({ close: () => own.forceShutdown() });
  return new Promise((resolve, reject) =>
    own.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(port))),
  );
}

function place(name: string): string {
  return path.join(folder.path, name);
}

function socket(common: object, context: object = {}): object {
  return { name: 'tls', typed_config: tlsMessage('UpstreamTlsContext', { common_tls_context: common, ...context }) };
}

function trusted({ certificatePath: filename }: Pick<TestCertificate, 'certificatePath'>): object {
  return { validation_context: { trusted_ca: { filename } } };
}

function checked(name: string, port: number, check: object, fields: object = {}): object {
  const intervals = { timeout: '20s', interval: '0.02s', no_traffic_interval: '0.02s' };
  const thresholds = { unhealthy_threshold: 1, healthy_threshold: 1 };
  return { ...clusterAt(name, port), health_checks: [{ ...intervals, ...thresholds, ...check }], ...fields };
}

const untilHealthy = (name: string, count = 1): Promise<void> =>
  weir.untilStat(`cluster.${name}.health_check.healthy`, count);
const untilFailed = async (name: string): Promise<void> =>
  untilEqual(
    true,
    async () => ((await weir.stat(`cluster.${name}.health_check.failure`)) ?? 0) > 0,
    `a failure of ${name}`,
  );

async function lastCheck(name: string): Promise<string> {
  const lines = (await weir.admin('/clusters')).split('\n');
  return lines.filter((line) => line.startsWith(`${name}::`) && line.includes('check')).join('\n');
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  otherCa = await folder.make('other-ca', { isAuthority: true });
  server = await folder.make('server', { issuer: ca, altNames: 'DNS:a.example' });
  client = await folder.make('client', { issuer: ca });
  const other = await folder.make('other', { issuer: ca });
  copyPair(pairIn(place('renewed')), client);
  copyFileSync(other.certificatePath, place('other.crt'));
  const identity = { cert: server.certificate, key: server.key };
  const asking = { ...identity, requestCert: true, ca: ca.certificate };
  const https = createHttpsServer(asking, (request, response) => {
    seen.clients.add((request.socket as TLSSocket).getPeerCertificate().subject.CN as string);
    response.end('well');
  });
  https.on('secureConnection', () => connected('https'));
  const h2 = createSecureServer({ ...identity, allowHTTP1: false }, (request, response) => {
    response.writeHead(request.headers[':scheme'] === 'https' ? 200 : 500);
    response.end('well');
  });
  h2.on('session', () => connected('h2'));
  const h2c = createHttp2Server((request, response) => {
    const { ':authority': authority, ':scheme': scheme, 'x-check': check } = request.headers;
    response.writeHead(authority === 'h2c' && scheme === 'http' && check === 'a, b' ? 200 : 500);
    response.end(request.method);
  });
  h2c.on('session', () => connected('h2c'));
  const named = createTlsServer({ ...identity, ALPNProtocols: ['x', 'http/1.1'] }, (own) => {
    own.on('error', () => {});
    seen.protocols.add(String(own.alpnProtocol));
    own.on('data', (bytes) => void own.write(bytes));
  });
  const [atHttps, atH2, atH2c, atNamed] = [
    await listen(https),
    await listen(h2),
    await listen(h2c),
    await listen(named),
  ];
  const atGrpc = await startGrpc(ServerCredentials.createInsecure());
  const keys = [{ private_key: Buffer.from(server.key), cert_chain: Buffer.from(server.certificate) }];
  const atGrpcTls = await startGrpc(ServerCredentials.createSsl(null, keys));

  const http = { http_health_check: { path: '/up' } };
  const over2 = (fields: object = {}): object => ({
    http_health_check: { path: '/up', codec_client_type: 'HTTP2', ...fields },
  });
  const ownCertificate = { ...trusted(ca), tls_certificates: [pair(client)] };
  const http2 = { http2_protocol_options: {} };
  const echo = { tcp_health_check: { send: { text: '77' }, receive: [{ text: '77' }] } };
  const metadata = { filter_metadata: { 'envoy.transport_socket_match': { mode: 'plain' } } };
  const endpoint = { address: { socket_address: { address: '127.0.0.1', port_value: atHttps } } };
  const clusters = [
    checked('mutual', atHttps, http, { transport_socket: socket(ownCertificate) }),
    checked('stranger', atHttps, http, {
      transport_socket: socket({ ...trusted(otherCa), tls_certificates: [pair(client)] }),
    }),
    checked(
      'renewed',
      atHttps,
      { ...http, reuse_connection: false },
      {
        transport_socket: socket({ ...trusted(ca), tls_certificates: [pair(pairIn(place('renewed')))] }),
      },
    ),
    checked('plain', atHttps, http),
    checked('h2', atH2, over2(), { transport_socket: socket(trusted(ca)) }),
    checked(
      'h2c',
      atH2c,
      over2({
        method: 'POST',
        send: { text: '00' },
        receive: [{ binary: Buffer.from('POST').toString('base64') }],
        request_headers_to_add: ['a', 'b'].map((value) => ({ header: { key: 'X-Check', value } })),
      }),
    ),
    checked('older', atH2c, { http_health_check: { path: '/up', host: 'other', codec_client_type: 'HTTP2' } }),
    checked(
      'named',
      atNamed,
      { ...echo, tls_options: { alpn_protocols: ['x'] } },
      {
        transport_socket: socket({ ...trusted(ca), alpn_protocols: ['http/1.1'] }),
      },
    ),
    checked(
      'grpc',
      atGrpc,
      {
        grpc_health_check: {
          service_name: 'shop.v1.Cart',
          authority: 'shop.example',
          initial_metadata: [{ header: { key: 'x-token', value: 'abc' } }],
        },
      },
      http2,
    ),
    checked('grpc-tls', atGrpcTls, { grpc_health_check: {} }, { ...http2, transport_socket: socket(trusted(ca)) }),
    {
      ...checked('matched', atHttps, { ...http, transport_socket_match_criteria: { mode: 'tls' } }),
      transport_socket_matches: [
        { name: 'tls', match: { mode: 'tls' }, transport_socket: socket(ownCertificate) },
        { name: 'other', match: { mode: 'plain' }, transport_socket: socket(trusted(otherCa)) },
      ],
      load_assignment: { cluster_name: 'matched', endpoints: [{ lb_endpoints: [{ endpoint, metadata }] }] },
    },
  ];
  weir = await startWeir({ configYaml: bootstrapOf([], { clusters }), args: ['--concurrency', '1'] });
});

after(async () => {
  await weir?.stop();
  for (const own of servers) own.close();
  folder[Symbol.dispose]();
});

describe('health checks over TLS', () => {
  it('show the certificate of the cluster, and share a connection', async () => {
    await untilHealthy('mutual');
    assert.ok(seen.clients.has('client'));
    await untilEqual(true, async () => (await weir.stat('cluster.mutual.health_check.success'))! > 3, 'several checks');
    assert.equal(await weir.stat('cluster.mutual.ssl.handshake'), 1);
    assert.match(await lastCheck('mutual'), /HTTP 200/);
  });

  it('fail where the host is not the one that it should be, or is spoken to in cleartext', async () => {
    await untilFailed('stranger');
    assert.ok((await weir.stat('cluster.stranger.ssl.fail_verify_error'))! > 0);
    assert.equal(await weir.stat('cluster.stranger.ssl.handshake'), 0);
    assert.ok((await weir.stat('cluster.stranger.health_check.network_failure'))! > 0);
    assert.match(await lastCheck('stranger'), /certificate verify failed/);
    await untilFailed('plain');
    assert.equal(await weir.stat('cluster.plain.health_check.healthy'), 0);
  });

  it('choose among transport socket matches by criteria of their own', async () => {
    await untilHealthy('matched');
    assert.ok((await weir.stat('cluster.matched.ssl.handshake'))! > 0);
    assert.equal(await weir.stat('cluster.matched.ssl.fail_verify_error'), 0);
  });

  it('offer protocols of their own', async () => {
    await untilHealthy('named');
    assert.deepEqual([...seen.protocols], ['x']);
  });

  it('go by certificates that come anew', async () => {
    await untilHealthy('renewed');
    assert.ok(!seen.clients.has('other'));
    copyPair(pairIn(place('renewed')), { certificatePath: place('other.crt'), keyPath: place('other.key') });
    await weir.untilStat('cluster.renewed.client_ssl_socket_factory.ssl_context_update_by_file', 1);
    await untilEqual(true, () => seen.clients.has('other'), 'a check with the other certificate');
  });
});

describe('health checks over HTTP/2', () => {
  it('pass over TLS and in cleartext, over one connection each', async () => {
    for (const name of ['h2', 'h2c']) {
      await untilHealthy(name);
      await untilEqual(
        true,
        async () => (await weir.stat(`cluster.${name}.health_check.success`))! > 3,
        'several checks',
      );
    }
    assert.equal(seen.connections.get('h2'), 1);
    // Another cluster asks there, too.
    assert.ok(seen.connections.get('h2c')! <= 2);
  });

  it('fail a host that answers otherwise', async () => {
    await untilFailed('older');
    assert.match(await lastCheck('older'), /HTTP 500/);
    assert.equal(await weir.stat('cluster.older.health_check.network_failure'), 0);
  });
});

describe('health checks by gRPC', () => {
  it('ask after the service, and go by what it says', async () => {
    await untilHealthy('grpc');
    await untilHealthy('grpc-tls');
    assert.deepEqual([...grpc.services].sort(), ['', 'shop.v1.Cart']);
    grpc.status = NOT_SERVING;
    await untilHealthy('grpc', 0);
    assert.match(await lastCheck('grpc'), /gRPC NOT_SERVING/);
    assert.equal(await weir.stat('cluster.grpc.health_check.network_failure'), 0);
    grpc.status = SERVING;
    await untilHealthy('grpc');
    assert.equal(await weir.stat('cluster.grpc-tls.ssl.handshake'), 1);
  });

  it('bring authority and metadata', async () => {
    await untilEqual('shop.example', () => (grpc.host === 'shop.example' ? grpc.host : ''), 'the authority');
    await untilEqual('abc', () => String(grpc.metadata?.get('x-token')[0] ?? ''), 'the metadata');
  });
});
