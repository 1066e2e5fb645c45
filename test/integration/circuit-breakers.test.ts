// Bursts against a cluster whose limits are far too small, through the real program: every request is answered at
// once, with the upstream's response or with a refusal, and none is left behind.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  clusterNamed,
  httpFilter,
  type JsonObject,
  listenerWith,
  socketAddress,
  tcpFilter,
} from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok';
const ROUNDS = 12;
/** Of an upstream, so that requests meet: some are running while others come. */
const LATENCY_MS = 3;

interface Burst {
  readonly workers: number;
  readonly hosts: number;
  readonly clients: number;
  readonly limits: JsonObject & { readonly max_requests: number };
}

const ROUTE = { match: { prefix: '/' }, route: { cluster: 'web', timeout: '30s' } };
/** A line for each request: its status and its flags. */
const ACCESS_LOG = {
  name: 'envoy.access_loggers.stdout',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
    log_format: { text_format_source: { inline_string: 'answered %RESPONSE_CODE% %RESPONSE_FLAGS%\n' } },
  },
};
const TO_HTTP = httpFilter({
  route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [ROUTE] }] },
  access_log: [ACCESS_LOG],
});

function bootstrap(
  ports: readonly number[],
  filter: JsonObject,
  circuitBreakers: JsonObject,
  clusterFields: JsonObject = {},
): JsonObject {
  const lbEndpoints = ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } }));
  return {
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
      clusters: [
        clusterNamed('web', {
          load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: lbEndpoints }] },
          circuit_breakers: circuitBreakers,
          ...clusterFields,
        }),
      ],
    },
  };
}

const BURSTS: Readonly<Record<string, Burst>> = {
  'one worker, two hosts, one connection and one request': {
    workers: 1,
    hosts: 2,
    clients: 8,
    limits: { max_connections: 1, max_requests: 1, max_pending_requests: 100 },
  },
  'two workers, four hosts, eight connections and eight requests': {
    workers: 2,
    hosts: 4,
    clients: 48,
    limits: { max_connections: 8, max_requests: 8, max_pending_requests: 100 },
  },
};

/** Requests that upstreams have and have not answered yet. */
interface InFlight {
  now: number;
  most: number;
}

/** Ends each connection with its response, so that requests wait for connections in every round. */
async function startUpstream(inFlight: InFlight): Promise<WireUpstream> {
  return await WireUpstream.start((socket) => {
    socket.on('data', () => {
      inFlight.now += 1;
      inFlight.most = Math.max(inFlight.most, inFlight.now);
      void delay(LATENCY_MS).then(() => {
        inFlight.now -= 1;
        socket.write(OK);
      });
    });
    socket.on('end', () => socket.end());
  });
}

for (const [name, { workers, hosts, clients, limits }] of Object.entries(BURSTS)) {
  test(`a burst is answered at once: ${name}`, async (t) => {
    const inFlight = { now: 0, most: 0 };
    const upstreams = await Promise.all(Array.from({ length: hosts }, () => startUpstream(inFlight)));
    t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
    const ports = upstreams.map(({ port }) => port);
    await using weir = await startWeir({
      configYaml: JSON.stringify(bootstrap(ports, TO_HTTP, { thresholds: [limits] })),
      args: ['--concurrency', String(workers)],
    });
    const { port } = (await weir.listeners()).get('main')!;
    const wires = Array.from({ length: clients }, () => new WireClient(port));
    t.after(() => {
      for (const wire of wires) wire.close();
    });

    const answers = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round++) {
      for (const wire of wires) wire.write(GET);
      for (const wire of wires) {
        const { status, body, head } = await wire.response();
        assert.equal(/^x-proxy-overloaded: true\r$/m.test(head), status === 503);
        const answer = `${status} ${body.slice(body.lastIndexOf(' ') + 1)}`;
        answers.set(answer, (answers.get(answer) ?? 0) + 1);
      }
    }

    const { '200 ok': served = 0, '503 overflow': refused = 0, ...others } = Object.fromEntries(answers);
    assert.deepEqual(others, {});
    for (const gauge of ['upstream_rq_active', 'upstream_rq_pending_active']) {
      await weir.untilStat(`cluster.web.${gauge}`, 0);
    }
    await weir.untilStat('cluster.web.upstream_rq_200', served);
    // What is refused has its answer, too.
    await weir.untilStat('cluster.web.upstream_rq_completed', served + refused);
    await weir.untilStat('cluster.web.upstream_rq_pending_overflow', refused);
    assert.ok(refused > 0, 'too few requests met');
    assert.ok(inFlight.most <= limits.max_requests, `${inFlight.most} requests at once`);
    const { stdout } = await weir.stop();
    const logged = (answer: string): number =>
      stdout.split('\n').filter((line) => line === `answered ${answer}`).length;
    assert.deepEqual([logged('200 -'), logged('503 UO')], [served, refused]);
  });
}

