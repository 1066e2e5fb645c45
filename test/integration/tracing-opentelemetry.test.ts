// Traces for OpenTelemetry through the whole proxy: traceparent in and out, spans by OTLP over both transports, samplers, and
// spans of attempts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { encoded, HttpCollector, OtlpCollector, otlpSpans } from '../support/collectors.ts';
import { routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { field, OK, OTLP_GRPC, OTLP_HTTP, openTelemetry, tracedProxy, untilCounts } from '../support/traced-proxy.ts';
import { unusedPort, WireUpstream } from '../support/wire.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const SAMPLERS = 'type.googleapis.com/envoy.extensions.tracers.opentelemetry.samplers.v3';
const DETECTORS = 'type.googleapis.com/envoy.extensions.tracers.opentelemetry.resource_detectors.v3';

const named = (name: string, type: string, fields: JsonObject = {}): JsonObject => ({
  name,
  typed_config: { '@type': type, ...fields },
});

test('spans go to a collector over gRPC, with the trace that the request came with', async (t) => {
  await using collector = await OtlpCollector.start();
  const provider = openTelemetry({
    grpc_service: {
      envoy_grpc: { cluster_name: 'spans' },
      timeout: '5s',
      initial_metadata: [{ key: 'x-token', value: 't' }],
    },
  });
  const { get, upstream, counts } = await tracedProxy(t, provider, collector.port, { isGrpc: true });
  await get('/', [`traceparent: 00-${TRACE}-${SPAN}-01`, 'tracestate: a=1', 'tracestate: b=2']);
  await collector.until(1);
  assert.equal(collector.calls[0]!.metadata['x-token'], 't');
  const { resource } = otlpSpans(collector.calls[0]!.body);
  assert.equal(resource['service.name'], 'edge');
  const [span] = collector.spans;
  assert.deepEqual([span!.traceId, span!.parentId, span!.state, span!.kind], [TRACE, SPAN, 'a=1, b=2', 2]);
  assert.deepEqual([span!.name, span!.tags['http.status_code'], span!.status], ['ingress', '200', 0]);
  assert.ok(span!.endMs >= span!.startMs && Math.abs(span!.startMs - Date.now()) < 60_000);
  assert.equal(field(upstream.heads[0], 'traceparent'), `00-${TRACE}-${span!.spanId}-01`);
  assert.equal(field(upstream.heads[0], 'tracestate'), 'a=1, b=2');
  await untilEqual(1, async () => (await counts('tracing.opentelemetry.')).reports_sent, 'reports that were taken');
});

test('spans go to a collector over HTTP, and tell of the resource', async (t) => {
  await using collector = await HttpCollector.start();
  const provider = openTelemetry({
    ...OTLP_HTTP,
    resource_detectors: [
      named('fixed', `${DETECTORS}.StaticConfigResourceDetectorConfig`, {
        attributes: { team: 'shop', 'service.name': 'own' },
      }),
      named('environment', `${DETECTORS}.EnvironmentResourceDetectorConfig`),
    ],
  });
  const { get } = await tracedProxy(t, provider, collector.port);
  await get();
  await collector.until(1);
  const { url, headers, body } = collector.reports[0]!;
  assert.deepEqual([url, headers.host, headers['content-type']], ['/v1/traces', 'otel.test', 'application/x-protobuf']);
  const { spans, resource } = otlpSpans(body);
  assert.equal(spans.length, 1);
  assert.deepEqual([resource.team, resource['service.name']], ['shop', 'own']);
});

test('a traceparent that breaks the rules begins a new trace', async (t) => {
  const { get, upstream } = await tracedProxy(t, openTelemetry(OTLP_HTTP), await unusedPort());
  const wrong = [
    `00-${TRACE}-${SPAN}`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-01-x`,
  ];
  for (const text of wrong) {
    await get('/', [`traceparent: ${text}`, 'tracestate: a=1']);
    const told = field(upstream.heads.at(-1), 'traceparent') ?? '';
    assert.match(told, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/, text);
    assert.ok(!told.includes(TRACE), text);
    assert.equal(field(upstream.heads.at(-1), 'tracestate'), undefined, text);
  }
  await get('/', [`traceparent: 01-${TRACE}-${SPAN}-01-more`]);
  assert.ok(field(upstream.heads.at(-1), 'traceparent')?.startsWith(`00-${TRACE}-`), 'a later version');
});

test('a sampler decides in place of the connection manager, or as the request says', async (t) => {
  const ratio = (numerator: number) =>
    named('r', `${SAMPLERS}.TraceIdRatioBasedSamplerConfig`, { sampling_percentage: { numerator } });
  const parentBased = (wrapped_sampler: JsonObject) =>
    named('p', `${SAMPLERS}.ParentBasedSamplerConfig`, { wrapped_sampler });
  const always = named('a', `${SAMPLERS}.AlwaysOnSamplerConfig`);
  const lines = ['', `traceparent: 00-${TRACE}-${SPAN}-00`, `traceparent: 00-${TRACE}-${SPAN}-01`];
  // TRACE draws 0x8448… of the half that is random: 51.7 %.
  const cases: readonly (readonly [sampler: JsonObject, flags: readonly string[]])[] = [
    [always, ['01', '01', '01']],
    [ratio(0), ['00', '00', '00']],
    [ratio(51), ['either', '00', '00']],
    [ratio(52), ['either', '01', '01']],
    [parentBased(ratio(0)), ['00', '00', '01']],
    [parentBased(always), ['01', '00', '01']],
  ];
  for (const [sampler, flags] of cases) {
    const provider = openTelemetry({ ...OTLP_HTTP, sampler });
    const tracing = { random_sampling: { value: flags[0] === '00' ? 100 : 0 } };
    const { get, upstream } = await tracedProxy(t, provider, await unusedPort(), { tracing });
    for (const line of lines) await get('/', line === '' ? [] : [line]);
    const told = upstream.heads.map((head) => field(head, 'traceparent')!.slice(-2));
    const wanted = flags.map((flag, index) => (flag === 'either' ? told[index] : flag));
    assert.deepEqual(told, wanted, JSON.stringify(sampler));
  }
});

test('each attempt has a span of its own below that of its request', async (t) => {
  await using collector = await OtlpCollector.start();
  let requests = 0;
  const heads: string[] = [];
  const upstream = Object.assign(
    await WireUpstream.start((socket) => {
      socket.on('data', (bytes: Buffer) => {
        heads.push(bytes.toString());
        requests += 1;
        socket.write(requests === 1 ? 'HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n' : OK);
      });
    }),
    { heads },
  );
  const { get } = await tracedProxy(t, openTelemetry(OTLP_GRPC), collector.port, {
    isGrpc: true,
    upstream,
    tracing: {
      spawn_upstream_span: true,
      operation: 'op %REQ(:path)%',
      upstream_operation: 'up %REQ(:path)%',
      custom_tags: [{ tag: 'mine', literal: { value: 'x' } }],
    },
    routes: [routeTo('/', {}, { route: { cluster: 'web', retry_policy: { retry_on: '5xx', num_retries: 2 } } })],
  });
  assert.equal((await get('/a')).status, 200);
  await untilEqual(3, () => collector.spans.length, 'spans');
  const request = collector.spans.find(({ kind }) => kind === 2)!;
  const attempts = collector.spans.filter(({ kind }) => kind === 3);
  assert.equal(request.name, 'op /a');
  assert.deepEqual(
    attempts.map(({ traceId, parentId, name, tags, status }) => [
      traceId,
      parentId,
      name,
      tags['http.status_code'],
      tags['retry.count'],
      tags.error,
      tags.mine,
      tags['peer.address'],
      tags['http.protocol'],
      status,
    ]),
    [
      [
        request.traceId,
        request.spanId,
        'up /a',
        '503',
        undefined,
        'true',
        'x',
        `127.0.0.1:${upstream.port}`,
        'HTTP/1.1',
        2,
      ],
      [
        request.traceId,
        request.spanId,
        'up /a',
        '200',
        '1',
        undefined,
        'x',
        `127.0.0.1:${upstream.port}`,
        'HTTP/1.1',
        0,
      ],
    ],
  );
  assert.deepEqual(
    heads.map((head) => field(head, 'traceparent')),
    attempts.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
  );
});

test('an attempt that fails says why', async (t) => {
  await using collector = await OtlpCollector.start();
  const upstream = Object.assign(await WireUpstream.start((socket) => socket.destroy()), { heads: [] });
  const { get } = await tracedProxy(t, openTelemetry(OTLP_GRPC), collector.port, {
    isGrpc: true,
    upstream,
    tracing: { spawn_upstream_span: true },
  });
  assert.equal((await get('/a')).status, 503);
  await untilEqual(2, () => collector.spans.length, 'spans');
  const [attempt, request] = collector.spans.toSorted((a, b) => b.kind - a.kind);
  assert.equal(attempt!.name, 'router web egress');
  assert.deepEqual([attempt!.tags.error, attempt!.tags['error.reason']], ['true', 'connection_termination']);
  assert.deepEqual([request!.tags.error, request!.tags.response_flags, request!.status], ['true', 'UC', 2]);
});

test('a collector that takes a part of a report has the rest counted', async (t) => {
  await using collector = await OtlpCollector.start();
  collector.answer = encoded('ExportTraceServiceResponse', { partial_success: { rejected_spans: 1 } });
  const runtime = { 'tracing.opentelemetry.min_flush_spans': 3 };
  const traced = await tracedProxy(t, openTelemetry(OTLP_GRPC), collector.port, { isGrpc: true, runtime });
  for (let count = 0; count < 3; count += 1) await traced.get();
  await collector.until(1);
  assert.equal(collector.spans.length, 3);
  await untilCounts(traced, 'tracing.opentelemetry.', { spans_sent: 3, reports_sent: 1, spans_dropped: 1 });
});
