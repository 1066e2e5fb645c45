// What the bootstrap and the command line say about statistics, as the real program shows it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { startWeir } from '../support/weir-process.ts';

const BOOTSTRAP: JsonObject = {
  admin: { address: socketAddress('127.0.0.1', 0) },
  static_resources: { clusters: [clusterNamed('web-v2')] },
  stats_flush_on_admin: true,
  stats_config: {
    stats_tags: [
      { tag_name: 'version', regex: '^cluster\\.[^.]+?(-(v\\d+))\\.' },
      { tag_name: 'site', fixed_value: 'lab' },
    ],
    stats_matcher: { exclusion_list: { patterns: [{ prefix: 'runtime.' }] } },
    histogram_bucket_settings: [{ match: { exact: 'server.initialization_time_ms' }, buckets: [600000, 1] }],
  },
  layered_runtime: {
    layers: [{ name: 'static', static_layer: { 'envoy.reloadable_features.admin_stats_filter_use_re2': false } }],
  },
};

test('follows what the bootstrap and the command line say about statistics', async () => {
  await using weir = await startWeir({
    configYaml: JSON.stringify(BOOTSTRAP),
    args: ['--concurrency', '1', '--stats-tag', 'rack:7'],
  });
  const get = async (path: string): Promise<string> => (await fetch(`${weir.adminUrl}${path}`)).text();

  assert.equal(await get('/stats?filter=r%5C.live(%3F=$)'), 'server.live: 1\n');
  assert.match(await get('/stats?filter=('), /^Invalid regex: /);
  assert.equal(await get('/stats?filter=^runtime'), '');
  assert.match(await get('/stats?filter=^server.version_text'), /^server\.version_text: ".+\/.+"\n$/);

  const metrics = await get('/stats/prometheus?filter=membership_total|initialization');
  assert.match(metrics, /^# TYPE envoy_cluster_membership_total gauge$/m);
  assert.match(
    metrics,
    /^envoy_cluster_membership_total\{envoy_cluster_name="web-v2",version="v2",site="lab",rack="7"\} \d+$/m,
  );
  const buckets = [...metrics.matchAll(/^envoy_server_initialization_time_ms_bucket\{.*le="([^"]+)"\} (\d+)$/gm)];
  assert.deepEqual(
    buckets.map(([, bound, count]) => [bound, count]),
    [
      ['1', '0'],
      ['600000', '1'],
      ['+Inf', '1'],
    ],
  );
  // Flushed with each look alone: the one before took in what the start had recorded.
  assert.match(
    await get('/stats?filter=initialization&quantiles=50'),
    /^server\.initialization_time_ms: P50\(nan,[\d.]+\)\n$/,
  );
});

test('tells what a listener accepts, and of the codec that its clients are read with', async () => {
  const route = { match: { prefix: '/' }, direct_response: { status: 200 } };
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] } });
  const listener = listenerWith([manager], { address: socketAddress('127.0.0.1', 0), stat_prefix: 'edge' });
  await using weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: { listeners: [listener] },
      stats_flush_on_admin: true,
    }),
    args: ['--concurrency', '2'],
  });
  const { ip, port } = [...(await weir.listeners()).values()][0]!;
  for (let at = 0; at < 5; at += 1) {
    const response = await fetch(`http://${ip}:${port}/`, { headers: { connection: 'close' } });
    await response.text();
  }
  const accepted = await weir.admin(
    '/stats?filter=^listener.edge.connections_accepted_per_socket_event$&histogram_buckets=detailed',
  );
  assert.match(accepted, /^ {2}totals=1,0\.1:5$/m);
  assert.equal(
    await weir.admin('/stats?filter=^http1'),
    [
      'http1.dropped_headers_with_underscores: 0\n',
      'http1.metadata_not_supported_error: 0\n',
      'http1.requests_rejected_with_underscores_in_headers: 0\n',
      'http1.response_flood: 0\n',
    ].join(''),
  );
});
