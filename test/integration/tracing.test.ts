// Tracing through the whole proxy, whatever its tracer: which requests are traced, what spans are called and tell, and that a
// collector that is slow, wrong or away costs no request anything.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { HttpCollector, zipkinSpans } from '../support/collectors.ts';
import { bootstrapOf, ConfigError, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import {
  datadog,
  field,
  OK,
  OTLP_HTTP,
  openTelemetry,
  tracedProxy,
  untilCounts,
  ZIPKIN,
  zipkin,
} from '../support/traced-proxy.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const ID = '12345678-1234-4234-9234-123456789abc';
const withDigit = (digit: string): string => `${ID.slice(0, 14)}${digit}${ID.slice(15)}`;
/** Clients from here are inside, unless they name another hop. */
const OUTSIDE = 'x-forwarded-for: 203.0.113.1';

interface Choice {
  readonly name: string;
  readonly lines?: readonly string[];
  readonly tracing?: JsonObject;
  readonly route?: JsonObject;
  readonly runtime?: JsonObject;
  readonly manager?: JsonObject;
  readonly stat: string;
  readonly digit: string;
}

function uuid(fields: JsonObject): JsonObject {
  return {
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig', ...fields },
  };
}

const NO_RUNTIME: JsonObject = {};
const NEVER = { random_sampling: { value: 0 } };
const CHOICES: readonly Choice[] = [
  { name: 'all are sampled unless said', stat: 'random_sampling', digit: '9' },
  { name: 'none is sampled', tracing: NEVER, stat: 'not_traceable', digit: '4' },
  {
    name: 'the identifier draws',
    tracing: { random_sampling: { value: 50 } },
    lines: [`x-request-id: ${ID}`],
    stat: 'random_sampling',
    digit: '9',
  },
  { name: 'a client asks', tracing: NEVER, lines: ['x-client-trace-id: a'], stat: 'client_enabled', digit: 'b' },
  {
    name: 'a client asks in vain',
    tracing: { ...NEVER, client_sampling: { value: 0 } },
    lines: ['x-client-trace-id: a'],
    stat: 'not_traceable',
    digit: '4',
  },
  {
    name: 'a service forces it',
    tracing: NEVER,
    lines: ['x-envoy-force-trace: 1'],
    stat: 'service_forced',
    digit: 'a',
  },
  {
    name: 'nobody outside forces it',
    tracing: NEVER,
    lines: ['x-envoy-force-trace: 1', OUTSIDE],
    stat: 'not_traceable',
    digit: '4',
  },
  {
    name: 'the proxy before has sampled it',
    tracing: NEVER,
    lines: [`x-request-id: ${withDigit('9')}`],
    stat: 'random_sampling',
    digit: '9',
  },
  {
    name: 'the proxy before was forced',
    tracing: NEVER,
    lines: [`x-request-id: ${withDigit('a')}`],
    stat: 'service_forced',
    digit: 'a',
  },
  {
    name: 'the proxy before was asked',
    tracing: NEVER,
    lines: [`x-request-id: ${withDigit('b')}`],
    stat: 'client_enabled',
    digit: 'b',
  },
  {
    name: 'nobody outside has sampled it',
    tracing: NEVER,
    lines: [`x-request-id: ${withDigit('9')}`, OUTSIDE],
    stat: 'not_traceable',
    digit: '4',
  },
  {
    name: 'nobody outside has, though identifiers stay',
    tracing: NEVER,
    manager: { preserve_external_request_id: true },
    lines: [`x-request-id: ${withDigit('9')}`, OUTSIDE],
    stat: 'not_traceable',
    digit: '4',
  },
  {
    name: 'the identifier says nothing of it',
    manager: { request_id_extension: uuid({ pack_trace_reason: false }) },
    lines: [`x-request-id: ${ID}`],
    stat: 'random_sampling',
    digit: '4',
  },
  {
    name: 'the bound holds for all',
    tracing: { overall_sampling: { value: 0 } },
    lines: [`x-request-id: ${withDigit('a')}`],
    stat: 'not_traceable',
    digit: '4',
  },
  { name: 'the runtime turns it off', runtime: { 'tracing.global_enabled': 0 }, stat: 'not_traceable', digit: '4' },
  {
    name: 'the runtime samples',
    tracing: NEVER,
    runtime: { 'tracing.random_sampling': 100 },
    stat: 'random_sampling',
    digit: '9',
  },
  {
    name: 'the runtime refuses clients',
    tracing: NEVER,
    runtime: { 'tracing.client_enabled': 0 },
    lines: ['x-client-trace-id: a'],
    stat: 'not_traceable',
    digit: '4',
  },
  {
    name: 'the route samples',
    tracing: NEVER,
    route: { tracing: { random_sampling: { numerator: 100 } } },
    stat: 'random_sampling',
    digit: '9',
  },
  {
    name: 'the route does not',
    route: { tracing: { random_sampling: { numerator: 0 } } },
    stat: 'not_traceable',
    digit: '4',
  },
];

test('requests are chosen by chance, by wish and by those before, within a bound', async (t) => {
  // One proxy for all whose runtime is the same: each choice has a listener of its own.
  for (const runtime of new Set(CHOICES.map((choice) => choice.runtime ?? NO_RUNTIME))) {
    const choices = CHOICES.filter((choice) => (choice.runtime ?? NO_RUNTIME) === runtime);
    const upstream = await WireUpstream.answering(OK);
    const listeners = choices.map(({ tracing = {}, route = {}, manager = {} }, index) =>
      filteredListener([], [routeTo('/', {}, route)], {
        manager: { stat_prefix: `c${index}`, use_remote_address: true, tracing, ...manager },
        listener: { name: `c${index}` },
      }),
    );
    const proxy = await createProxy(
      bootstrapOf(listeners, [clusterAt('web', upstream.port)], {
        stats_flush_on_admin: true,
        layered_runtime: { layers: [{ name: 'static', static_layer: runtime }] },
      }),
    );
    t.after(async () => {
      await proxy.close();
      await upstream.close();
    });
    for (const [index, { name, lines = [], stat, digit }] of choices.entries()) {
      const client = new WireClient(proxy.listeners.get(`c${index}`)!.port);
      client.write(`${['GET / HTTP/1.1', 'host: shop.test', ...lines].join('\r\n')}\r\n\r\n`);
      await client.response();
      client.close();
      const scope = `http.c${index}.tracing.`;
      const counts = Object.entries(await proxy.stats.counters(scope)).filter(([, n]) => n > 0);
      assert.deepEqual(counts, [[scope + stat, 1]], name);
      const head = upstream.heads.at(-1);
      assert.equal(field(head, 'x-request-id')?.[14], digit, name);
      const isForced = name === 'a service forces it';
      assert.equal(field(head, 'x-envoy-force-trace'), isForced ? '1' : undefined, name);
    }
  }
});

test('what cannot say it is drawn for, too, and stays as it is', async (t) => {
  const { get, upstream, counts } = await tracedProxy(t, null, await unusedPort(), {});
  await get('/', ['x-request-id: mine']);
  assert.equal(field(upstream.heads[0], 'x-request-id'), 'mine');
  assert.deepEqual(await counts('http.main.tracing.'), { random_sampling: 1 });
});

test('a response names the request as its upstream knows it', async (t) => {
  const { get, upstream } = await tracedProxy(t, null, await unusedPort(), {
    manager: { always_set_request_id_in_response: true },
  });
  const { head } = await get();
  assert.equal(field(head, 'x-request-id')?.[14], '9');
  assert.equal(field(head, 'x-request-id'), field(upstream.heads[0], 'x-request-id'));
});

test('checks of health are counted and not told of', async (t) => {
  await using collector = await HttpCollector.start();
  const { get, counts } = await tracedProxy(t, ZIPKIN, collector.port, {
    manager: {
      http_filters: [
        filterOf('health_check.v3.HealthCheck', {
          pass_through_mode: false,
          headers: [{ name: ':path', string_match: { exact: '/health' } }],
        }),
        {
          name: 'envoy.filters.http.router',
          typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
        },
      ],
    },
  });
  await get('/health');
  await get('/a');
  await collector.until(1);
  assert.deepEqual(
    zipkinSpans(collector).map(({ tags }) => tags['http.url']),
    ['http://shop.test/a'],
  );
  assert.deepEqual(await counts('http.main.tracing.'), { random_sampling: 2, health_check: 1 });
});

test('spans have tags of every kind, of which the route has the last word', async (t) => {
  await using collector = await HttpCollector.start();
  const { get } = await tracedProxy(t, ZIPKIN, collector.port, {
    tracing: {
      max_path_tag_length: 5,
      custom_tags: [
        { tag: 'fixed', literal: { value: 'ü' } },
        { tag: 'home', environment: { name: 'WEIR_NO_SUCH_VARIABLE', default_value: 'none' } },
        { tag: 'nowhere', environment: { name: 'WEIR_NO_SUCH_VARIABLE' } },
        { tag: 'header', request_header: { name: 'X-Tag' } },
        { tag: 'missing', request_header: { name: 'x-none' } },
        { tag: 'else', request_header: { name: 'x-none', default_value: 'd' } },
        {
          tag: 'route',
          metadata: { kind: { route: {} }, metadata_key: { key: 'mine', path: [{ key: 'a' }, { key: 'b' }] } },
        },
        {
          tag: 'none',
          metadata: { kind: { request: {} }, metadata_key: { key: 'mine', path: [{ key: 'a' }] }, default_value: 'm' },
        },
        { tag: 'format', value: '%REQ(:METHOD)% %PROTOCOL%' },
        { tag: 'over', literal: { value: 'manager' } },
        { tag: 'component', literal: { value: 'edge' } },
      ],
    },
    routes: [
      routeTo(
        '/',
        {},
        {
          metadata: { filter_metadata: { mine: { a: { b: 'deep' } } } },
          tracing: { custom_tags: [{ tag: 'over', literal: { value: 'route' } }] },
        },
      ),
    ],
  });
  await get('/long/path', ['x-tag: from\xff'.slice(0, 11)]);
  await collector.until(1);
  const { tags } = zipkinSpans(collector)[0]!;
  const names = [
    'fixed',
    'home',
    'nowhere',
    'header',
    'missing',
    'else',
    'route',
    'none',
    'format',
    'over',
    'component',
    'http.url',
  ];
  assert.deepEqual(
    names.map((name) => tags[name]),
    [
      'ü',
      'none',
      undefined,
      'from',
      undefined,
      'd',
      'deep',
      'm',
      'GET HTTP/1.1',
      'route',
      'edge',
      'http://shop.test/long',
    ],
  );
});

test('operations have names, which go along with requests and come back with responses', async (t) => {
  await using collector = await HttpCollector.start();
  const routes = [
    routeTo('/quiet', {}, { decorator: { operation: 'quiet', propagate: false } }),
    routeTo(
      '/here',
      {},
      { decorator: { operation: 'loud' }, route: undefined as never, direct_response: { status: 200 } },
    ),
    routeTo('/loud', {}, { decorator: { operation: 'loud' } }),
    routeTo('/'),
  ];
  const incoming = await tracedProxy(t, ZIPKIN, collector.port, { routes });
  const told = async (path: string, lines: readonly string[] = []) =>
    field((await incoming.get(path, lines)).head, 'x-proxy-decorator-operation');
  assert.equal(await told('/quiet'), undefined);
  assert.equal(await told('/loud'), 'loud');
  assert.equal(await told('/here'), 'loud');
  assert.equal(await told('/loud', ['x-envoy-decorator-operation: theirs']), undefined);
  assert.equal(await told('/loud', ['x-envoy-decorator-operation: theirs', OUTSIDE]), 'loud');
  await collector.until(5);
  assert.deepEqual(
    zipkinSpans(collector).map(({ name }) => name),
    ['quiet', 'loud', 'loud', 'theirs', 'loud'],
  );
  assert.ok(incoming.upstream.heads.every((head) => field(head, 'x-envoy-decorator-operation') === undefined));
});

test('what goes out is called so, tells the other side, and hears of it', async (t) => {
  await using collector = await HttpCollector.start();
  const upstream = await WireUpstream.answering(
    'HTTP/1.1 200 OK\r\nx-envoy-decorator-operation: theirs\r\ncontent-length: 0\r\n\r\n',
  );
  const { get } = await tracedProxy(t, ZIPKIN, collector.port, {
    upstream,
    listener: { traffic_direction: 'OUTBOUND' },
    routes: [routeTo('/loud', {}, { decorator: { operation: 'loud' } }), routeTo('/')],
  });
  const { head } = await get('/loud');
  assert.equal(field(head, 'x-envoy-decorator-operation'), undefined);
  assert.equal(field(upstream.heads[0], 'x-proxy-decorator-operation'), 'loud');
  await collector.until(1);
  const [span] = zipkinSpans(collector);
  assert.deepEqual([span!.name, span!.kind], ['theirs', 'CLIENT']);
});

test('what goes out without a name is called after its host', async (t) => {
  await using collector = await HttpCollector.start();
  const { get } = await tracedProxy(t, ZIPKIN, collector.port, { listener: { traffic_direction: 'OUTBOUND' } });
  await get();
  await collector.until(1);
  assert.equal(zipkinSpans(collector)[0]!.name, 'egress shop.test');
});

test('logs and headers name the trace', async (t) => {
  const { get, upstream } = await tracedProxy(t, zipkin({ trace_id_128bit: true }), await unusedPort(), {
    routes: [
      routeTo(
        '/',
        {},
        {
          response_headers_to_add: [{ header: { key: 'x-trace', value: '%TRACE_ID% %SPAN_ID%' } }],
        },
      ),
    ],
  });
  const { head } = await get();
  const sent = upstream.heads[0];
  assert.equal(field(head, 'x-trace'), `${field(sent, 'x-b3-traceid')} ${field(sent, 'x-b3-spanid')}`);
});

test('a request that has no route has a span', async (t) => {
  await using collector = await HttpCollector.start();
  const { get } = await tracedProxy(t, ZIPKIN, collector.port, { routes: [routeTo('/only')] });
  assert.equal((await get('/else')).status, 404);
  await collector.until(1);
  const { tags } = zipkinSpans(collector)[0]!;
  assert.deepEqual(
    ['http.status_code', 'response_flags', 'upstream_cluster', 'http.url'].map((name) => tags[name]),
    ['404', 'NR', undefined, 'http://shop.test/else'],
  );
});

test('the tracer of the bootstrap is that of connection managers without one', async (t) => {
  await using collector = await HttpCollector.start();
  const { get } = await tracedProxy(t, null, collector.port, { bootstrap: { tracing: { http: ZIPKIN } } });
  await get();
  await collector.until(1);
});

test('spans wait for others, or for their time', async (t) => {
  await using collector = await HttpCollector.start();
  const runtime = { 'tracing.zipkin.min_flush_spans': 3, 'tracing.zipkin.flush_interval_ms': 1 };
  const traced = await tracedProxy(t, ZIPKIN, collector.port, { runtime });
  await traced.get();
  await collector.until(1);
  await untilCounts(traced, 'tracing.zipkin.', { spans_sent: 1, timer_flushed: 1, reports_sent: 1 });
});

test('a collector that refuses, hangs or is away costs spans and no request', async (t) => {
  await using collector = await HttpCollector.start();
  collector.answer = (response) => response.writeHead(500).end();
  const refusing = await tracedProxy(t, ZIPKIN, collector.port);
  assert.equal((await refusing.get()).status, 200);
  await untilCounts(refusing, 'tracing.zipkin.', { spans_sent: 1, reports_dropped: 1, spans_dropped: 1 });
  const away = await tracedProxy(t, ZIPKIN, await unusedPort());
  assert.equal((await away.get()).status, 200);
  await untilCounts(away, 'tracing.zipkin.', { spans_sent: 1, reports_failed: 1, spans_dropped: 1 });
  collector.answer = () => {};
  const hanging = await tracedProxy(t, ZIPKIN, collector.port, { runtime: { 'tracing.zipkin.request_timeout': 50 } });
  assert.equal((await hanging.get()).status, 200);
  await untilCounts(hanging, 'tracing.zipkin.', { spans_sent: 1, reports_failed: 1, spans_dropped: 1 });
});

test('spans go to a Datadog agent', async (t) => {
  await using collector = await HttpCollector.start();
  const { get, upstream } = await tracedProxy(t, datadog(), collector.port);
  await get('/', [
    'x-datadog-trace-id: 18446744073709551615',
    'x-datadog-parent-id: 17',
    'x-datadog-sampling-priority: 2',
  ]);
  await get('/', ['x-datadog-trace-id: 18446744073709551616']);
  await get('/', ['x-datadog-trace-id: 5', 'x-datadog-sampling-priority: -1']);
  await collector.until(2);
  const [first, second, third] = upstream.heads;
  assert.equal(field(first, 'x-datadog-trace-id'), '18446744073709551615');
  assert.equal(field(first, 'x-datadog-sampling-priority'), '2');
  assert.notEqual(field(first, 'x-datadog-parent-id'), '17');
  assert.notEqual(field(second, 'x-datadog-trace-id'), '18446744073709551616');
  assert.equal(field(second, 'x-datadog-sampling-priority'), '1');
  assert.deepEqual([field(third, 'x-datadog-trace-id'), field(third, 'x-datadog-sampling-priority')], ['5', '-1']);
  const { url, headers, body } = collector.reports[0]!;
  assert.deepEqual(
    [url, headers['content-type'], headers['x-datadog-trace-count']],
    ['/v0.4/traces', 'application/msgpack', '1'],
  );
  // A list of one trace of one span of twelve fields.
  assert.deepEqual([...body.subarray(0, 3)], [0x91, 0x91, 0x8c]);
  assert.ok(
    body.includes(
      Buffer.concat([Buffer.from([0xa8]), Buffer.from('trace_id'), Buffer.from([0xcf]), Buffer.alloc(8, 0xff)]),
    ),
  );
  assert.ok(
    body.includes(
      Buffer.concat([Buffer.from([0xa9]), Buffer.from('parent_id'), Buffer.from([0xcf, 0, 0, 0, 0, 0, 0, 0, 17])]),
    ),
  );
});

async function faultsOf(tracing: JsonObject, fields: JsonObject = {}): Promise<string> {
  const listener = filteredListener([], [routeTo('/', {}, fields)], { manager: { tracing } });
  try {
    const proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', 1), clusterAt('spans', 1)]));
    await proxy.close();
    return '';
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message;
  }
}

const WRONG: readonly (readonly [name: string, tracing: JsonObject, said: RegExp])[] = [
  [
    'a cluster that is not there',
    { provider: zipkin({ collector_cluster: 'span' }) },
    /provider.typed_config.collector_cluster: cluster "span" does not exist; did you mean "spans"/,
  ],
  [
    'a path without a slash',
    { provider: zipkin({ collector_endpoint: 'api' }) },
    /collector_endpoint: has to be a path with its slash, not "api"/,
  ],
  [
    'the first version of the format',
    { provider: zipkin({ collector_endpoint_version: 0 }) },
    /collector_endpoint_version: has to be HTTP_JSON or HTTP_PROTO/,
  ],
  ['no service at all', { provider: openTelemetry({}) }, /typed_config: needs one of grpc_service and http_service/],
  [
    'two services',
    { provider: openTelemetry({ ...OTLP_HTTP, grpc_service: { envoy_grpc: { cluster_name: 'spans' } } }) },
    /needs one of grpc_service and http_service/,
  ],
  [
    'a URI without a host',
    { provider: openTelemetry({ http_service: { http_uri: { uri: '/v1', cluster: 'spans', timeout: '1s' } } }) },
    /http_uri.uri: "\/v1" is no URI of a host and a path/,
  ],
  [
    'an operator that is not there',
    { operation: '%REQS(:path)%' },
    /tracing.operation: unknown command operator "REQS"/,
  ],
  [
    'a tag with such an operator',
    { custom_tags: [{ tag: 'a', value: '%NO%' }] },
    /custom_tags\[0\].value: unknown command operator "NO"/,
  ],
];

for (const [name, tracing, said] of WRONG) {
  test(`refused by name: ${name}`, async () => {
    assert.match(await faultsOf(tracing), said);
  });
}

test('a tracer that this build lacks is left out with a warning', async (t) => {
  const { get, counts } = await tracedProxy(t, { name: 'envoy.tracers.xray' }, await unusedPort());
  assert.equal((await get()).status, 200);
  assert.deepEqual(await counts('http.main.tracing.'), { random_sampling: 1 });
});
