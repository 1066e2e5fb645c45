// Access logs to a gRPC service through the whole proxy: what entries of requests and connections tell, when they are sent, and that a
// service which fails, hangs or is away costs no request anything.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ServerCredentials } from '@grpc/grpc-js';
import { AccessLogService } from '../support/access-log-service.ts';
import { type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { bootstrapOf, ConfigError, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';
import { pair, tlsMessage } from '../support/tls-config.ts';
import { field, untilCounts } from '../support/traced-proxy.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.access_loggers.grpc.v3';
const SCOPE = 'access_logs.grpc_access_log.';
const COMMON: JsonObject = {
  log_name: 'edge',
  grpc_service: { envoy_grpc: { cluster_name: 'logs' }, timeout: '5s' },
  transport_api_version: 'V3',
  // Each entry is enough for a message.
  buffer_size_bytes: 0,
};

function httpLog(common: JsonObject = {}, fields: JsonObject = {}, beside: JsonObject = {}): JsonObject {
  const settings = { '@type': `${TYPES}.HttpGrpcAccessLogConfig`, common_config: { ...COMMON, ...common }, ...fields };
  return { name: 'envoy.access_loggers.http_grpc', typed_config: settings, ...beside };
}

function tcpLog(): JsonObject {
  const settings = { '@type': `${TYPES}.TcpGrpcAccessLogConfig`, common_config: COMMON };
  return { name: 'envoy.access_loggers.tcp_grpc', typed_config: settings };
}

async function logged(
  t: TestContext,
  port: number,
  {
    logs,
    routes = [routeTo('/')],
    manager = {},
    secured = {},
  }: { logs: readonly JsonObject[]; routes?: readonly JsonObject[]; manager?: JsonObject; secured?: JsonObject },
) {
  const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-from: web\r\n\r\nok');
  const listener = filteredListener([], routes, {
    manager: { access_log: logs, use_remote_address: true, ...manager },
  });
  /** With the service at this port. */
  const bootstrapAt = (at: number) =>
    bootstrapOf([listener], [clusterAt('web', upstream.port), clusterAt('logs', at, { ...HTTP2, ...secured })], {
      node: { id: 'n1', cluster: 'shop', locality: { zone: 'z1' } },
      stats_flush_on_admin: true,
    });
  const proxy = await createProxy(bootstrapAt(port));
  const client = new WireClient(proxy.listeners.get('main')!.port);
  t.after(async () => {
    client.close();
    await proxy.close();
    await upstream.close();
  });
  const counts = async (scope: string): Promise<Record<string, number>> => {
    const found = Object.entries(await proxy.stats.counters(scope)).filter(([, n]) => n > 0);
    return Object.fromEntries(found.map(([name, n]) => [name.slice(scope.length), n]));
  };
  const get = async (path: string, lines: readonly string[] = []) => {
    client.write(`${[`GET ${path} HTTP/1.1`, 'host: shop.test', ...lines].join('\r\n')}\r\n\r\n`);
    return await client.response();
  };
  return { proxy, upstream, counts, get, bootstrapAt };
}

test('an entry tells all of its request', async (t) => {
  await using service = await AccessLogService.start();
  const log = httpLog(
    {
      custom_tags: [
        { tag: 'who', request_header: { name: 'x-who' } },
        { tag: 'fixed', literal: { value: 'v' } },
      ],
    },
    { additional_request_headers_to_log: ['X-Who', 'x-none'], additional_response_headers_to_log: ['x-from'] },
  );
  const routes = [routeTo('/', {}, { name: 'all' })];
  const { get, upstream, counts } = await logged(t, service.port, { logs: [log], routes });
  await get('/a?b=c', ['user-agent: probe', 'referer: r', 'x-who: me\xe9'.slice(0, 9)]);
  await service.until(1);
  assert.deepEqual(service.paths, ['/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs']);
  const [message] = service.messages;
  assert.deepEqual(
    [message!.identifier!.log_name, message!.identifier!.node.id, message!.identifier!.node.cluster],
    ['edge', 'n1', 'shop'],
  );
  const [entry] = service.entries;
  const { common_properties: common, request, response, protocol_version } = entry!;
  const head = upstream.heads[0]!;
  assert.equal(protocol_version, 2);
  assert.deepEqual(request, {
    request_method: 1,
    scheme: 'http',
    authority: 'shop.test',
    path: '/a?b=c',
    user_agent: 'probe',
    referer: 'r',
    forwarded_for: field(head, 'x-forwarded-for'),
    request_id: field(head, 'x-request-id'),
    request_headers_bytes: head.length,
    request_headers: { 'x-who': 'me' },
  });
  assert.deepEqual(
    [response.response_code, response.response_body_bytes, response.response_code_details, response.response_headers],
    [{ value: 200 }, 2, 'via_upstream', { 'x-from': 'web' }],
  );
  assert.equal(common.downstream_remote_address.socket_address.address, '127.0.0.1');
  assert.equal(common.upstream_remote_address!.socket_address.port_value, upstream.port);
  assert.deepEqual(
    [common.upstream_cluster, common.route_name, common.upstream_request_attempt_count, common.access_log_type],
    ['web', 'all', 1, 6],
  );
  assert.equal(common.stream_id, field(head, 'x-request-id'));
  assert.deepEqual(common.custom_tags, { who: 'me', fixed: 'v' });
  assert.ok(Math.abs(common.start_time.seconds - Date.now() / 1000) < 60);
  assert.ok(common.duration !== undefined && common.time_to_first_upstream_rx_byte !== undefined);
  assert.equal(common.response_flags, undefined);
  await untilCounts({ counts }, SCOPE, { logs_written: 1 });
});

test('an entry names the client behind hops that are believed', async (t) => {
  await using service = await AccessLogService.start();
  const { get } = await logged(t, service.port, { logs: [httpLog()], manager: { xff_num_trusted_hops: 1 } });
  await get('/', ['x-forwarded-for: 192.0.2.7']);
  await service.until(1);
  const [{ common_properties: common }] = service.entries as [(typeof service.entries)[number]];
  assert.equal(common.downstream_remote_address.socket_address.address, '192.0.2.7');
});

test('an entry says what went wrong, by its filter only', async (t) => {
  await using service = await AccessLogService.start();
  const filter = { status_code_filter: { comparison: { op: 'GE', value: { default_value: 400 } } } };
  const { get } = await logged(t, service.port, {
    logs: [httpLog({ transport_api_version: 'V2' }, {}, { filter })],
    routes: [routeTo('/a')],
  });
  await get('/a');
  await get('/b');
  await service.until(1);
  const [{ common_properties: common, response, request }] = service.entries as [(typeof service.entries)[number]];
  assert.deepEqual(common.response_flags, { no_route_found: true });
  assert.deepEqual([response.response_code, response.response_code_details], [{ value: 404 }, 'route_not_found']);
  assert.equal(request.path, '/b');
  assert.deepEqual(service.paths, ['/envoy.service.accesslog.v2.AccessLogService/StreamAccessLogs']);
});

test('entries gather until their time is over', async (t) => {
  await using service = await AccessLogService.start();
  const { get } = await logged(t, service.port, {
    logs: [httpLog({ buffer_size_bytes: 100_000, buffer_flush_interval: '0.5s' })],
  });
  await get('/1');
  await get('/2');
  await service.until(2);
  assert.equal(service.messages[0]!.identifier!.log_name, 'edge');
});

test('all messages go over one stream, whose first one says who sends them', async (t) => {
  await using service = await AccessLogService.start();
  // Two logs of the same settings, and one of others.
  const { get, proxy } = await logged(t, service.port, {
    logs: [httpLog(), httpLog(), httpLog({ log_name: 'other' })],
  });
  for (const [at, path] of ['/1', '/2', '/3'].entries()) {
    await get(path);
    await service.until(3 * (at + 1));
  }
  assert.equal(service.streams.length, 2);
  for (const messages of service.streams) {
    for (const [at, { identifier }] of messages.entries()) assert.equal(identifier !== undefined, at === 0);
  }
  assert.equal(service.ended, 0);
  await proxy.close();
  assert.equal(service.ended, 2);
});

test('a stream that the service ends is followed by another one', async (t) => {
  await using service = await AccessLogService.start();
  service.manners = { endsAfter: 2 };
  const bench = await logged(t, service.port, { logs: [httpLog()] });
  for (const entries of [1, 2, 3, 4]) {
    await bench.get('/');
    await service.until(entries);
    if (entries === 2) await untilCounts(bench, SCOPE, { logs_written: 2 });
  }
  assert.deepEqual(
    service.streams.map((messages) => messages.map(({ identifier }) => identifier?.log_name)),
    [
      ['edge', undefined],
      ['edge', undefined],
    ],
  );
  await untilCounts(bench, SCOPE, { logs_written: 4 });
});

test('entries wait while the service is away', async (t) => {
  const port = await unusedPort();
  const { get } = await logged(t, port, { logs: [httpLog()] });
  assert.equal((await get('/1')).status, 200);
  assert.equal((await get('/2')).status, 200);
  await using service = await AccessLogService.start({ port });
  await service.until(2);
  assert.deepEqual(
    service.entries.map(({ request }) => request.path),
    ['/1', '/2'],
  );
});

test('a stream leaves a service whose place in the configuration another has taken', async (t) => {
  await using former = await AccessLogService.start();
  await using service = await AccessLogService.start();
  const { get, proxy, bootstrapAt } = await logged(t, former.port, { logs: [httpLog()] });
  await get('/1');
  await former.until(1);
  await proxy.applyBootstrap(bootstrapAt(service.port));
  await untilEqual(1, () => former.ended, 'streams that were ended');
  await get('/2');
  await service.until(1);
  assert.equal(former.entries.length, 1);
});

test('the last entries are sent when the proxy ends', async (t) => {
  await using service = await AccessLogService.start();
  const { get, proxy } = await logged(t, service.port, {
    logs: [httpLog({ buffer_size_bytes: 100_000, buffer_flush_interval: '3600s' })],
  });
  await get('/1');
  await proxy.close();
  assert.equal(service.entries.length, 1);
});

test('a service may be reached by TLS alone, and know its clients by their certificates', async (t) => {
  using folder = new CertificateFolder();
  const ca = await folder.make('ca', { isAuthority: true });
  const own = await folder.make('service', { issuer: ca, altNames: 'DNS:logs.test' });
  const ours = await folder.make('proxy', { issuer: ca });
  const keys = [{ private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.certificate) }];
  const credentials = ServerCredentials.createSsl(Buffer.from(ca.certificate), keys, true);
  await using service = await AccessLogService.start({ credentials });
  const validation_context = {
    trusted_ca: { filename: ca.certificatePath },
    match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'logs.test' } }],
  };
  const typed_config = tlsMessage('UpstreamTlsContext', {
    sni: 'logs.test',
    common_tls_context: { tls_certificates: [pair(ours)], validation_context },
  });
  const { get } = await logged(t, service.port, {
    logs: [httpLog()],
    secured: { transport_socket: { name: 'tls', typed_config } } as JsonObject,
  });
  await get('/1');
  await get('/2');
  await service.until(2);
  assert.equal(service.streams.length, 1);
});

