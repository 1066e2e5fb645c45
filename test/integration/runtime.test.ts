// Values of the runtime in the real program: from a layer of the bootstrap to what workers and main do with them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

function bootstrap(port: number, layer: JsonObject): string {
  const members = ['HEALTHY', 'UNHEALTHY', 'UNHEALTHY'].map((health_status, index) => ({
    endpoint: { address: socketAddress('127.0.0.1', index === 0 ? port : index) },
    health_status,
  }));
  const share = { default_value: { numerator: 0 }, runtime_key: 'routing.new' };
  const direct = (status: number): JsonObject => ({ direct_response: { status } });
  const routes = [
    { match: { prefix: '/share', runtime_fraction: share }, ...direct(201) },
    { match: { prefix: '/share' }, ...direct(202) },
    { match: { prefix: '/limited' }, route: { cluster: 'limited' } },
    { match: { prefix: '/' }, route: { cluster: 'web' } },
  ];
  const routeConfig = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  return JSON.stringify({
    admin: { address: ANY_PORT },
    layered_runtime: { layers: [{ name: 'base', static_layer: layer }] },
    static_resources: {
      listeners: [listenerWith([httpFilter({ route_config: routeConfig })], { name: 'main', address: ANY_PORT })],
      clusters: ['web', 'limited'].map((name) =>
        clusterNamed(name, {
          load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: members }] },
        }),
      ),
    },
  });
}

test('a layer of the bootstrap sets shares of routes, limits of clusters and the panic threshold', async (t) => {
  const upstream = await WireUpstream.start((socket) => socket.on('data', () => socket.write(OK)));
  t.after(() => upstream.close());
  const configYaml = bootstrap(upstream.port, {
    'routing.new': 100,
    circuit_breakers: { limited: { default: { max_requests: 0 } } },
    upstream: { healthy_panic_threshold: 0 },
  });
  await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
  const { port } = (await weir.listeners()).get('main')!;
  const statusOf = async (path: string): Promise<number> => {
    const client = new WireClient(port);
    const { status } = await client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).response();
    client.close();
    return status;
  };
  // Connections spread over the workers: each of them has the values.
  for (let index = 0; index < 8; index += 1) {
    assert.equal(await statusOf('/share'), 201);
    // One of three hosts is healthy, below the threshold of 50 that would send requests to all of them.
    assert.equal(await statusOf('/'), 200);
    assert.equal(await statusOf('/limited'), 503);
  }
  assert.equal(await weir.stat('cluster.web.lb_healthy_panic'), 0);
  assert.equal(await weir.stat('cluster.limited.circuit_breakers.default.rq_open'), 1);
  assert.equal(await weir.stat('cluster.limited.circuit_breakers.high.rq_open'), 0);
  const clusters = await weir.admin('/clusters');
  assert.match(clusters, /^limited::default_priority::max_requests::0$/m);
  assert.match(clusters, /^limited::high_priority::max_requests::1024$/m);
});
