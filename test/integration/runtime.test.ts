// Values of the runtime in the real program: from a layer of the bootstrap to what workers and main do with them.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { plainXxHash64 } from '../../src/bench-cli/twins/xxhash64.ts';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

function bootstrap(port: number, layer: JsonObject, further: readonly JsonObject[] = []): string {
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
    layered_runtime: { layers: [{ name: 'base', static_layer: layer }, ...further] },
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

/** Of requests over connections that spread over the workers. */
async function statusesOf(port: number): Promise<string> {
  const found = new Set<number>();
  for (let index = 0; index < 8; index += 1) {
    const client = new WireClient(port);
    found.add((await client.write('GET /share HTTP/1.1\r\nhost: x\r\n\r\n').response()).status);
    client.close();
  }
  return [...found].join();
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

test('values that are posted hold in all workers until they are taken away', async () => {
  const configYaml = bootstrap(9, { 'routing.new': 0 }, [{ name: 'admin', admin_layer: {} }]);
  await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
  const { port } = (await weir.listeners()).get('main')!;
  const post = async (query: string, method = 'POST'): Promise<string> => {
    const answer = await fetch(`${weir.adminUrl}/runtime_modify${query}`, { method });
    return `${answer.status} ${await answer.text()}`;
  };
  const statuses = (): Promise<string> => statusesOf(port);
  assert.equal(await statuses(), '202');
  assert.equal(await post('?routing.new=numerator%3A%20100%0A'), '200 OK\n');
  // Workers hear of it a moment later.
  await untilEqual('201', statuses, 'the status of a share of all requests');
  assert.deepEqual(JSON.parse(await weir.admin('/runtime')), {
    layers: ['base', 'admin'],
    entries: { 'routing.new': { layer_values: ['0', 'numerator: 100\n'], final_value: 'numerator: 100\n' } },
  });
  assert.equal(await weir.stat('runtime.admin_overrides_active'), 1);
  for (const refused of ['?routing.new=0&upstream.use_retry=some', `?routing.new=0&x=${'v'.repeat(100 * 1024)}&=`]) {
    assert.match(await post(refused), /^400 /);
  }
  assert.match(await post('?routing.new=0', 'GET'), /^400 Method GET/);
  assert.equal(await statuses(), '201');
  // The limits of clusters are main's to work out.
  assert.equal(await post('?circuit_breakers.web.default.max_requests=7'), '200 OK\n');
  assert.match(await weir.admin('/clusters'), /^web::default_priority::max_requests::7$/m);
  assert.equal(await post('?routing.new=&circuit_breakers.web.default.max_requests='), '200 OK\n');
  await untilEqual('202', statuses, 'the status without that share');
  assert.match(await weir.admin('/clusters'), /^web::default_priority::max_requests::1024$/m);
  assert.equal(await weir.stat('runtime.admin_overrides_active'), 0);
});

test('layers without one to write in refuse to be written', async () => {
  await using weir = await startWeir({ configYaml: bootstrap(9, { x: 1 }) });
  const answer = await fetch(`${weir.adminUrl}/runtime_modify?x=2`, { method: 'POST' });
  assert.deepEqual([answer.status, await answer.text()], [503, 'No admin layer specified']);
  assert.equal(JSON.parse(await weir.admin('/runtime')).entries.x.final_value, '1');
});

test('values in files hold in all workers, from one swap of their root to the next', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-runtime-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const root = path.join(folder, 'current');
  const swap = (version: string, share: string): void => {
    mkdirSync(path.join(folder, version, 'routing'), { recursive: true });
    writeFileSync(path.join(folder, version, 'routing', 'new'), `# of requests\n${share}\n`);
    symlinkSync(version, path.join(folder, 'next'));
    renameSync(path.join(folder, 'next'), root);
  };
  swap('one', '100');
  const configYaml = bootstrap(9, { 'routing.new': 0 }, [{ name: 'disk', disk_layer: { symlink_root: root } }]);
  await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
  const { port } = (await weir.listeners()).get('main')!;
  const statuses = (): Promise<string> => statusesOf(port);
  assert.equal(await statuses(), '201');
  swap('two', 'numerator: 0');
  await untilEqual('202', statuses, 'the status of no share');
  assert.deepEqual(JSON.parse(await weir.admin('/runtime')), {
    layers: ['base', 'disk'],
    entries: { 'routing.new': { layer_values: ['0', 'numerator: 0'], final_value: 'numerator: 0' } },
  });
  assert.equal(await weir.stat('runtime.load_success'), 2);
  assert.equal((await weir.stop()).code, 0);
});

test('values of a resource in a file hold in all workers, and those of the file that is moved over it', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-runtime-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'layer.yaml');
  const write = (version: number, share: number, further = ''): void => {
    const resource = `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: rtds, layer: {routing.new: ${share}}}`;
    writeFileSync(`${file}.next`, `version_info: v${version}\nresources:\n- ${resource}\n${further}`);
    renameSync(`${file}.next`, file);
  };
  write(1, 100);
  const far = { name: 'far', rtds_layer: { name: 'rtds', rtds_config: { path_config_source: { path: file } } } };
  const configYaml = bootstrap(9, { 'routing.new': 0 }, [far]);
  await using weir = await startWeir({ configYaml, args: ['--concurrency', '2', '--reject-unknown-dynamic-fields'] });
  const { port } = (await weir.listeners()).get('main')!;
  const statuses = (): Promise<string> => statusesOf(port);
  assert.equal(await statuses(), '201');
  write(2, 0);
  await untilEqual('202', statuses, 'the status of no share');
  assert.deepEqual(JSON.parse(await weir.admin('/runtime')), {
    layers: ['base', 'far'],
    entries: { 'routing.new': { layer_values: ['0', '0'], final_value: '0' } },
  });
  write(3, 100, 'odd: 1\n');
  await untilEqual(1, () => weir.stat('runtime.update_failure'), 'a refusal');
  assert.equal(await statuses(), '202');
  assert.equal(await weir.stat('runtime.update_success'), 2);
  assert.match(await weir.admin('/stats?filter=runtime.version_text'), /runtime.version_text: "v2"/);
  assert.equal(await weir.stat('runtime.version'), Number(plainXxHash64(Buffer.from('v2'))));
  assert.equal((await weir.stop()).code, 0);
});