test('connections have entries, too', async (t) => {
  await using service = await AccessLogService.start();
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', (bytes: Buffer) => socket.end(bytes));
  });
  const tcp = {
    name: 'envoy.filters.network.tcp_proxy',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
      stat_prefix: 'tcp',
      cluster: 'web',
      access_log: [tcpLog()],
    },
  };
  const listener = listenerWith([tcp], { name: 'main', address: socketAddress('127.0.0.1', 0) });
  const clusters = [clusterAt('web', upstream.port), clusterAt('logs', service.port, HTTP2)];
  const proxy = await createProxy(bootstrapOf([listener], clusters));
  t.after(async () => {
    await proxy.close();
    await upstream.close();
  });
  const socket = connect(proxy.listeners.get('main')!.port, '127.0.0.1');
  socket.resume();
  socket.write('four');
  await once(socket, 'end');
  await service.until(1);
  const [entry] = service.entries;
  assert.deepEqual(entry!.connection_properties, { received_bytes: 4, sent_bytes: 4 });
  assert.equal(entry!.common_properties.upstream_cluster, 'web');
  assert.equal(entry!.common_properties.access_log_type, 3);
});

test('a service that fails costs entries and no request, and gets those that come later', async (t) => {
  await using service = await AccessLogService.start();
  service.manners = { fails: 13 };
  const bench = await logged(t, service.port, { logs: [httpLog()] });
  assert.equal((await bench.get('/1')).status, 200);
  await untilCounts(bench, SCOPE, { logs_dropped: 1 });
  service.manners = 'stays';
  assert.equal((await bench.get('/2')).status, 200);
  await service.until(2);
  await untilCounts(bench, SCOPE, { logs_dropped: 1, logs_written: 1 });
});

