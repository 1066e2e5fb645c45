// Statistics of single hosts, of clusters that want them, in every listing of the real program.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { OK } from '../support/http-bench.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TRACKED = { track_cluster_stats: { per_endpoint_stats: true } };

function members(name: string, port: number): JsonObject {
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', port) } };
  return { load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] } };
}

/** Requests go to the cluster that the first part of their path names. */
function bootstrap(port: number): JsonObject {
  const names = ['web', 'quiet', 'asked'];
  const routes = names.map((cluster) => ({ match: { prefix: `/${cluster}` }, route: { cluster } }));
  const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  return {
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
      clusters: [
        clusterNamed('web', { ...members('web', port), ...TRACKED, alt_stat_name: 'the:web' }),
        clusterNamed('quiet', members('quiet', port)),
        {
          name: 'asked',
          type: 'ORIGINAL_DST',
          lb_policy: 'CLUSTER_PROVIDED',
          original_dst_lb_config: { use_http_header: true },
          cleanup_interval: '0.05s',
          ...TRACKED,
        },
      ],
    },
  };
}

test('shows each host of clusters that want it, in every format, as long as it is there', async (t) => {
  const upstream = await WireUpstream.answering(OK);
  t.after(() => upstream.close());
  await using weir = await startWeir({
    configYaml: JSON.stringify(bootstrap(upstream.port)),
    args: ['--concurrency', '1'],
  });
  const { port } = (await weir.listeners()).get('main')!;
  const wire = new WireClient(port);
  t.after(() => wire.close());
  const host = `127.0.0.1:${upstream.port}`;
  const get = async (path: string): Promise<void> => {
    const head = `GET /${path} HTTP/1.1\r\nhost: x\r\nx-proxy-original-dst-host: ${host}\r\n\r\n`;
    assert.equal((await wire.write(head).response()).status, 200);
  };
  await get('web');
  await get('quiet');

  const prefix = `cluster.the_web.endpoint.127.0.0.1_${upstream.port}.`;
  const lines = async (query: string): Promise<string[]> => {
    const text = await weir.admin(`/stats?filter=endpoint${query}`);
    return text.split('\n').filter(Boolean);
  };
  assert.deepEqual(
    await lines(''),
    ['cx_active: 1', 'cx_connect_fail: 0', 'cx_total: 1', 'rq_active: 0', 'rq_error: 0', 'rq_success: 1']
      .concat(['rq_timeout: 0', 'rq_total: 1', 'healthy: 1', 'weight: 1'])
      .map((line) => prefix + line),
  );
  assert.deepEqual(
    await lines('&usedonly&type=Counters'),
    ['cx_total: 1', 'rq_success: 1', 'rq_total: 1'].map((line) => prefix + line),
  );
  assert.deepEqual(await lines('&type=Histograms'), []);

  const { stats } = JSON.parse(await weir.admin('/stats?format=json&filter=endpoint.*rq_total')) as JsonObject;
  assert.deepEqual(stats, [{ name: `${prefix}rq_total`, value: 1 }]);
  const labels = `envoy_cluster_name="the_web",envoy_endpoint_address="${host}"`;
  assert.equal(
    await weir.admin('/stats/prometheus?filter=endpoint.*rq_total'),
    `# TYPE envoy_cluster_endpoint_rq_total counter\nenvoy_cluster_endpoint_rq_total{${labels}} 1\n`,
  );

  const ofAsked = async (): Promise<number> =>
    (await lines('')).filter((line) => line.startsWith('cluster.asked.')).length;
  // A host that nobody asks for goes soon, and its connection with it.
  while ((await ofAsked()) === 0) await get('asked');
  for (const socket of upstream.sockets) socket.destroy();
  await untilEqual(0, ofAsked, 'stats of a host that has gone');
  assert.equal((await lines('')).length, 10);
});
