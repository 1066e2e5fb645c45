// Faults that are injected into requests, through the whole proxy: who gets them, what they do, and what is counted.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'fault.v3.HTTPFault';
const ALL = { numerator: 100 };
const NONE = { numerator: 0 };
const BODY = 'x'.repeat(60_000);
/** What is asked for takes this long at 256 KiB a second, less the piece that goes at once. */
const SLOW_MS = 1000 * (BODY.length / (256 * 1024) - 1 / 16);

function fault(prefix: string, fields: JsonObject): JsonObject {
  return routeTo(prefix, { fault: typed(TYPE, fields) });
}

const abort = (fields: JsonObject = { http_status: 418 }): JsonObject => ({ abort: { percentage: ALL, ...fields } });
const delay = (fixed_delay: string, percentage: JsonObject = ALL): JsonObject => ({
  delay: { fixed_delay, percentage },
});

const ROUTES = [
  fault('/abort', { ...abort(), filter_metadata: { reason: 'drill' } }),
  fault('/grpc', abort({ grpc_status: 7 })),
  fault('/none', { ...abort({ http_status: 418, percentage: NONE }), ...delay('3600s', NONE) }),
  fault('/asked', {
    abort: { header_abort: {}, percentage: ALL },
    delay: { header_delay: {}, percentage: ALL },
    response_rate_limit: { header_limit: {}, percentage: ALL },
  }),
  fault('/unasked', { abort: { header_abort: {}, percentage: NONE } }),
  fault('/delay', delay('0.05s')),
  fault('/both', { ...delay('0.05s'), ...abort() }),
  fault('/for-ever', { ...delay('3600s'), max_active_faults: 1 }),
  fault('/matched', { ...abort(), headers: [{ name: 'x-fail', string_match: { exact: 'yes' } }] }),
  fault('/node', { ...abort(), downstream_nodes: ['a', 'b'] }),
  fault('/cluster', { ...abort(), upstream_cluster: 'web' }),
  fault('/elsewhere', { ...abort(), upstream_cluster: 'other' }),
  fault('/quiet', { ...abort(), disable_downstream_cluster_stats: true }),
  fault('/slow', { response_rate_limit: { fixed_limit: { limit_kbps: 256 }, percentage: ALL } }),
  fault('/runtime', { ...abort({ http_status: 418, percentage: NONE }), abort_percent_runtime: 'my.percent' }),
  routeTo('/'),
];
const RUNTIME = {
  my: { percent: 100 },
  fault: { http: { special: { abort: { http_status: 429 } } } },
};
const REASONS =
  '%LOCAL_REPLY_BODY%|%RESPONSE_FLAGS%|%RESPONSE_CODE_DETAILS%|%DYNAMIC_METADATA(envoy.filters.http.fault:reason)%';