test('a service that reads nothing costs entries and no request', async (t) => {
  const service = await WireUpstream.start((socket) => void socket.pause());
  t.after(async () => await service.close());
  const grpc_service = { envoy_grpc: { cluster_name: 'logs' }, timeout: '600s' };
  const log = httpLog({ grpc_service }, { additional_request_headers_to_log: ['x-long'] });
  const bench = await logged(t, service.port, { logs: [log], manager: { max_request_headers_kb: 96 } });
  const long = `x-long: ${'l'.repeat(50_000)}`;
  for (let request = 0; request < 40; request += 1) assert.equal((await bench.get('/', [long])).status, 200);
  // A mebibyte waits; some entries are on their way.
  await untilEqual(true, async () => ((await bench.counts(SCOPE)).logs_dropped ?? 0) > 10, 'entries are dropped');
});

test('a proxy ends although a service does not answer', async (t) => {
  await using service = await AccessLogService.start();
  service.manners = 'silence';
  const { get, proxy } = await logged(t, service.port, { logs: [httpLog()] });
  await get('/');
  await service.until(1);
  await proxy.close();
});

async function faultsOf(log: JsonObject, bootstrap: JsonObject = {}): Promise<string> {
  const listener = filteredListener([], [routeTo('/')], { manager: { access_log: [log] } });
  try {
    const proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', 1), clusterAt('logs', 1)], bootstrap));
    const { warnings } = proxy;
    await proxy.close();
    return warnings.map(({ path, message }) => `${path}: ${message}`).join('\n');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message;
  }
}

test('what cannot work is refused by name, or warned of', async () => {
  const grpc_service = { envoy_grpc: { cluster_name: 'log' } };
  assert.match(
    await faultsOf(httpLog({ grpc_service })),
    /envoy_grpc.cluster_name: cluster "log" does not exist; did you mean "logs"/,
  );
  assert.match(await faultsOf(httpLog({ log_name: '' })), /log_name/);
  const admin = { address: socketAddress('127.0.0.1', 0), access_log: [httpLog()] };
  assert.match(
    await faultsOf(httpLog(), { admin }),
    /admin.access_log\[0\]: is not written: the admin interface logs to files/,
  );
});
