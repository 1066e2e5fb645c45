// Requests that prefer the zone of the proxy, in the real program.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterNamed, httpFilter, type Json, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = { socket_address: { address: '127.0.0.1', port_value: 0 } };
const REQUESTS = 20;

test('requests stay in the zone of the proxy, where a local cluster says that its hosts can take them', async (t) => {
  const upstreams = new Map<string, WireUpstream>();
  for (const zone of ['here', 'there']) {
    upstreams.set(
      zone,
      await WireUpstream.answering(`HTTP/1.1 200 OK\r\ncontent-length: ${zone.length}\r\n\r\n${zone}`),
    );
  }
  t.after(() => Promise.all([...upstreams.values()].map((upstream) => upstream.close())));
  const cluster = (name: string, portOf: (zone: string) => number): Json => {
    const endpoints = ['there', 'here'].map((zone) => ({
      locality: { zone },
      lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', portOf(zone)) } }],
    }));
    const common_lb_config = { zone_aware_lb_config: { min_cluster_size: 2 } };
    return clusterNamed(name, { load_assignment: { cluster_name: name, endpoints }, common_lb_config });
  };
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: ANY_PORT },
      node: { locality: { zone: 'here' } },
      cluster_manager: { local_cluster_name: 'proxies' },
      stats_flush_on_admin: true,
      static_resources: {
        listeners: [listenerWith([manager], { address: ANY_PORT })],
        clusters: [cluster('web', (zone) => upstreams.get(zone)!.port), cluster('proxies', (zone) => zone.length)],
      },
    }),
  });
  t.after(() => weir.stop());
  const client = new WireClient((await weir.listeners()).get('main')!.port);
  for (let request = 0; request < REQUESTS; request += 1) {
    client.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
    assert.equal((await client.response()).body, 'here');
  }
  client.close();
  await weir.untilStat('cluster.web.lb_zone_routing_all_directly', REQUESTS);
});
