// Bodies that go on no faster than they may, through the whole proxy: what is limited, how it looks then, and what is counted.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { WireClient } from '../support/wire.ts';

const TYPE = 'bandwidth_limit.v3.BandwidthLimit';
const KIB = 1024;
const RATE_KIB = 256;
const BODY = 'x'.repeat(64 * KIB);
/** It takes five fills, one of them at once, the next perhaps a moment later. */
const SLOW_MS = 3 * 50 - 1;
const RUNTIME = { my: { bandwidth: false } };

function limited(prefix: string, fields: JsonObject): JsonObject {
  const name = prefix.slice(1);
  return routeTo(prefix, { bandwidth_limit: typed(TYPE, { stat_prefix: name, limit_kbps: RATE_KIB, ...fields }) });
}

const ROUTES = [
  limited('/response', { enable_mode: 'RESPONSE' }),
  limited('/request', { enable_mode: 'REQUEST' }),
  limited('/timed', { enable_mode: 'REQUEST' }),
  limited('/shared', { enable_mode: 'RESPONSE', fill_interval: '0.02s' }),
  limited('/told', { enable_mode: 'REQUEST_AND_RESPONSE', enable_response_trailers: true }),
  limited('/named', { enable_mode: 'RESPONSE', enable_response_trailers: true, response_trailer_prefix: 'X-My' }),
  limited('/crawl', { enable_mode: 'REQUEST_AND_RESPONSE', limit_kbps: 1 }),
  limited('/off', { enable_mode: 'DISABLED', limit_kbps: 1 }),
  limited('/runtime', {
    enable_mode: 'REQUEST_AND_RESPONSE',
    limit_kbps: 1,
    runtime_enabled: { default_value: true, runtime_key: 'my.bandwidth' },
  }),
  limited('/brisk', { enable_mode: 'REQUEST_AND_RESPONSE', limit_kbps: 2_000_000 }),
  { match: { prefix: '/own-words' }, direct_response: { status: 200, body: { inline_string: 'y'.repeat(4 * KIB) } } },
  routeTo('/'),
];

function upstream(): Server {
  return createServer(async (request, response) => {
    const { url = '' } = request;
    const sent = await text(request).catch(() => '');
    if (request.method === 'POST') response.setHeader('x-received', sent.length);
    if (url.endsWith('/chunks')) response.write(BODY.slice(0, 1000));
    else if (url.endsWith('/empty')) response.statusCode = 204;
    else response.setHeader('content-length', BODY.length);
    if (url.endsWith('/trailers')) {
      response.removeHeader('content-length');
      response.setHeader('trailer', 'x-sum');
      response.write(BODY);
      response.addTrailers({ 'x-sum': '1' });
      response.end();
    } else if (url.endsWith('/chunks')) response.end(BODY.slice(1000));
    else response.end(url.endsWith('/empty') ? undefined : BODY);
  });
}

