// Sinks of statistics in the real program, each with a real receiver on loopback.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MetricsServiceReceiver, OtlpReceiver } from '../support/grpc-receivers.ts';
import { DatagramReceiver, TcpReceiver } from '../support/metric-receivers.ts';
import { startWeir } from '../support/weir-process.ts';

const ADMIN = 'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }';
const METRICS = 'type.googleapis.com/envoy.config.metrics.v3';

describe('statsd over UDP', () => {
  it('gets a line of each stat that has been used, with what counters have counted since the flush before', async () => {
    await using receiver = await DatagramReceiver.open();
    const configYaml = `${ADMIN}
stats_flush_interval: 0.1s
stats_sinks:
- name: envoy.stat_sinks.statsd
  typed_config:
    "@type": ${METRICS}.StatsdSink
    address: { socket_address: { protocol: UDP, address: 127.0.0.1, port_value: ${receiver.port} } }`;
    await using weir = await startWeir({ configYaml });
    await receiver.until((lines) => lines.includes('proxy.server.live:1|g'));
    await receiver.until((lines) => lines.includes('proxy.http.admin.downstream_rq_total:0|c'));
    const before = receiver.sumOf('proxy.http.admin.downstream_rq_total');
    for (let request = 0; request < 3; request++) await weir.admin('/ready');
    await receiver.until(() => receiver.sumOf('proxy.http.admin.downstream_rq_total') >= before + 3);
    assert.ok(
      receiver.datagrams.every((datagram) => !datagram.includes('\n')),
      'a line a datagram',
    );
    assert.equal(await weir.stat('stat_sinks.statsd.metrics_dropped'), 0);
  });

  it('gets at the end what has come since the last flush', async () => {
    await using receiver = await DatagramReceiver.open();
    const configYaml = `${ADMIN}
stats_flush_interval: 299s
stats_sinks:
- name: envoy.statsd
  typed_config:
    "@type": ${METRICS}.StatsdSink
    prefix: last
    address: { socket_address: { address: 127.0.0.1, port_value: ${receiver.port} } }`;
    await using weir = await startWeir({ configYaml });
    assert.equal(receiver.datagrams.length, 0);
    assert.equal((await weir.stop()).code, 0);
    await receiver.until((lines) => lines.includes('last.server.concurrency:1|g'));
  });
});

describe('statsd over TCP', () => {
  it('goes to a host of the cluster, which counts the connection, and is told the last of it at the end', async () => {
    await using receiver = await TcpReceiver.open();
    const configYaml = `${ADMIN}
stats_flush_interval: 0.1s
static_resources:
  clusters:
  - name: metrics
    load_assignment:
      cluster_name: metrics
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: ${receiver.port} } } }
stats_sinks:
- name: envoy.statsd
  config: { tcp_cluster_name: metrics }`;
    await using weir = await startWeir({ configYaml });
    await receiver.until((lines) => lines.includes('proxy.server.live:1|g'));
    await weir.untilStat('cluster.metrics.upstream_cx_active', 1);
    assert.equal(await weir.stat('cluster.metrics.upstream_cx_total'), 1);
    for (let request = 0; request < 3; request++) await weir.admin('/ready');
    assert.equal((await weir.stop()).code, 0);
    const total = receiver.sumOf('proxy.http.admin.downstream_rq_total');
    assert.ok(total >= 5, `${total} requests were told of`);
  });
});

describe('sinks with tags', () => {
  it('get several lines a datagram where they may, each with the tags of its stat', async () => {
    await using dogStatsd = await DatagramReceiver.open();
    await using graphite = await DatagramReceiver.open();
    const address = (port: number): string => `{ socket_address: { address: 127.0.0.1, port_value: ${port} } }`;
    const configYaml = `${ADMIN}
stats_flush_interval: 0.1s
stats_config: { stats_tags: [{ tag_name: site, fixed_value: here }] }
stats_sinks:
- name: envoy.stat_sinks.dog_statsd
  typed_config:
    "@type": ${METRICS}.DogStatsdSink
    address: ${address(dogStatsd.port)}
    max_bytes_per_datagram: 1400
- name: envoy.stat_sinks.graphite_statsd
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink
    address: ${address(graphite.port)}
    max_bytes_per_datagram: 1400`;
    await using _weir = await startWeir({ configYaml });
    await dogStatsd.until((lines) => lines.includes('proxy.server.live:1|g|#site:here'));
    await graphite.until((lines) => lines.includes('proxy.server.live;site=here:1|g'));
    for (const { datagrams } of [dogStatsd, graphite]) {
      assert.ok(datagrams.some((datagram) => datagram.includes('\n')));
      for (const datagram of datagrams) assert.ok(datagram.length <= 1400);
    }
  });
});

