// Traces for Zipkin through the whole proxy: the headers of B3 in and out, the spans that its collector gets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpCollector, plain, zipkinSpans } from '../support/collectors.ts';
import { field, tracedProxy, untilCounts, ZIPKIN, zipkin } from '../support/traced-proxy.ts';

const TRACE = '463ac35c9f6413ad48485a3953bb6124';
const SPAN = 'a2fb4a1d1a96d312';

test('a request begins a trace, and its span tells of it', async (t) => {
  await using collector = await HttpCollector.start();
  const { get, upstream, counts } = await tracedProxy(t, ZIPKIN, collector.port);
  const beforeMs = Date.now();
  assert.equal((await get('/a?b=c', ['user-agent: probe', 'x-client-trace-id: mine'])).status, 200);
  await collector.until(1);
  const { method, url, headers } = collector.reports[0]!;
  assert.deepEqual(
    [method, url, headers.host, headers['content-type']],
    ['POST', '/api/v2/spans', 'spans', 'application/json'],
  );
  const [span] = zipkinSpans(collector);
  assert.match(span!.traceId, /^[0-9a-f]{16}$/);
  assert.equal(span!.parentId, undefined);
  assert.equal(span!.shared, undefined);
  assert.deepEqual([span!.kind, span!.name, span!.localEndpoint.serviceName], ['SERVER', 'ingress', 'shop']);
  assert.ok(Math.abs(span!.timestamp / 1000 - beforeMs) < 60_000);
  assert.ok(span!.duration >= 1 && span!.duration < 60e6);
  const head = upstream.heads[0];
  assert.equal(field(head, 'x-b3-traceid'), span!.traceId);
  assert.equal(field(head, 'x-b3-spanid'), span!.id);
  assert.equal(field(head, 'x-b3-sampled'), '1');
  const id = field(head, 'x-request-id');
  assert.equal(id?.[14], 'b');
  assert.deepEqual(span!.tags, {
    component: 'proxy',
    'guid:x-request-id': id,
    'http.url': 'http://shop.test/a?b=c',
    'http.method': 'GET',
    downstream_cluster: '-',
    user_agent: 'probe',
    'http.protocol': 'HTTP/1.1',
    'peer.address': '127.0.0.1',
    'guid:x-client-trace-id': 'mine',
    request_size: '0',
    response_size: '2',
    upstream_cluster: 'web',
    'upstream_cluster.name': 'web',
    upstream_address: `127.0.0.1:${upstream.port}`,
    'http.status_code': '200',
    response_flags: '-',
    node_id: 'n1',
    zone: 'z1',
  });
  assert.deepEqual(await counts('http.main.tracing.'), { client_enabled: 1 });
  await untilCounts({ counts }, 'tracing.zipkin.', { spans_sent: 1, reports_sent: 1 });
});

test('a request goes on with its trace, and shares the span of its client', async (t) => {
  await using collector = await HttpCollector.start();
  const { get, upstream } = await tracedProxy(t, ZIPKIN, collector.port);
  await get('/', [`x-b3-traceid: ${TRACE.toUpperCase()}`, `x-b3-spanid: ${SPAN}`, 'x-b3-sampled: 1']);
  await collector.until(1);
  const [span] = zipkinSpans(collector);
  assert.deepEqual([span!.traceId, span!.id, span!.parentId, span!.shared], [TRACE, SPAN, undefined, true]);
  assert.deepEqual([field(upstream.heads[0], 'x-b3-traceid'), field(upstream.heads[0], 'x-b3-spanid')], [TRACE, SPAN]);
});

test('a span of its own leads to that of the client', async (t) => {
  await using collector = await HttpCollector.start();
  const { get, upstream } = await tracedProxy(t, zipkin({ shared_span_context: false }), collector.port);
  await get('/', [`b3: ${TRACE}-${SPAN}-d`]);
  await collector.until(1);
  const [span] = zipkinSpans(collector);
  assert.deepEqual([span!.traceId, span!.parentId, span!.shared, span!.debug], [TRACE, SPAN, undefined, true]);
  assert.notEqual(span!.id, SPAN);
  const head = upstream.heads[0];
  assert.deepEqual(
    ['b3', 'x-b3-spanid', 'x-b3-parentspanid', 'x-b3-sampled', 'x-b3-flags'].map((name) => field(head, name)),
    [undefined, span!.id, SPAN, '1', '1'],
  );
});

