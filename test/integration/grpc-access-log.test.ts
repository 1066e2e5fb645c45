// Access logs to a gRPC service through the whole proxy: what entries of requests and connections tell, when they are sent, and that a
// service which fails, hangs or is away costs no request anything.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { AccessLogService } from '../support/access-log-service.ts';
import { type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { bootstrapOf, ConfigError, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';
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
    answer,
    manager = {},
  }: { logs: readonly JsonObject[]; routes?: readonly JsonObject[]; answer?: string; manager?: JsonObject },
) {
  const upstream = await WireUpstream.answering(
    answer ?? 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-from: web\r\n\r\nok',
  );
  const listener = filteredListener([], routes, {
    manager: { access_log: logs, use_remote_address: true, ...manager },
  });
  const proxy = await createProxy(
    bootstrapOf([listener], [clusterAt('web', upstream.port), clusterAt('logs', port, HTTP2)], {
      node: { id: 'n1', cluster: 'shop', locality: { zone: 'z1' } },
      stats_flush_on_admin: true,
    }),
  );
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
  return { proxy, upstream, counts, get };
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
  assert.ok(service.messages.every(({ identifier }) => identifier?.log_name === 'edge'));
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

test('a service that fails, hangs or is away costs entries and no request', async (t) => {
  await using service = await AccessLogService.start();
  service.answer = { fails: 13 };
  const failing = await logged(t, service.port, { logs: [httpLog()] });
  assert.equal((await failing.get('/')).status, 200);
  await untilCounts(failing, SCOPE, { logs_dropped: 1 });
  service.answer = 'silence';
  const grpc_service = { envoy_grpc: { cluster_name: 'logs' }, timeout: '0.05s' };
  const hanging = await logged(t, service.port, { logs: [httpLog({ grpc_service })] });
  assert.equal((await hanging.get('/')).status, 200);
  await untilCounts(hanging, SCOPE, { logs_dropped: 1 });
  const away = await logged(t, await unusedPort(), { logs: [httpLog()] });
  assert.equal((await away.get('/')).status, 200);
  await untilCounts(away, SCOPE, { logs_dropped: 1 });
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
