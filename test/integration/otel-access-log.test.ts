// Access logs to an OpenTelemetry collector through the whole proxy: what records say, over gRPC and HTTP, and that a collector
// which fails, hangs, takes a part or is away costs no request anything.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { HttpCollector } from '../support/collectors.ts';
import { bootstrapOf, ConfigError, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';
import { decodeRecords, LogCollector } from '../support/log-collector.ts';
import { field, openTelemetry, untilCounts } from '../support/traced-proxy.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'type.googleapis.com/envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig';
const SCOPE = 'access_logs.open_telemetry_access_log.';
const GRPC: JsonObject = { grpc_service: { envoy_grpc: { cluster_name: 'logs' }, timeout: '5s' } };
const HTTP: JsonObject = {
  http_service: { http_uri: { uri: 'http://otel.test/v1/logs', cluster: 'logs', timeout: '5s' } },
};

function log(fields: JsonObject, beside: JsonObject = {}): JsonObject {
  const settings = { '@type': TYPE, log_name: 'edge', buffer_size_bytes: 0, ...fields };
  return { name: 'envoy.access_loggers.open_telemetry', typed_config: settings, ...beside };
}

const says = (string_value: string): JsonObject => ({ string_value });

function map(values: Readonly<Record<string, JsonObject>>): JsonObject {
  return { values: Object.entries(values).map(([key, value]) => ({ key, value })) };
}

interface Options {
  readonly logs: readonly JsonObject[];
  readonly manager?: JsonObject;
  readonly isHttp1?: boolean;
}

async function logged(t: TestContext, port: number, { logs, manager = {}, isHttp1 = false }: Options) {
  const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  const listener = filteredListener([], [routeTo('/')], { manager: { access_log: logs, ...manager } });
  const clusters = [clusterAt('web', upstream.port), clusterAt('logs', port, isHttp1 ? {} : HTTP2)];
  const proxy = await createProxy(
    bootstrapOf([listener], clusters, {
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
  return { upstream, counts, get };
}

const NODE = { log_name: 'edge', zone_name: 'z1', cluster_name: 'shop', node_name: 'n1' };

describe('a record', () => {
  test('says what the configuration asks for, of its request and of this process', async (t) => {
    await using collector = await LogCollector.start();
    const { get, counts } = await logged(t, collector.port, {
      logs: [
        log({
          ...GRPC,
          body: says('%REQ(:PATH)% %RESPONSE_CODE% é'),
          attributes: map({
            path: says('%REQ(:PATH)%'),
            none: says('%REQ(x-none)%'),
            list: { array_value: { values: [says('%PROTOCOL%'), says('fixed')] } },
            map: { kvlist_value: map({ deep: says('%REQ(x-who)%') }) },
          }),
          resource_attributes: map({ region: says('r1'), zone_name: says('mine') }),
          custom_tags: [{ tag: 'who', request_header: { name: 'x-who' } }],
        }),
      ],
    });
    await get('/a?b', ['x-who: me']);
    await collector.until(1);
    const [record] = collector.records;
    assert.equal(record!.body, '/a?b 200 é');
    assert.deepEqual(record!.attributes, {
      path: '/a?b',
      none: '-',
      list: ['HTTP/1.1', 'fixed'],
      map: { deep: 'me' },
      who: 'me',
    });
    assert.deepEqual(record!.resource, { ...NODE, zone_name: 'mine', region: 'r1' });
    assert.deepEqual([record!.traceId, record!.spanId], ['', '']);
    assert.ok(Math.abs(record!.timeMs - Date.now()) < 60_000);
    await untilCounts({ counts }, SCOPE, { logs_written: 1 });
  });

  test('says nothing but that where nothing is asked for', async (t) => {
    await using collector = await LogCollector.start();
    const { get } = await logged(t, collector.port, { logs: [log({ ...GRPC, disable_builtin_labels: true })] });
    await get('/');
    await collector.until(1);
    const [record] = collector.records;
    assert.deepEqual([record!.body, record!.attributes, record!.resource], ['', {}, {}]);
  });

  test('belongs to the trace of its request', async (t) => {
    await using collector = await LogCollector.start();
    const provider = openTelemetry({ grpc_service: { envoy_grpc: { cluster_name: 'logs' } } });
    const { get, upstream } = await logged(t, collector.port, {
      logs: [log(GRPC)],
      manager: { tracing: { provider } },
    });
    await get('/');
    await collector.until(1);
    const [record] = collector.records;
    const [, traceId, spanId] = field(upstream.heads[0]!, 'traceparent')!.split('-');
    assert.deepEqual([record!.traceId, record!.spanId], [traceId, spanId]);
  });

  test('has what detectors find', async (t) => {
    await using collector = await LogCollector.start();
    const type = 'type.googleapis.com/envoy.extensions.tracers.opentelemetry.resource_detectors.v3';
    const typed_config = {
      '@type': `${type}.StaticConfigResourceDetectorConfig`,
      attributes: { node_name: 'n2', a: 'b' },
    };
    const fields = {
      ...GRPC,
      resource_detectors: [{ name: 'fixed', typed_config }],
      resource_attributes: map({ a: says('c') }),
    };
    const { get } = await logged(t, collector.port, { logs: [log(fields)] });
    await get('/');
    await collector.until(1);
    assert.deepEqual(collector.records[0]!.resource, { ...NODE, node_name: 'n2', a: 'c' });
  });

  test('goes where the older message says', async (t) => {
    await using collector = await LogCollector.start();
    const common_config = { log_name: 'old', ...GRPC, transport_api_version: 'V3', buffer_size_bytes: 0 };
    const typed_config = { '@type': TYPE, common_config, stat_prefix: 'mine' };
    const { get, counts } = await logged(t, collector.port, { logs: [{ name: 'otel', typed_config }] });
    await get('/');
    await collector.until(1);
    assert.deepEqual(collector.records[0]!.resource, { ...NODE, log_name: 'old' });
    await untilCounts({ counts }, `${SCOPE}mine.`, { logs_written: 1 });
  });

  test('goes over HTTP, and with others when it is time', async (t) => {
    await using collector = await HttpCollector.start();
    const filter = { header_filter: { header: { name: 'x-log', present_match: true } } };
    const fields = { ...HTTP, buffer_size_bytes: 100_000, buffer_flush_interval: '0.5s', body: says('%REQ(:PATH)%') };
    const { get, counts } = await logged(t, collector.port, { logs: [log(fields, { filter })], isHttp1: true });
    for (const path of ['/1', '/2']) await get(path, ['x-log: 1']);
    await get('/3');
    await untilCounts({ counts }, SCOPE, { logs_written: 2 });
    assert.deepEqual(
      collector.reports.flatMap(({ body }) => decodeRecords(body)).map(({ body }) => body),
      ['/1', '/2'],
    );
    const [{ method, url, headers }] = collector.reports as [(typeof collector.reports)[number]];
    assert.deepEqual(
      [method, url, headers.host, headers['content-type']],
      ['POST', '/v1/logs', 'otel.test', 'application/x-protobuf'],
    );
  });
});

test('a collector that fails, hangs, takes a part or is away costs records and no request', async (t) => {
  await using collector = await LogCollector.start({ fails: 13 });
  const failing = await logged(t, collector.port, { logs: [log(GRPC)] });
  assert.equal((await failing.get('/')).status, 200);
  await untilCounts(failing, SCOPE, { logs_dropped: 1 });
  collector.answer = { partial_success: { rejected_log_records: 1 } };
  const partial = await logged(t, collector.port, { logs: [log(GRPC)] });
  assert.equal((await partial.get('/')).status, 200);
  await untilCounts(partial, SCOPE, { logs_dropped: 1 });
  collector.answer = 'silence';
  const grpc_service = { envoy_grpc: { cluster_name: 'logs' }, timeout: '0.05s' };
  const hanging = await logged(t, collector.port, { logs: [log({ grpc_service })] });
  assert.equal((await hanging.get('/')).status, 200);
  await untilCounts(hanging, SCOPE, { logs_dropped: 1 });
  const away = await logged(t, await unusedPort(), { logs: [log(GRPC)] });
  assert.equal((await away.get('/')).status, 200);
  await untilCounts(away, SCOPE, { logs_dropped: 1 });
});

describe('a log to a collector is refused', () => {
  const nested = (depth: number): JsonObject =>
    depth === 0 ? says('x') : { array_value: { values: [nested(depth - 1)] } };
  for (const [name, fields, error] of [
    ['without a collector', {}, /typed_config: needs one of grpc_service and http_service/],
    ['with two', { ...GRPC, ...HTTP }, /needs one of grpc_service and http_service/],
    [
      'with one in each place',
      { ...GRPC, common_config: { log_name: 'a', ...GRPC, transport_api_version: 'V3' } },
      /common_config: cannot be given together/,
    ],
    [
      'with a number for a body',
      { ...GRPC, body: { int_value: '1' } },
      /body: is no string_value, array_value or kvlist_value/,
    ],
    ['with an unknown command', { ...GRPC, body: says('%NOTHING%') }, /body\.string_value: unknown command operator/],
    [
      'with an attribute that says nothing',
      { ...GRPC, attributes: { values: [{ key: 'a' }] } },
      /attributes\.values\[0\]\.value: is required/,
    ],
    [
      'with a resource that is a list',
      { ...GRPC, resource_attributes: map({ a: { array_value: {} } }) },
      /resource_attributes\.values\[0\]\.value: is no string_value/,
    ],
    ['with too many lists in each other', { ...GRPC, body: nested(17) }, /more than 16 lists and maps/],
    [
      'with a cluster that there is not',
      { grpc_service: { envoy_grpc: { cluster_name: 'log' } } },
      /cluster "log" does not exist/,
    ],
  ] as const) {
    test(name, async () => {
      const listener = filteredListener([], [routeTo('/')], { manager: { access_log: [log(fields)] } });
      const clusters = [clusterAt('web', 1), clusterAt('logs', 1)];
      await assert.rejects(createProxy(bootstrapOf([listener], clusters)), (fault) => {
        assert.ok(fault instanceof ConfigError);
        assert.match(fault.message, error);
        return true;
      });
    });
  }
});
