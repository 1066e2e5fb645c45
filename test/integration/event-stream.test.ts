// The event stream of the real program, over real sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { startEchoUpstream } from '../support/echo-upstream.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const SINK: JsonObject = {
  name: 'envoy.stat_sinks.hystrix',
  typed_config: { '@type': 'type.googleapis.com/envoy.config.metrics.v3.HystrixSink', num_buckets: 600 },
};

function startProxy(clusters: readonly JsonObject[], fields: JsonObject = {}): Promise<WeirProcess> {
  const route = { match: { prefix: '/' }, route: { cluster: 'web' } };
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] } });
  return startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [listenerWith([manager], { address: socketAddress('127.0.0.1', 0) })],
        clusters,
      },
      stats_flush_interval: '0.05s',
      stats_sinks: [SINK],
      ...fields,
    }),
    args: ['--concurrency', '2'],
  });
}

function clusterAt(port: number): JsonObject {
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', port) } };
  return clusterNamed('web', {
    load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] },
  });
}

/** Asks for the stream and reads nothing. */
async function listenTo(weir: WeirProcess, method = 'GET'): Promise<Socket> {
  const { hostname, port } = new URL(weir.adminUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(`${method} /hystrix_event_stream HTTP/1.1\r\nhost: x\r\n\r\n`);
  return socket;
}

/** Text from the socket until it has what is looked for. */
async function readUntil(socket: Socket, isEnough: (text: string) => boolean): Promise<string> {
  let text = '';
  while (!isEnough(text)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    text += chunk.toString();
  }
  return text;
}

describe('the event stream', () => {
  it('tells of the requests of both workers with every flush, unframed, and ends with the server', async () => {
    await using upstream = await startEchoUpstream('web');
    await using weir = await startProxy([clusterAt(upstream.port)]);
    const socket = await listenTo(weir);
    const head = await readUntil(socket, (text) => text.includes(':\n\n'));
    assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
    for (const line of [
      'content-type: text/event-stream',
      'cache-control: no-cache',
      'connection: close',
      'access-control-allow-origin: *',
      'access-control-allow-headers: Accept, Cache-Control, X-Requested-With, Last-Event-ID',
    ]) {
      assert.ok(head.includes(`\r\n${line}\r\n`), line);
    }
    assert.doesNotMatch(head, /transfer-encoding|content-length/i);
    assert.match(head, /\r\n\r\ndata: \{"type": "HystrixCommand", "name": "web", /);

    const { ip, port } = [...(await weir.listeners()).values()][0]!;
    // Each on a connection of its own, so that the workers share them.
    for (let request = 0; request < 20; request += 1) {
      const response = await fetch(`http://${ip}:${port}/`, { headers: { connection: 'close' } });
      await response.text();
    }
    await weir.untilStat('cluster.web.upstream_rq_2xx', 20);
    const text = await readUntil(socket, (so) => so.includes('"rollingCountSuccess": 20'));
    const records = text
      .split('\n\n')
      .filter((event) => event.startsWith('data: ') && event.endsWith('}'))
      .map((event) => JSON.parse(event.slice('data: '.length)) as Record<string, unknown>);
    assert.ok(records.some(({ rollingCountSuccess, errorCount }) => rollingCountSuccess === 20 && errorCount === 0));

    const ended = once(socket, 'end');
    socket.resume();
    const exited = await weir.stop();
    assert.equal(exited.code, 0);
    await ended;
  });

  it('is not there without its sink', async () => {
    await using weir = await startProxy([clusterAt(1)], { stats_sinks: [] });
    const response = await fetch(`${weir.adminUrl}/hystrix_event_stream`);
    assert.equal(response.status, 404);
    const text = await response.text();
    assert.match(text, /^invalid path\. admin commands are:\n/);
    assert.doesNotMatch(text, /hystrix/);
  });

  it('has no body for HEAD', async () => {
    await using weir = await startProxy([clusterAt(1)]);
    const socket = await listenTo(weir, 'HEAD');
    assert.match(await readUntil(socket, (text) => text.includes('\r\n\r\n')), /^HTTP\/1\.1 200 OK\r\n/);
    await weir.untilStat('stat_sinks.hystrix.listeners', 0);
    socket.destroy();
  });

  it('forgets a client that disappears, and refuses those beyond its limit', async () => {
    await using weir = await startProxy([clusterAt(1)]);
    const sockets = await Promise.all(Array.from({ length: 16 }, () => listenTo(weir)));
    for (const socket of sockets) socket.resume();
    await weir.untilStat('stat_sinks.hystrix.listeners', 16);
    const refused = await fetch(`${weir.adminUrl}/hystrix_event_stream`);
    assert.deepEqual([refused.status, await refused.text()], [503, 'too many clients read this stream\n']);
    for (const socket of sockets) socket.resetAndDestroy();
    await weir.untilStat('stat_sinks.hystrix.listeners', 0);
    assert.equal(await weir.stat('stat_sinks.hystrix.listeners_refused'), 1);
  });

  it('lets a reader that does not read miss batches', async () => {
    const more = Array.from({ length: 200 }, (_, index) => clusterNamed(`idle-${index}`));
    await using weir = await startProxy([clusterAt(1), ...more], { stats_flush_interval: '0.02s' });
    const sinkStat = async (name: string): Promise<number> => {
      const text = await weir.admin(`/stats?filter=^stat_sinks.hystrix.${name}$`);
      return Number(text.slice(text.indexOf(': ') + 2));
    };
    const slow = await listenTo(weir);
    slow.pause();
    await untilEqual(true, async () => (await sinkStat('batches_dropped')) > 3, 'the slow reader being behind');
    slow.resetAndDestroy();
    await untilEqual(0, () => sinkStat('listeners'), 'the listeners');
  });
});