test('a trace that its client does not want reported is passed on and not told of', async (t) => {
  await using collector = await HttpCollector.start();
  const { get, upstream, counts } = await tracedProxy(t, ZIPKIN, collector.port);
  await get('/', ['b3: 0']);
  await get('/', [`b3: ${TRACE}-${SPAN}-0`]);
  await get('/', [`b3: ${TRACE}-${SPAN}-1`]);
  await collector.until(1);
  assert.deepEqual(
    upstream.heads.map((head) => field(head, 'x-b3-sampled')),
    ['0', '0', '1'],
  );
  await untilCounts({ counts }, 'tracing.zipkin.', { spans_sent: 1, reports_sent: 1 });
});

test('what breaks the rules of B3 begins a new trace', async (t) => {
  await using collector = await HttpCollector.start();
  const { get, upstream } = await tracedProxy(t, zipkin({ trace_id_128bit: true }), collector.port);
  for (const lines of [['x-b3-traceid: xyz', `x-b3-spanid: ${SPAN}`], [`x-b3-traceid: ${TRACE}`], ['b3: nonsense-1']]) {
    await get('/', lines);
  }
  await collector.until(3);
  for (const head of upstream.heads) {
    assert.match(field(head, 'x-b3-traceid') ?? '', /^[0-9a-f]{32}$/);
    assert.notEqual(field(head, 'x-b3-traceid'), TRACE);
  }
});

test('traceparent is understood and written where it is asked for', async (t) => {
  await using collector = await HttpCollector.start();
  const provider = zipkin({ trace_context_option: 'USE_B3_WITH_W3C_PROPAGATION' });
  const { get, upstream } = await tracedProxy(t, provider, collector.port);
  await get('/', [`traceparent: 00-${TRACE}-${SPAN}-01`]);
  assert.equal(field(upstream.heads[0], 'traceparent'), `00-${TRACE}-${SPAN}-01`);
  assert.equal(field(upstream.heads[0], 'x-b3-traceid'), TRACE);
});

test('spans go as messages of protocol buffers, to a service with headers of its own', async (t) => {
  await using collector = await HttpCollector.start();
  const { get } = await tracedProxy(
    t,
    zipkin({
      collector_cluster: '',
      collector_endpoint: '',
      collector_endpoint_version: 'HTTP_PROTO',
      collector_service: {
        http_uri: { uri: 'https://zipkin.test/spans', cluster: 'spans', timeout: '1s' },
        request_headers_to_add: [{ header: { key: 'X-Key', value: 'k' } }],
      },
    }),
    collector.port,
    { tracing: { verbose: true } },
  );
  await get('/', [`x-b3-traceid: ${TRACE}`, `x-b3-spanid: ${SPAN}`]);
  await collector.until(1);
  const { url, headers, body } = collector.reports[0]!;
  assert.deepEqual(
    [url, headers.host, headers['x-key'], headers['content-type']],
    ['/spans', 'zipkin.test', 'k', 'application/x-protobuf'],
  );
  const [span] = plain('ListOfSpans', body).spans as {
    trace_id: Buffer;
    id: Buffer;
    kind: number;
    name: string;
    timestamp: string;
    tags: Record<string, string>;
    shared: boolean;
    annotations: { value: string }[];
  }[];
  assert.deepEqual([span!.trace_id.toString('hex'), span!.id.toString('hex'), span!.kind], [TRACE, SPAN, 2]);
  assert.deepEqual([span!.name, span!.shared, span!.tags['http.status_code']], ['ingress', true, '200']);
  assert.ok(Math.abs(Number(span!.timestamp) / 1000 - Date.now()) < 60_000);
  assert.deepEqual(
    span!.annotations.map(({ value }) => value),
    [
      'last_downstream_rx_byte_received',
      'last_upstream_tx_byte_sent',
      'first_upstream_rx_byte_received',
      'last_downstream_tx_byte_sent',
    ],
  );
});
