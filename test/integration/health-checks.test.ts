// Active health checks in the real program: who gets requests, what happens to connections, what an operator sees.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { answer, type Behaviour, HealthServer } from '../support/health-server.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const FAST: JsonObject = {
  timeout: '10s',
  interval: '0.02s',
  no_traffic_interval: '0.02s',
  unhealthy_threshold: 1,
  healthy_threshold: 1,
};

function bootstrap(filter: JsonObject, ports: readonly number[], check: JsonObject, fields: JsonObject = {}): string {
  const lb_endpoints = ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } }));
  return JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
      clusters: [
        {
          name: 'web',
          load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints }] },
          health_checks: [{ ...FAST, ...check }],
          ...fields,
        },
      ],
    },
  });
}

async function portOf(weir: WeirProcess): Promise<number> {
  return (await weir.listeners()).get('main')!.port;
}

/** An upstream whose health and whose service can be broken one by one. */
class Upstream implements AsyncDisposable {
  isHealthy = true;
  isBroken = false;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => {
      const isCheck = request.url === '/up';
      response.statusCode = (isCheck ? this.isHealthy : !this.isBroken) ? 200 : 500;
      response.end(`${this.port}`);
    });
  }

  static async start(): Promise<Upstream> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Upstream(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

describe('active health checks', () => {
  it('hide a host that is bad from all clients, and bring it back when it is well', async () => {
    await using first = await Upstream.start();
    await using second = await Upstream.start();
    await using third = await Upstream.start();
    const upstreams = [first, second, third];
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
    const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
    const check = { http_health_check: { path: '/up' } };
    const ports = upstreams.map(({ port }) => port);
    await using weir = await startWeir({ configYaml: bootstrap(filter, ports, check), args: ['--concurrency', '2'] });
    const url = `http://127.0.0.1:${await portOf(weir)}/`;
    const ask = async (): Promise<number> => {
      const response = await fetch(url);
      assert.equal(response.status, 200);
      return Number(await response.text());
    };
    const askedOf = async (count: number): Promise<Set<number>> =>
      new Set(await Promise.all(Array.from({ length: count }, ask)));
    assert.equal(await weir.stat('cluster.web.membership_healthy'), 3);
    await untilEqual(3, async () => (await askedOf(12)).size, 'requests to all of them');

    first.isHealthy = false;
    await untilEqual(2, () => weir.stat('cluster.web.membership_healthy'), 'its failure');
    const isLeftOut = async (): Promise<boolean> => !(await askedOf(24)).has(first.port);
    await untilEqual(true, isLeftOut, 'requests to the others alone');
    first.isBroken = true;
    assert.ok(!(await askedOf(200)).has(first.port));
    const line = (stat: string): RegExp => new RegExp(`^web::127\\.0\\.0\\.1:${first.port}::${stat}$`, 'm');
    const listing = await weir.admin('/clusters');
    assert.match(listing, line('health_flags::/failed_active_hc'));
    assert.match(listing, line('last_check::failed by http at \\d{4}-[-\\d:T.]+Z: HTTP 500'));
    assert.match(listing, line('deciding_check::failed by http at \\d{4}-[-\\d:T.]+Z: HTTP 500'));
    const hostsOf = async (query: string): Promise<JsonObject[]> =>
      JSON.parse(await weir.admin(`/clusters?format=json${query}`)).cluster_statuses[0].host_statuses;
    const [shown] = await hostsOf('&health_checks');
    assert.deepEqual(shown!.health_status, { failed_active_health_check: true, eds_health_status: 'HEALTHY' });
    assert.equal((shown!.deciding_check as JsonObject).detail, 'HTTP 500');
    assert.deepEqual(
      (await hostsOf('')).map((host) => Object.keys(host).filter((key) => key.includes('check'))),
      [[], [], []],
    );
    // Its idle connections have been closed.
    await untilEqual(true, async () => line('cx_active::0').test(await weir.admin('/clusters')), 'closed connections');

    first.isBroken = false;
    first.isHealthy = true;
    await untilEqual(3, () => weir.stat('cluster.web.health_check.healthy'), 'its return');
    await untilEqual(true, async () => (await askedOf(12)).has(first.port), 'requests to it');
    assert.match(await weir.admin('/clusters'), line('health_flags::healthy'));
    assert.ok((await weir.stat('cluster.web.health_check.success'))! > 3);
    assert.ok((await weir.stat('cluster.web.health_check.failure'))! >= 1);
    assert.equal((await weir.stop()).code, 0);
  });

  it('leave a host out that asks for it in an answer to a client', async () => {
    const answerAll = (socket: Socket, received: string): void => {
      const asks = received.startsWith('GET /last ') ? 'x-envoy-immediate-health-check-fail: 1\r\n' : '';
      socket.write(`HTTP/1.1 200 OK\r\n${asks}content-length: 0\r\n\r\n`);
    };
    await using first = await HealthServer.start(answerAll);
    await using second = await HealthServer.start(answerAll);
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
    const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
    // It does not come back while the test runs.
    const check = { http_health_check: { path: '/up' }, healthy_threshold: 1_000_000 };
    const ports = [first.port, second.port];
    await using weir = await startWeir({ configYaml: bootstrap(filter, ports, check) });
    const url = `http://127.0.0.1:${await portOf(weir)}`;
    assert.equal((await fetch(`${url}/last`)).status, 200);
    await untilEqual(1, () => weir.stat('cluster.web.membership_healthy'), 'its leave');
    assert.equal(await weir.stat('cluster.web.health_check.passive_failure'), 1);
    assert.equal(await weir.stat('cluster.web.membership_excluded'), 1);
    const flags = /health_flags::\/failed_active_hc\/excluded_via_immediate_hc_fail$/m;
    const listing = await weir.admin('/clusters');
    assert.match(listing, flags);
    assert.match(listing, /::deciding_check::failed by request at .*Z: asked to be left out$/m);
    assert.equal((await fetch(`${url}/`)).status, 200);
  });

  it('leave out servers that hang, close, answer half or pour out a gigabyte, and no client sees any of it', async () => {
    const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: ';
    const CHUNK = Buffer.alloc(64 * 1024, 'x');
    const GIGABYTE = 1024 ** 3;
    /** By one connection. */
    let mostPoured = 0;
    const pour = (socket: Socket): void => {
      let poured = 0;
      const more = (): void => {
        while (poured < GIGABYTE && !socket.destroyed) {
          poured += CHUNK.length;
          mostPoured = Math.max(mostPoured, poured);
          if (!socket.write(CHUNK)) return;
        }
      };
      socket.write(`${HEAD}${GIGABYTE}\r\n\r\n`);
      socket.on('drain', more);
      more();
    };
    const behaviours: Readonly<Record<string, Behaviour>> = {
      hanging: () => {},
      closing: (socket) => socket.destroy(),
      half: (socket) => socket.end(`${HEAD}100\r\n\r\nok`),
      pouring: pour,
    };
    await using good = await HealthServer.start(answer(200, '', 'ok'));
    await using hanging = await HealthServer.start(behaviours.hanging!);
    await using closing = await HealthServer.start(behaviours.closing!);
    await using half = await HealthServer.start(behaviours.half!);
    await using pouring = await HealthServer.start(behaviours.pouring!);
    const bad = [hanging, closing, half, pouring];
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
    const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
    const http_health_check = { path: '/up', receive: [{ text: '6f6b' }] };
    // So many checks in a row that a good server may be late on a crowded machine.
    const check = { http_health_check, timeout: '1s', unhealthy_threshold: 30 };
    const fields = { common_lb_config: { healthy_panic_threshold: { value: 0 } } };
    const ports = [good, ...bad].map(({ port }) => port);
    await using weir = await startWeir({
      configYaml: bootstrap(filter, ports, check, fields),
      args: ['--concurrency', '2'],
    });
    await weir.untilStat('cluster.web.membership_healthy', 1);
    const url = `http://127.0.0.1:${await portOf(weir)}/`;
    for (let request = 0; request < 40; request += 1) {
      const response = await fetch(url);
      assert.deepEqual([response.status, await response.text()], [200, 'ok']);
    }
    // Each of them is checked again.
    const isCheckedAgain = (): boolean => bad.every(({ received }) => received.length > 1);
    await untilEqual(true, isCheckedAgain, 'a second check of each');
    for (const { received } of bad) assert.ok(received.every((text) => text.startsWith('GET /up ')));
    const stat = async (name: string): Promise<number> => (await weir.stat(`cluster.web.health_check.${name}`)) ?? 0;
    assert.ok((await stat('network_failure')) >= 4);
    assert.equal(await weir.stat('cluster.web.upstream_rq_200'), 40);
    assert.ok(mostPoured < GIGABYTE / 4, `${mostPoured} bytes`);
    assert.equal((await weir.stop()).code, 0);
  });

  for (const closes of [true, false]) {
    it(`${closes ? 'end' : 'leave alone'} TCP connections to a host that fails`, async () => {
      let isHealthy = true;
      await using service = await HealthServer.start((socket, received) => socket.write(received));
      await using health = await HealthServer.start((socket) => (isHealthy ? socket.write('ok') : socket.destroy()));
      const check = {
        alt_port: health.port,
        tcp_health_check: { send: { text: '3f' }, receive: [{ text: '6f6b' }] },
      };
      const fields = { close_connections_on_host_health_failure: closes };
      const configYaml = bootstrap(tcpFilter({ cluster: 'web' }), [service.port], check, fields);
      await using weir = await startWeir({ configYaml });
      const client = connect(await portOf(weir), '127.0.0.1');
      const echo = async (text: string): Promise<string> => {
        client.write(text);
        const [answer] = (await once(client, 'data')) as [Buffer];
        return answer.toString();
      };
      assert.equal(await echo('before'), 'before');
      const closed = once(client, 'close');
      isHealthy = false;
      await untilEqual(0, () => weir.stat('cluster.web.membership_healthy'), 'its failure');
      if (closes) await closed;
      else assert.equal(await echo('after'), 'after');
      client.destroy();
      await closed;
    });
  }

  it('stop with the program while a server hangs', async () => {
    await using silent = await HealthServer.start(() => {});
    const check = { http_health_check: { path: '/' }, timeout: '3600s' };
    const fields = { wait_for_warm_on_init: false };
    await using weir = await startWeir({
      configYaml: bootstrap(tcpFilter({ cluster: 'web' }), [silent.port], check, fields),
    });
    await untilEqual(1, () => weir.stat('cluster.web.health_check.attempt'), 'a check');
    assert.equal((await weir.stop()).code, 0);
  });
});