describe('sinks over gRPC', () => {
  it('reach the host of a cluster or a target, and are told the last at the end', async () => {
    await using otlp = await new OtlpReceiver().listen();
    await using service = await new MetricsServiceReceiver().listen();
    const configYaml = `${ADMIN}
node: { id: one, cluster: proxies }
stats_flush_interval: 0.2s
stats_config:
  histogram_bucket_settings: [{ match: { prefix: server. }, buckets: [3, 60000] }]
static_resources:
  clusters:
  - name: collector
    load_assignment:
      cluster_name: collector
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: ${otlp.port} } } }
stats_sinks:
- name: envoy.stat_sinks.open_telemetry
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig
    grpc_service: { envoy_grpc: { cluster_name: collector } }
    report_counters_as_deltas: true
- name: envoy.metrics_service
  typed_config:
    "@type": ${METRICS}.MetricsServiceConfig
    grpc_service: { google_grpc: { target_uri: '127.0.0.1:${service.port}', stat_prefix: metrics } }`;
    await using weir = await startWeir({ configYaml });
    await otlp.until(() => otlp.named('server.initialization_time_ms').length > 0);
    const [time] = otlp.named('server.initialization_time_ms');
    assert.deepEqual(time!.histogram!.data_points[0]!.explicit_bounds, [3, 60_000]);
    await service.until(() => service.named('server.live').length > 0);
    const { node } = service.messages[0]!.identifier as { node: { id: string } };
    assert.equal(node.id, 'one');
    assert.ok((await weir.stat('cluster.collector.upstream_rq_total'))! > 0);
    for (let request = 0; request < 3; request++) await weir.admin('/ready');
    assert.equal((await weir.stop()).code, 0);
    const points = otlp.named('http.downstream_rq_total').flatMap((metric) => metric.sum!.data_points);
    const total = points.reduce((sum, { as_int }) => sum + Number(as_int ?? 0), 0);
    assert.ok(total >= 5, `${total} requests were told of`);
  });

  it('that hang hold neither answers nor the end up', async () => {
    await using otlp = await new OtlpReceiver({ hangs: true }).listen();
    await using service = await new MetricsServiceReceiver({ isDeaf: true }).listen();
    const configYaml = `${ADMIN}
stats_flush_on_admin: true
stats_sinks:
- name: envoy.stat_sinks.open_telemetry
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig
    grpc_service: { google_grpc: { target_uri: '127.0.0.1:${otlp.port}', stat_prefix: metrics } }
- name: envoy.metrics_service
  typed_config:
    "@type": ${METRICS}.MetricsServiceConfig
    grpc_service: { google_grpc: { target_uri: '127.0.0.1:${service.port}', stat_prefix: metrics } }`;
    await using weir = await startWeir({ configYaml });
    for (let flush = 0; flush < 3; flush++)
      assert.match(await weir.admin('/stats?filter=server.live'), /server.live: 1/);
    await otlp.until(() => otlp.sizes.length > 0);
    assert.equal((await weir.stop()).code, 0);
  });
});

describe('sinks without a timer', () => {
  it('are fed when the admin interface is asked for stats', async () => {
    await using receiver = await DatagramReceiver.open();
    const configYaml = `${ADMIN}
stats_flush_on_admin: true
stats_sinks:
- name: envoy.statsd
  typed_config:
    "@type": ${METRICS}.StatsdSink
    address: { socket_address: { address: 127.0.0.1, port_value: ${receiver.port} } }`;
    await using weir = await startWeir({ configYaml });
    assert.equal(receiver.datagrams.length, 0);
    await weir.admin('/stats?filter=nothing');
    await receiver.until((lines) => lines.includes('proxy.server.live:1|g'));
  });
});