test('a client beyond the limit of pools waits for nobody, and takes the place of one that asks for nothing', async (t) => {
  const upstream = await WireUpstream.start((socket) => socket.resume().on('end', () => socket.end()));
  t.after(() => upstream.close());
  const limits = { thresholds: [{ max_connection_pools: 2, track_remaining: true }] };
  const fields = { connection_pool_per_downstream_connection: true };
  const config = bootstrap([upstream.port], TO_HTTP, limits, fields);
  await using weir = await startWeir({ configYaml: JSON.stringify(config), args: ['--concurrency', '1'] });
  const { port } = (await weir.listeners()).get('main')!;
  const clients = Array.from({ length: 3 }, () => new WireClient(port));
  t.after(() => {
    for (const client of clients) client.close();
  });
  const [first, second, third] = clients as [WireClient, WireClient, WireClient];
  const gauge = (name: string): string => `cluster.web.circuit_breakers.default.${name}`;
  first.write(GET);
  await weir.untilStat(gauge('remaining_cx_pools'), 1);
  await untilEqual(1, () => upstream.sockets.length, 'connections');
  second.write(GET);
  await weir.untilStat(gauge('cx_pool_open'), 1);
  const refused = await third.write(GET).response();
  assert.equal(refused.status, 503);
  assert.equal(refused.body.toString(), 'no healthy upstream');
  assert.doesNotMatch(refused.head, /x-proxy-overloaded/);
  await weir.untilStat('cluster.web.upstream_cx_pool_overflow', 1);
  assert.equal(await weir.stat('cluster.web.upstream_cx_none_healthy'), 0);
  assert.equal(await weir.stat('cluster.web.upstream_rq_503'), 1);
  await untilEqual(2, () => upstream.sockets.length, 'connections');
  upstream.sockets[0]!.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  assert.equal((await first.response()).status, 200);
  const idle = once(upstream.sockets[0]!, 'end');
  third.write(GET);
  await idle;
  await untilEqual(3, () => upstream.sockets.length, 'connections');
  upstream.sockets[2]!.write(OK);
  assert.equal((await third.response()).status, 200);
  for (const client of clients) client.close();
  await weir.untilStat(gauge('remaining_cx_pools'), 2);
});

test('a host gets no more proxied connections than one may have, from all workers together', async (t) => {
  const greet = (socket: Socket): void => {
    socket.write('hello');
    socket.on('end', () => socket.end());
  };
  const upstreams = await Promise.all([WireUpstream.start(greet), WireUpstream.start(greet)]);
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
  const ports = upstreams.map(({ port }) => port);
  const limits = { per_host_thresholds: [{ max_connections: 2 }] };
  await using weir = await startWeir({
    configYaml: JSON.stringify(bootstrap(ports, tcpFilter({ cluster: 'web' }), limits)),
    args: ['--concurrency', '2'],
  });
  const { port } = (await weir.listeners()).get('main')!;
  const served: WireClient[] = [];
  t.after(() => {
    for (const wire of served) wire.close();
  });
  // Until both hosts are full: which worker takes a client, and which host is next there, is by chance.
  let refused = 0;
  while (served.length < 4) {
    const wire = new WireClient(port);
    if (await wire.until('hello').catch(() => '')) served.push(wire);
    else refused++;
  }
  assert.equal(await new WireClient(port).rest(), '');
  await weir.untilStat('cluster.web.upstream_cx_overflow', refused + 1);
  assert.deepEqual(
    upstreams.map(({ sockets }) => sockets.length),
    [2, 2],
  );
  served.pop()!.close();
  await weir.untilStat('cluster.web.upstream_cx_active', 3);
  for (let isServed = false; !isServed; ) {
    const wire = new WireClient(port);
    isServed = (await wire.until('hello').catch(() => '')) !== '';
    if (isServed) served.push(wire);
  }
  assert.equal(upstreams[0]!.sockets.length + upstreams[1]!.sockets.length, 5);
});

test('shows what is left below the limits of a priority that asks for it, from all workers together', async (t) => {
  const upstream = await WireUpstream.start((socket) => socket.on('end', () => socket.end()));
  t.after(() => upstream.close());
  const limits = { thresholds: [{ max_requests: 5, track_remaining: true }] };
  await using weir = await startWeir({
    configYaml: JSON.stringify(bootstrap([upstream.port], TO_HTTP, limits)),
    args: ['--concurrency', '2'],
  });
  const { port } = (await weir.listeners()).get('main')!;
  const clients = Array.from({ length: 3 }, () => new WireClient(port));
  for (const client of clients) client.write(GET);
  await weir.untilStat('cluster.web.circuit_breakers.default.remaining_rq', 2);
  assert.doesNotMatch(await weir.admin('/stats'), /circuit_breakers\.high\.remaining/);
  for (const client of clients) client.close();
  await weir.untilStat('cluster.web.circuit_breakers.default.remaining_rq', 5);
});
