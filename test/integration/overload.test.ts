// The overload manager in the real program: pressure comes from a file that the test writes.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { assigned, httpFilter, type Json, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { AT_HALF, actionAtHalf, INJECTED, injected, MONITORS, pressureFile } from '../support/pressure.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

function bootstrap(
  overload: JsonObject,
  monitors: readonly Json[],
  listeners?: readonly Json[],
  manager: JsonObject = {},
): string {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'ok' } } }];
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  const main = listenerWith([httpFilter({ route_config, ...manager })], { address: ANY_PORT });
  return JSON.stringify({
    admin: { address: ANY_PORT },
    overload_manager: { refresh_interval: '0.01s', resource_monitors: monitors, ...overload },
    static_resources: { listeners: listeners ?? [main] },
  });
}

async function mainPort(weir: WeirProcess): Promise<number> {
  return (await weir.listeners()).get('main')!.port;
}

async function status(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/`);
  await response.text();
  return response.status;
}

test('requests are refused while the pressure is too great, by all workers, and no longer', async () => {
  const pressure = pressureFile();
  const configYaml = bootstrap(actionAtHalf('stop_accepting_requests'), [injected(pressure.path)], undefined, {
    append_local_overload: true,
  });
  await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
  const port = await mainPort(weir);
  assert.equal(await status(port), 200);
  pressure.set(0.5);
  await weir.untilStat('overload.proxy.overload_actions.stop_accepting_requests.active', 1);
  assert.equal(await weir.stat('overload.proxy.resource_monitors.injected_resource.pressure'), 50);
  await untilEqual(503, () => status(port), 'the answer');
  const refused = await fetch(`http://127.0.0.1:${port}/`);
  assert.equal(await refused.text(), 'proxy overloaded');
  assert.equal(refused.headers.get('x-proxy-local-overloaded'), 'true');
  assert.ok((await weir.stat('http.ingress.downstream_rq_overload_close'))! > 0);
  // The admin interface is not concerned.
  assert.equal((await fetch(`${weir.adminUrl}/ready`)).status, 200);
  pressure.set(0.49);
  await weir.untilStat('overload.proxy.overload_actions.stop_accepting_requests.active', 0);
  for (let inARow = 0; inARow < 20; inARow += 1) await untilEqual(200, () => status(port), 'the answer');
});

test('responses end their connections, new connections are refused, and streams that a shed point names get 503', async () => {
  const [keepalive, reject, forward] = [pressureFile(), pressureFile(), pressureFile()];
  const named = (name: string, file: string): JsonObject => ({ ...injected(file), name });
  const trigger = (name: string): Json[] => [{ name, threshold: { value: 1 } }];
  const overload = {
    actions: [
      { name: 'envoy.overload_actions.disable_http_keepalive', triggers: trigger('keepalive') },
      { name: 'envoy.overload_actions.reject_incoming_connections', triggers: trigger('reject') },
    ],
    loadshed_points: [{ name: 'envoy.load_shed_points.http_downstream_filter_check', triggers: trigger('forward') }],
  };
  const monitors = [named('keepalive', keepalive.path), named('reject', reject.path), named('forward', forward.path)];
  await using weir = await startWeir({ configYaml: bootstrap(overload, monitors) });
  const port = await mainPort(weir);

  const client = new WireClient(port).write(GET);
  assert.doesNotMatch((await client.response()).head, /connection: close/);
  keepalive.set(1);
  await untilEqual(
    true,
    async () => /connection: close/.test((await new WireClient(port).write(GET).response()).head),
    'the end',
  );
  assert.ok((await weir.stat('http.ingress.downstream_cx_overload_disable_keepalive'))! > 0);
  keepalive.set(0);
  await untilEqual(
    false,
    async () => /connection: close/.test((await new WireClient(port).write(GET).response()).head),
    'the end',
  );

  forward.set(1);
  await untilEqual(503, () => status(port), 'the answer');
  assert.ok((await weir.stat('http.ingress.rq_overload_local_reply'))! > 0);
  const shed = 'overload.proxy.load_shed_points.http_downstream_filter_check.shed_load_count';
  assert.equal(await weir.stat(shed), await weir.stat('http.ingress.rq_overload_local_reply'));
  forward.set(0);
  await untilEqual(200, () => status(port), 'the answer');

  reject.set(1);
  const outcome = () => {
    const newcomer = new WireClient(port).write(GET).response();
    return newcomer.then(
      () => 'served',
      () => 'refused',
    );
  };
  await untilEqual('refused', outcome, 'what becomes of a client');
  assert.ok((await weir.stat('listener.127.0.0.1_0.downstream_cx_overload_reject'))! > 0);
  // Whoever is there already is served.
  assert.equal((await client.write(GET).response()).status, 200);
});

test('timeouts that run already are shortened', async () => {
  const pressure = pressureFile();
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig',
    timer_scale_factors: [{ timer: 'HTTP_DOWNSTREAM_CONNECTION_IDLE', min_timeout: '0.001s' }],
  };
  const actions = [{ name: 'envoy.overload_actions.reduce_timeouts', triggers: [AT_HALF], typed_config }];
  await using weir = await startWeir({ configYaml: bootstrap({ actions }, [injected(pressure.path)]) });
  const client = new WireClient(await mainPort(weir)).write(GET);
  await client.response();
  pressure.set(1);
  assert.equal(await client.rest(), '');
  await weir.untilStat('http.ingress.downstream_cx_idle_timeout', 1);
});

