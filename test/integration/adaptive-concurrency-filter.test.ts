// A limit of requests that follows their latencies, through the whole proxy: who is refused, and who counts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { WireClient } from '../support/wire.ts';

const TYPE = 'adaptive_concurrency.v3.AdaptiveConcurrency';
const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';

/** Two at a time, for as long as its latency is being measured, which takes three answers. */
function listenerOf(name: string, fields: JsonObject = {}, latency: JsonObject = {}): JsonObject {
  const gradient_controller_config = {
    concurrency_limit_params: { concurrency_update_interval: '3600s', max_concurrency_limit: 5 },
    min_rtt_calc_params: { interval: '3600s', request_count: 3, min_concurrency: 2, ...latency },
  };
  const health = filterOf('health_check.v3.HealthCheck', {
    pass_through_mode: true,
    headers: [{ name: ':path', string_match: { exact: '/health' } }],
  });
  return filteredListener([health, filterOf(TYPE, { gradient_controller_config, ...fields })], [routeTo('/')], {
    listener: { name },
    manager: { stat_prefix: name },
  });
}

describe('the adaptive_concurrency filter', () => {
  let server: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  const waiting: ServerResponse[] = [];

  before(async () => {
    server = createServer((_request, response) => {
      response.on('close', () => {
        if (waiting.includes(response)) waiting.splice(waiting.indexOf(response), 1);
      });
      waiting.push(response);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const web = clusterAt('web', (server.address() as AddressInfo).port);
    const listeners = [
      listenerOf('main'),
      listenerOf('own', { concurrency_limit_exceeded_status: { code: 429 } }),
      listenerOf('low', { concurrency_limit_exceeded_status: { code: 302 } }),
      listenerOf('off', { enabled: { default_value: true, runtime_key: 'adaptive_concurrency.enabled' } }),
      listenerOf('fixed', {}, { interval: null, fixed_value: '0.5s' }),
    ];
    proxy = await createProxy(
      bootstrapOf(listeners, [web], {
        stats_flush_on_admin: true,
        layered_runtime: {
          layers: [{ name: 'own', static_layer: { adaptive_concurrency: { enabled: false } } }],
        },
      }),
      { concurrency: 2 },
    );
  });

  after(async () => {
    await proxy?.close();
    server?.closeAllConnections();
    server?.close();
  });

  const open = (name: string, request = GET): WireClient =>
    new WireClient(proxy.listeners.get(name)!.port).write(request);
  const stat = (name: string, of: string): number =>
    proxy.stats.value(`http.${name}.adaptive_concurrency.gradient_controller.${of}`) ?? 0;
  const untilWaiting = (count: number) => untilEqual(count, () => waiting.length, 'requests at the upstream');
  const answer = (): unknown => waiting.shift()!.end('ok');

  async function refused(name: string): Promise<{ status: number; body: string }> {
    const client = open(name);
    const { status, body } = await client.response();
    client.close();
    return { status, body };
  }

  it('refuses what is too much at a time, in all workers together, and lets more in when some is done', async () => {
    assert.deepEqual([stat('main', 'concurrency_limit'), stat('main', 'min_rtt_calculation_active')], [2, 1]);
    const first = [open('main'), open('main')];
    await untilWaiting(2);
    for (let times = 0; times < 6; times += 1) {
      assert.deepEqual(await refused('main'), { status: 503, body: 'reached concurrency limit' });
    }
    assert.equal(stat('main', 'rq_blocked'), 6);
    answer();
    await untilEqual(1, () => waiting.length, 'requests at the upstream');
    answer();
    for (const client of first) {
      assert.equal((await client.response()).status, 200);
      client.close();
    }
    assert.equal(stat('main', 'min_rtt_calculation_active'), 1);
    const third = open('main');
    await untilWaiting(1);
    answer();
    assert.equal((await third.response()).status, 200);
    third.close();
    await untilEqual(0, () => stat('main', 'min_rtt_calculation_active'), 'a measurement that has ended');
    assert.equal(stat('main', 'concurrency_limit'), 2);
  });

  it('counts clients that leave no longer, and their latency not at all', async () => {
    const clients = [open('own'), open('own')];
    await untilWaiting(2);
    assert.deepEqual(await refused('own'), { status: 429, body: 'reached concurrency limit' });
    for (const client of clients) client.close();
    await untilWaiting(0);
    for (let times = 0; times < 2; times += 1) {
      const client = open('own');
      await untilWaiting(1);
      answer();
      assert.equal((await client.response()).status, 200);
      client.close();
    }
    assert.equal(stat('own', 'min_rtt_calculation_active'), 1, 'two of three');
  });

  it('refuses with nothing that is no error, and by the status of gRPC where that is spoken', async (t) => {
    const clients = [open('low'), open('low')];
    await untilWaiting(2);
    assert.equal((await refused('low')).status, 503);
    const http2 = new Http2Client(t, proxy.listeners.get('low')!.port);
    const { status, headers } = await http2.fetch({
      ':path': '/',
      ':method': 'POST',
      'content-type': 'application/grpc',
    });
    assert.deepEqual([status, headers['grpc-status']], [200, '14']);
    const check = open('low', 'GET /health HTTP/1.1\r\nhost: a\r\n\r\n');
    await untilWaiting(3);
    for (const client of [...clients, check]) client.close();
    await untilWaiting(0);
  });

  it('lets everything through where the runtime says so', async () => {
    const clients = [open('off'), open('off'), open('off'), open('off')];
    await untilWaiting(4);
    for (const client of clients) client.close();
    await untilWaiting(0);
    assert.equal(stat('off', 'rq_blocked'), 0);
  });

  it('may have the latency given', () => {
    assert.deepEqual([stat('fixed', 'min_rtt_msecs'), stat('fixed', 'min_rtt_calculation_active')], [500, 0]);
  });
});
