// A large configuration of clusters that nobody uses: what they cost, and the one among them that somebody does use.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { resourcesOf } from '../soak/resources.ts';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const IDLE_CLUSTERS = 2000;
const HOSTS = 10;
/** What clusters and hosts may take with two workers: twice of what they do, and less than objects in every thread. */
const LIMIT_MIB = 150;

function cluster(name: string, endpoints: readonly JsonObject[]): JsonObject {
  const lbEndpoints = endpoints.map((address) => ({ endpoint: { address } }));
  const assignment = { cluster_name: name, endpoints: [{ lb_endpoints: lbEndpoints }] };
  return clusterNamed(name, { load_assignment: assignment });
}

function idleCluster(_: unknown, index: number): JsonObject {
  const address = `10.${index >> 8}.${index & 255}.1`;
  const hosts = Array.from({ length: HOSTS }, (_host, at) => socketAddress(address, 8000 + at));
  return cluster(`idle-${index}`, hosts);
}

async function weirWith(idleClusters: number, port: number): Promise<WeirProcess> {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'used' } }];
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  const listener = listenerWith([httpFilter({ route_config })], { address: socketAddress('127.0.0.1', 0) });
  const idle = Array.from({ length: idleClusters }, idleCluster);
  const clusters = [...idle, cluster('used', [socketAddress('127.0.0.1', port)])];
  const configYaml = JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: { listeners: [listener], clusters },
  });
  return startWeir({ configYaml, configName: 'bootstrap.json', args: ['--concurrency', '2'] });
}

async function answerOf(weir: WeirProcess, t: TestContext): Promise<string> {
  const client = new WireClient((await weir.listeners()).get('main')!.port);
  t.after(() => client.close());
  return (await client.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n').response()).body;
}

test('clusters without traffic take little memory, and leave the others as they are', async (t) => {
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'));
    socket.on('end', () => socket.end());
  });
  t.after(() => upstream.close());
  await using small = await weirWith(0, upstream.port);
  await using large = await weirWith(IDLE_CLUSTERS, upstream.port);
  for (const weir of [small, large]) assert.equal(await answerOf(weir, t), 'hello');
  assert.equal(await large.stat('cluster_manager.active_clusters'), IDLE_CLUSTERS + 1);
  const taken = (): number => resourcesOf(large.pid)!.residentMiB - resourcesOf(small.pid)!.residentMiB;
  if (resourcesOf(small.pid) === undefined) return t.skip('there is no /proc');
  // What loading has left behind is collected a moment later.
  await untilEqual(true, () => taken() < LIMIT_MIB, `that clusters take less than ${LIMIT_MIB} MiB`);
  t.diagnostic(`${taken()} MiB`);
});