test('streams are reset by what they hold, the most expensive first, and no others', async (t) => {
  const received = new Map<string, number>();
  const held: Record<string, Socket> = {};
  const upstream = await WireUpstream.start((socket) => {
    let name = '';
    socket.on('data', (chunk: Buffer) => {
      if (name === '') {
        name = /^\w+ \/(\w+)/.exec(chunk.toString('latin1'))![1]!;
        held[name] = socket;
      }
      received.set(name, (received.get(name) ?? 0) + chunk.length);
    });
  });
  t.after(() => upstream.close());
  const pressure = pressureFile();
  const scaled = { name: INJECTED, scaled: { scaling_threshold: 0, saturation_threshold: 1 } };
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstream.port) } };
  // What may be sent again is kept.
  const route = { cluster: 'web', timeout: '0s', retry_policy: { retry_on: 'connect-failure' } };
  const route_config = {
    virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route }] }],
  };
  const main = listenerWith([httpFilter({ route_config })], { address: ANY_PORT });
  const configYaml = JSON.stringify({
    admin: { address: ANY_PORT },
    overload_manager: {
      refresh_interval: '0.01s',
      resource_monitors: [injected(pressure.path)],
      actions: [{ name: 'envoy.overload_actions.reset_high_memory_stream', triggers: [scaled] }],
      buffer_factory_config: { minimum_account_to_track_power_of_two: 14 },
    },
    static_resources: { listeners: [main], clusters: [assigned([{ lb_endpoints: [endpoint] }])] },
  });
  await using weir = await startWeir({ configYaml });
  const port = await mainPort(weir);
  const action = 'overload.proxy.overload_actions.reset_high_memory_stream';
  const sending = async (name: string, bytes: number): Promise<WireClient> => {
    const client = new WireClient(port).write(`POST /${name} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n`);
    client.write(Buffer.alloc(bytes));
    await untilEqual(true, () => (received.get(name) ?? 0) > bytes, `bytes of ${name} that have come`);
    return client;
  };
  const large = await sending('large', 256 * 1024);
  const small = await sending('small', 32 * 1024);
  const waiting = new WireClient(port).write('GET /waiting HTTP/1.1\r\nhost: x\r\n\r\n');
  await untilEqual(true, () => 'waiting' in held, 'a request that has come');

  // The fifth of eight classes, each of which begins at twice the bytes of the next: from 128 KiB on.
  pressure.set(0.55);
  const refused = await large.response();
  assert.equal(refused.status, 503);
  await weir.untilStat(`${action}.count`, 1);
  assert.equal(await weir.stat(`${action}.active`), 0);

  assert.equal(await weir.stat(`${action}.scale_percent`), 55);
  assert.deepEqual([small.isEnded, waiting.isEnded], [false, false]);

  // From 16 KiB on.
  pressure.set(1);
  assert.equal((await small.response()).status, 503);
  await weir.untilStat(`${action}.count`, 2);
  assert.equal(await weir.stat(`${action}.active`), 1);
  held.waiting!.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  assert.equal((await waiting.response()).status, 200);
  pressure.set(0);
  await weir.untilStat(`${action}.scale_percent`, 0);
  assert.equal(await weir.stat(`${action}.count`), 2);
});

test('connections are limited by their monitor, but for listeners that bypass it', async () => {
  const limit = {
    name: 'envoy.resource_monitors.global_downstream_max_connections',
    typed_config: {
      '@type': `${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig`,
      max_active_downstream_connections: 1,
    },
  };
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const listeners = [
    listenerWith([manager], { name: 'main', stat_prefix: 'main', address: ANY_PORT }),
    listenerWith([manager], { name: 'other', address: ANY_PORT, bypass_overload_manager: true }),
  ];
  await using weir = await startWeir({ configYaml: bootstrap({}, [limit], listeners) });
  const ports = await weir.listeners();
  const first = new WireClient(ports.get('main')!.port).write(GET);
  assert.equal((await first.response()).status, 200);
  const second = new WireClient(ports.get('main')!.port);
  assert.equal(await second.rest(), '');
  await weir.untilStat('listener.main.downstream_global_cx_overflow', 1);
  assert.equal((await new WireClient(ports.get('other')!.port).write(GET).response()).status, 200);
  await weir.untilStat('overload.proxy.resource_monitors.global_downstream_max_connections.pressure', 200);
});

test('the heap of all threads is watched, and given back where that is asked for', async () => {
  const heap = (max_heap_size_bytes: number): JsonObject => ({
    name: 'envoy.resource_monitors.fixed_heap',
    typed_config: { '@type': `${MONITORS}.fixed_heap.v3.FixedHeapConfig`, max_heap_size_bytes },
  });
  const trigger = { name: 'envoy.resource_monitors.fixed_heap', threshold: { value: 1 } };
  const actions = [{ name: 'envoy.overload_actions.shrink_heap', triggers: [trigger] }];
  await using weir = await startWeir({ configYaml: bootstrap({ actions }, [heap(1024)]) });
  await weir.untilStat('overload.proxy.overload_actions.shrink_heap.shrink_count', 1);
  const { allocated } = JSON.parse(await weir.admin('/memory')) as { allocated: string };
  const pressure = (await weir.stat('overload.proxy.resource_monitors.fixed_heap.pressure'))!;
  const shown = (pressure / 100) * 1024;
  assert.ok(shown > 0.5 * Number(allocated) && shown < 2 * Number(allocated), `${shown} of ${allocated}`);
});