describe('the bandwidth_limit filter', () => {
  let server: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let port = 0;

  before(async () => {
    server = upstream();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const own = filterOf(TYPE, { stat_prefix: 'own', limit_kbps: 100_000, enable_mode: 'REQUEST_AND_RESPONSE' });
    const web = clusterAt('web', (server.address() as AddressInfo).port, {
      http_protocol_options: { enable_trailers: true },
    });
    proxy = await createProxy(
      bootstrapOf(
        [filteredListener([own], ROUTES, { manager: { http_protocol_options: { enable_trailers: true } } })],
        [web],
        {
          stats_flush_on_admin: true,
          layered_runtime: { layers: [{ name: 'own', static_layer: RUNTIME }] },
        },
      ),
      { concurrency: 2 },
    );
    port = proxy.listeners.get('main')!.port;
  });

  after(async () => {
    await proxy?.close();
    server?.closeAllConnections();
    server?.close();
  });

  async function ask(path: string, body?: string) {
    const startedMs = performance.now();
    const request = httpRequest({
      port,
      host: '127.0.0.1',
      path,
      method: body === undefined ? 'GET' : 'POST',
      agent: false,
    });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const received = await text(response);
    const { statusCode: status, headers, trailers } = response;
    return { status, headers, trailers, body: received, ms: performance.now() - startedMs };
  }

  const stat = (name: string): number => proxy.stats.value(name) ?? 0;
  const of = (route: string, name: string): number => stat(`${route}.http_bandwidth_limit.${name}`);

  it('holds responses to the rate, and leaves them as they are', async () => {
    const { headers, body, ms, trailers } = await ask('/response');
    assert.equal(body, BODY);
    assert.equal(headers['content-length'], String(BODY.length));
    assert.ok(ms >= SLOW_MS, `${ms} ms`);
    assert.deepEqual(trailers, {});
    const chunked = await ask('/response/chunks');
    assert.equal(chunked.body, BODY);
    assert.ok(chunked.ms >= SLOW_MS, `${chunked.ms} ms`);
    assert.equal(chunked.headers['transfer-encoding'], 'chunked');
    assert.equal(of('response', 'response_incoming_total_size'), 2 * BODY.length);
    assert.equal(of('response', 'response_allowed_total_size'), 2 * BODY.length);
    const trailing = await ask('/response/trailers');
    assert.deepEqual([trailing.body, trailing.trailers], [BODY, { 'x-sum': '1' }]);
    assert.deepEqual([(await ask('/response/empty')).status, (await ask('/response/empty')).body], [204, '']);
  });

  it('holds requests to the rate, and no responses where it is told so', async () => {
    const { headers, body, ms } = await ask('/request', BODY);
    assert.deepEqual([headers['x-received'], body], [String(BODY.length), BODY]);
    assert.ok(ms >= SLOW_MS, `${ms} ms`);
    assert.equal(of('request', 'request_enabled'), 1);
    assert.equal(of('request', 'request_incoming_total_size'), BODY.length);
    assert.equal(of('request', 'request_allowed_total_size'), BODY.length);
    assert.equal(of('request', 'response_enabled'), 0);
    assert.equal(of('request', 'response_incoming_total_size'), 0);
    const chunks = new WireClient(port).write(
      'POST /request HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n' +
        `${(20 * KIB).toString(16)}\r\n${'y'.repeat(20 * KIB)}\r\n0\r\nx-trailer: 1\r\n\r\n`,
    );
    assert.match((await chunks.response()).head, new RegExp(`x-received: ${20 * KIB}\r\n`));
    chunks.close();
  });

  it('shares one rate among all that use it, in all workers', async () => {
    const startedMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask('/shared')));
    const ms = performance.now() - startedMs;
    for (const { body } of answers) assert.equal(body, BODY);
    // What a second brings may have been saved up; clocks of workers count whole milliseconds.
    assert.ok(ms >= 1000 * ((6 * 64) / RATE_KIB - 1) - 10, `${ms} ms`);
  });

  it('counts what comes, what goes on, and what waits', async () => {
    const client = new WireClient(port).write('GET /crawl HTTP/1.1\r\nhost: a\r\n\r\n');
    await client.until('\r\n\r\n');
    await untilEqual(1, () => of('crawl', 'response_pending'), 'a body that waits');
    assert.equal(of('crawl', 'response_enabled'), 1);
    assert.equal(of('crawl', 'response_enforced'), 1);
    assert.equal(of('crawl', 'request_enabled'), 1);
    assert.equal(of('crawl', 'request_pending'), 0);
    assert.ok(of('crawl', 'response_incoming_total_size') > of('crawl', 'response_allowed_total_size'));
    client.close();
    await untilEqual(0, () => of('crawl', 'response_pending'), 'no body that waits');
  });

  it('keeps a slow sender waiting for its client no longer than the client stays', async () => {
    const client = new WireClient(port).write(
      `POST /crawl HTTP/1.1\r\nhost: a\r\ncontent-length: 20000\r\n\r\n${'z'.repeat(20_000)}`,
    );
    await untilEqual(1, () => of('crawl', 'request_pending'), 'a body that waits');
    client.close();
    await untilEqual(0, () => of('crawl', 'request_pending'), 'no body that waits');
  });

  it('tells of the time in trailers, to clients of both versions', async (t) => {
    const { trailers, body, headers } = await ask('/told', BODY);
    assert.equal(body, BODY);
    assert.equal(headers['content-length'], undefined);
    const names = ['request-delay', 'response-delay', 'request-filter-delay', 'response-filter-delay'];
    for (const name of names) {
      const ms = Number(trailers[`bandwidth-${name}-ms`]);
      assert.ok(ms >= SLOW_MS - 1, `${name}: ${ms} ms`);
    }
    const named = await new Http2Client(t, port).get('/named/trailers');
    assert.equal(named.body, BODY);
    assert.deepEqual(Object.keys(named.trailers).sort(), [
      'x-my-bandwidth-response-delay-ms',
      'x-my-bandwidth-response-filter-delay-ms',
      'x-sum',
    ]);
    const briefly = await ask('/told/empty');
    assert.deepEqual([briefly.status, briefly.trailers], [204, {}]);
  });

  it('leaves alone what it is not meant for', async () => {
    for (const path of ['/off', '/runtime', '/brisk', '/']) {
      const { status, body, headers } = await ask(path, BODY);
      assert.deepEqual([status, body, headers['x-received']], [200, BODY, String(BODY.length)], path);
      assert.equal(headers['content-length'], String(BODY.length));
    }
    assert.equal(of('off', 'request_enabled'), 0);
    assert.equal(of('runtime', 'request_enabled'), 0);
    assert.equal(of('brisk', 'response_enabled'), 1);
    const enabled = of('own', 'response_enabled');
    assert.equal((await ask('/own-words')).body.length, 4 * KIB);
    assert.equal(of('own', 'response_enabled'), enabled, 'the words of the proxy itself are not limited');
    assert.ok(of('own', 'request_enabled') > 0, 'what the filter says itself holds where no route says otherwise');
    await untilEqual(0, () => of('own', 'response_pending'), 'no body that waits');
  });

  it('does the same over HTTP/2', async (t) => {
    const client = new Http2Client(t, port);
    const startedMs = performance.now();
    const { body } = await client.fetch({ ':path': '/response', ':method': 'POST' }, BODY);
    assert.equal(body, BODY);
    assert.ok(performance.now() - startedMs >= SLOW_MS);
  });

  it('times bodies from their first to their last bytes', async () => {
    await ask('/timed', BODY);
    const times = await proxy.stats.histogram('timed.http_bandwidth_limit.request_transfer_duration');
    assert.equal(times?.cumulative.count, 1);
    assert.ok(times.cumulative.sum >= SLOW_MS * 0.9, `${times.cumulative.sum} ms`);
  });
});
