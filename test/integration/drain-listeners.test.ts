// Drains by order of the operator in the real program: who may connect, what responses say, and what is counted.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const CLOSE = /^connection: close\r$/im;

function bootstrap(upstreamPort: number): string {
  const listener = (name: string, traffic_direction: string): JsonObject => {
    const routes = [
      { match: { prefix: '/direct' }, direct_response: { status: 200 } },
      { match: { prefix: '/' }, route: { cluster: 'web', timeout: '0s' } },
    ];
    const manager = httpFilter({
      stat_prefix: name,
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    });
    return { ...listenerWith([manager], { name, address: ANY_PORT }), traffic_direction };
  };
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', upstreamPort) } }] }];
  return JSON.stringify({
    admin: { address: ANY_PORT },
    static_resources: {
      listeners: [listener('in', 'INBOUND'), listener('out', 'OUTBOUND')],
      clusters: [clusterNamed('web', { load_assignment: { cluster_name: 'web', endpoints } })],
    },
  });
}

async function drain(weir: WeirProcess, query = '', method = 'POST'): Promise<string> {
  const response = await fetch(`${weir.adminUrl}/drain_listeners${query}`, { method });
  return `${response.status} ${await response.text()}`;
}

/** What becomes of somebody who connects now. */
async function connecting(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  const refused = once(socket, 'error').then(([error]) => (error as NodeJS.ErrnoException).code ?? 'refused');
  const outcome = await Promise.race([once(socket, 'connect').then(() => 'connected'), refused]);
  socket.destroy();
  return outcome;
}

/** Every worker closes a socket of its own. */
function untilRefused(port: number): Promise<void> {
  return untilEqual('ECONNREFUSED', () => connecting(port), 'who connects');
}

function get(client: WireClient, path: string): WireClient {
  return client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
}

/** A response at once, and one whose time the test chooses. */
async function upstreamThatWaits() {
  const waiting: (() => void)[] = [];
  const asked = Promise.withResolvers<void>();
  const upstream = await WireUpstream.start((socket) =>
    socket.on('data', () => {
      waiting.push(() => socket.write(OK));
      asked.resolve();
    }),
  );
  return { upstream, asked: asked.promise, answer: () => waiting.splice(0).forEach((each) => void each()) };
}

test('stopped listeners accept nobody, and connections go on as they like', async (t) => {
  const { upstream, asked, answer } = await upstreamThatWaits();
  t.after(() => upstream.close());
  await using weir = await startWeir({ configYaml: bootstrap(upstream.port), args: ['--concurrency', '2'] });
  const ports = await weir.listeners();
  const [inbound, outbound] = [ports.get('in')!.port, ports.get('out')!.port];
  const [idle, busy] = [new WireClient(inbound), new WireClient(inbound)];
  assert.equal((await get(idle, '/direct').response()).status, 200);
  get(busy, '/');
  await asked;

  assert.match(await drain(weir, '', 'GET'), /^400 /);
  assert.match(await drain(weir, '?inbound'), /^400 unknown parameter/);
  assert.equal(await weir.stat('listener_manager.listener_stopped'), 0);
  assert.equal(await drain(weir, '?inboundonly'), '200 OK\n');
  await untilRefused(inbound);
  assert.equal(await connecting(outbound), 'connected');
  assert.equal(await weir.stat('listener_manager.listener_stopped'), 1);
  assert.equal(await weir.stat('listener_manager.total_listeners_draining'), 1);

  answer();
  for (const response of [await busy.response(), await get(idle, '/direct').response()]) {
    assert.equal(response.status, 200);
    assert.doesNotMatch(response.head, CLOSE);
  }
  assert.ok(((await weir.stat('server.total_connections')) ?? 0) >= 2);
  idle.close();
  busy.close();
  await weir.untilStat('listener_manager.total_listeners_draining', 0);

  assert.equal(await drain(weir), '200 OK\n');
  await untilRefused(outbound);
  assert.equal(await weir.stat('listener_manager.listener_stopped'), 2);
  await weir.untilStat('server.total_connections', 0);
  // Still listed, and the server lives.
  assert.deepEqual([...(await weir.listeners()).keys()], ['in', 'out']);
  assert.equal((await weir.stop()).code, 0);
});

test('a graceful drain sends clients away with their responses, and then stops the listeners', async (t) => {
  const { upstream, asked, answer } = await upstreamThatWaits();
  t.after(() => upstream.close());
  const args = ['--concurrency', '2', '--drain-time-s', '2', '--drain-strategy', 'immediate'];
  await using weir = await startWeir({ configYaml: bootstrap(upstream.port), args });
  const { port } = (await weir.listeners()).get('out')!;
  const busy = get(new WireClient(port), '/');
  await asked;
  assert.equal(await drain(weir, '?graceful'), '200 OK\n');
  assert.equal(await drain(weir, '?graceful'), '200 OK\n');
  assert.equal(await weir.stat('listener_manager.total_listeners_draining'), 2);
  answer();
  const response = await busy.response();
  assert.equal(response.body, 'ok');
  assert.match(response.head, CLOSE);
  assert.equal(await busy.rest(), '');
  await weir.untilStat('http.out.downstream_cx_drain_close', 1);
  await untilRefused(port);
  assert.equal(await weir.stat('listener_manager.listener_stopped'), 2);
  await weir.untilStat('listener_manager.total_listeners_draining', 0);
});

test('a gradual drain of inbound listeners leaves nearly all connections alone at first, and the others all', async () => {
  await using weir = await startWeir({ configYaml: bootstrap(9), args: ['--drain-time-s', '100000'] });
  const ports = await weir.listeners();
  assert.equal(await drain(weir, '?graceful&skip_exit&inboundonly'), '200 OK\n');
  assert.equal(await weir.stat('listener_manager.total_listeners_draining'), 1);
  for (const name of ['in', 'out']) {
    const client = new WireClient(ports.get(name)!.port);
    assert.doesNotMatch((await get(client, '/direct').response()).head, CLOSE);
    assert.equal((await get(client, '/direct').response()).status, 200);
  }
});

test('responses that end connections while health checks fail are counted', async () => {
  await using weir = await startWeir({ configYaml: bootstrap(9) });
  const { port } = (await weir.listeners()).get('in')!;
  assert.equal((await fetch(`${weir.adminUrl}/healthcheck/fail`, { method: 'POST' })).status, 200);
  const said = async (): Promise<boolean> => CLOSE.test((await get(new WireClient(port), '/direct').response()).head);
  // The order is on its way to the worker.
  await untilEqual(true, said, 'the end of connections');
  await weir.untilStat('http.in.downstream_cx_drain_close', 1);
});