describe('the fault filter', () => {
  let upstream: WireUpstream;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;
  let port = 0;

  before(async () => {
    upstream = await WireUpstream.answering(
      `HTTP/1.1 200 OK\r\nx-upstream: yes\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`,
    );
    const manager = { local_reply_config: { body_format: { text_format: REASONS } } };
    // What holds where a route says nothing.
    const own = filterOf(TYPE, { ...abort({ http_status: 451 }), headers: [{ name: 'x-own' }] });
    const fields = {
      stats_flush_on_admin: true,
      layered_runtime: { layers: [{ name: 'own', static_layer: RUNTIME }] },
    };
    const listener = filteredListener([own], ROUTES, { manager });
    const edge = filteredListener([own], ROUTES, {
      listener: { name: 'edge' },
      manager: {
        use_remote_address: true,
        local_reply_config: {
          mappers: [{ filter: { response_flag_filter: { flags: ['FI'] } }, status_code: 503 }],
        },
      },
    });
    proxy = await createProxy(bootstrapOf([listener, edge], [clusterAt('web', upstream.port)], fields));
    port = proxy.listeners.get('main')!.port;
    client = new WireClient(port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    await upstream?.close();
  });

  function request(path: string, fields: Record<string, string> = {}): string {
    const lines = Object.entries({ host: 'a', ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
    return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
  }

  async function ask(path: string, fields: Record<string, string> = {}) {
    const startedMs = performance.now();
    const { status, head, body } = await client.write(request(path, fields)).response();
    return { status, head, body, ms: performance.now() - startedMs };
  }

  const statusOf = async (path: string, fields: Record<string, string> = {}) => (await ask(path, fields)).status;
  const count = (name: string): number => proxy.stats.value(`http.main.fault.${name}`) ?? 0;

  it('answers in place of the upstream, and says so', async () => {
    const before = count('aborts_injected');
    const { status, body } = await ask('/abort');
    assert.deepEqual([status, body], [418, 'fault filter abort|FI|fault_filter_abort|drill']);
    assert.equal(count('aborts_injected'), before + 1);
    assert.equal(await statusOf('/', { 'x-own': '1' }), 451);
    assert.equal(await statusOf('/'), 200);
  });

  it('answers gRPC by the status of gRPC, others by a success', async () => {
    const { status, head } = await ask('/grpc', { 'content-type': 'application/grpc' });
    assert.equal(status, 200);
    assert.match(head, /\r\ngrpc-status: 7\r\n/);
    assert.doesNotMatch((await ask('/grpc')).head, /grpc-status|x-upstream/);
  });

  it('delays what goes to the upstream, and what fails', async () => {
    const before = count('delays_injected');
    const delayed = await ask('/delay');
    assert.deepEqual([delayed.status, delayed.body.length], [200, BODY.length]);
    assert.ok(delayed.ms >= 49, `${delayed.ms} ms`);
    const both = await ask('/both');
    assert.deepEqual([both.status, both.body], [418, 'fault filter abort|DI,FI|fault_filter_abort|-']);
    assert.ok(both.ms >= 49, `${both.ms} ms`);
    assert.equal(count('delays_injected'), before + 2);
  });

  it('leaves alone what no share falls on', async () => {
    assert.equal(await statusOf('/none'), 200);
    assert.equal(await statusOf('/unasked', { 'x-envoy-fault-abort-request': '418' }), 200);
  });

  it('does what requests ask for, in any spelling, where it may', async () => {
    assert.equal(await statusOf('/asked'), 200);
    assert.equal(await statusOf('/asked', { 'x-envoy-fault-abort-request': '503' }), 503);
    assert.equal(await statusOf('/asked', { 'x-proxy-fault-abort-request': '404' }), 404);
    assert.equal(await statusOf('/asked', { 'x-envoy-fault-abort-request': '600' }), 200);
    assert.equal(await statusOf('/asked', { 'x-envoy-fault-abort-request': 'no' }), 200);
    const none = { 'x-envoy-fault-abort-request': '503', 'x-envoy-fault-abort-request-percentage': '0' };
    assert.equal(await statusOf('/asked', none), 200);
    const grpc = { 'x-envoy-fault-abort-grpc-request': '14', 'content-type': 'application/grpc' };
    assert.match((await ask('/asked', grpc)).head, /\r\ngrpc-status: 14\r\n/);
    assert.ok((await ask('/asked', { 'x-envoy-fault-delay-request': '50' })).ms >= 49);
    assert.ok((await ask('/asked', { 'x-envoy-fault-throughput-response': '256' })).ms >= SLOW_MS);
  });

  it('is meant for some requests only', async () => {
    assert.equal(await statusOf('/matched'), 200);
    assert.equal(await statusOf('/matched', { 'x-fail': 'yes' }), 418);
    assert.equal(await statusOf('/node'), 200);
    assert.equal(await statusOf('/node', { 'x-envoy-downstream-service-node': 'b' }), 418);
    assert.equal(await statusOf('/cluster'), 418);
    assert.equal(await statusOf('/elsewhere'), 200);
  });

  it('counts by the cluster of the client, whose own runtime keys come first', async () => {
    const fields = { 'x-envoy-downstream-service-cluster': 'special' };
    assert.equal(await statusOf('/abort', fields), 429);
    await untilEqual(1, () => count('special.aborts_injected'), 'the count of the cluster');
    assert.equal(await statusOf('/quiet', fields), 429);
    assert.equal(await statusOf('/abort', fields), 429);
    await untilEqual(2, () => count('special.aborts_injected'), 'the count of the cluster');
    assert.equal(await statusOf('/runtime'), 418);
  });

  it('has no more faults at a time than it may, and none of clients that have left', async () => {
    const overflow = count('faults_overflow');
    await untilEqual(0, () => count('active_faults'), 'active faults');
    const waiting = new WireClient(port).write(request('/for-ever'));
    await untilEqual(1, () => count('active_faults'), 'active faults');
    assert.equal(await statusOf('/for-ever'), 200, 'one too many goes by');
    assert.equal(count('faults_overflow'), overflow + 1);
    waiting.close();
    await untilEqual(0, () => count('active_faults'), 'active faults');
  });

  it('slows responses down, and leaves them as they are', async () => {
    const before = count('response_rl_injected');
    const { status, head, body, ms } = await ask('/slow');
    assert.deepEqual([status, body === BODY], [200, true]);
    assert.match(head, new RegExp(`content-length: ${BODY.length}\r\n`));
    assert.ok(ms >= SLOW_MS, `${ms} ms`);
    assert.equal(count('response_rl_injected'), before + 1);
  });

  it('believes no names of clients from outside, and lets mappers have the last word', async () => {
    const atEdge = new WireClient(proxy.listeners.get('edge')!.port);
    const node = { 'x-envoy-downstream-service-node': 'b' };
    const outside = request('/node', { ...node, 'x-forwarded-for': '203.0.113.1' });
    assert.equal((await atEdge.write(outside).response()).status, 200);
    assert.equal((await atEdge.write(request('/node', node)).response()).status, 503);
    const grpc = request('/grpc', { 'content-type': 'application/grpc' });
    assert.match((await atEdge.write(grpc).response()).head, /\r\ngrpc-status: 14\r\n/);
    atEdge.close();
  });

  it('does the same over HTTP/2', async (t) => {
    const http2 = new Http2Client(t, port);
    assert.equal((await http2.get('/abort')).status, 418);
    const startedMs = performance.now();
    assert.equal((await http2.get('/slow')).body, BODY);
    assert.ok(performance.now() - startedMs >= SLOW_MS);
    assert.equal((await http2.get('/delay')).status, 200);
  });
});
