import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clusterNamed, faultTexts, type Json, load, mustLoad, socketAddress } from '../../../support/bootstrap.ts';

const TYPES = 'type.googleapis.com/envoy.config.metrics';
const UDP = { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value: 8125 } };

function errorsOf(...sinks: readonly Json[]): string[] {
  return faultTexts(load({ stats_sinks: sinks }));
}

describe('a stats sink', () => {
  it('that this build does not have is an error that names it, with its place in the file', () => {
    const yaml = [
      'stats_sinks:',
      '- name: envoy.stat_sinks.wasm',
      '  typed_config:',
      '    "@type": type.googleapis.com/envoy.extensions.stat_sinks.wasm.v3.Wasm',
    ].join('\n');
    const [fault] = load(yaml).faults;
    assert.equal(fault?.severity, 'error');
    assert.equal(fault.path, 'stats_sinks[0].typed_config');
    assert.match(fault.message, /envoy\.stat_sinks\.wasm/);
    assert.equal(fault.line, 3);
  });

  it('is known by either generation of its message and by its name alone', () => {
    const v3 = { name: 'envoy.stat_sinks.statsd', typed_config: { '@type': `${TYPES}.v3.StatsdSink`, address: UDP } };
    const v2 = { name: 'envoy.statsd', typed_config: { '@type': `${TYPES}.v2.StatsdSink`, address: UDP } };
    const oldest = { name: 'envoy.statsd', config: { address: UDP } };
    const expected = {
      name: 'stat_sinks.statsd',
      settings: { prefix: 'proxy', target: { kind: 'udp', ip: '127.0.0.1', port: 8125 } },
    };
    const { statSinks } = mustLoad({ stats_sinks: [v3, v2, oldest] });
    assert.deepEqual(statSinks, [expected, expected, expected]);
  });
});

describe('the settings of statsd', () => {
  const statsd = (fields: { readonly [key: string]: Json }): Json => ({
    name: 'envoy.stat_sinks.statsd',
    typed_config: { '@type': `${TYPES}.v3.StatsdSink`, ...fields },
  });

  it('have a prefix and a unix socket, or a cluster that exists', () => {
    const { statSinks } = mustLoad({
      stats_sinks: [statsd({ address: { pipe: { path: '/run/statsd' } }, prefix: 'mine' })],
    });
    assert.deepEqual(statSinks[0]?.settings, { prefix: 'mine', target: { kind: 'pipe', path: '/run/statsd' } });
    assert.deepEqual(errorsOf(statsd({ tcp_cluster_name: 'nowhere' })), [
      'stats_sinks[0].typed_config.tcp_cluster_name: cluster "nowhere" does not exist',
    ]);
  });

  it('need a cluster that is spoken to in cleartext', () => {
    const upstreamTls = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
    const tls = { name: 'tls', typed_config: { '@type': upstreamTls } };
    const inHeader = {
      name: 'envoy.transport_sockets.upstream_proxy_protocol',
      typed_config: {
        '@type':
          'type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport',
        transport_socket: tls,
      },
    };
    const forms: readonly { readonly [key: string]: Json }[] = [
      { tls_context: {} },
      { transport_socket: tls },
      { transport_socket: inHeader },
      { transport_socket_matches: [{ name: 'all', transport_socket: tls }] },
    ];
    for (const fields of forms) {
      const static_resources = { clusters: [clusterNamed('stats', fields)] };
      const stats_sinks = [statsd({ tcp_cluster_name: 'stats' })];
      assert.deepEqual(faultTexts(load({ static_resources, stats_sinks })), [
        'stats_sinks[0].typed_config.tcp_cluster_name: cluster "stats" is secured by TLS, which this build speaks for traffic alone',
      ]);
    }
  });

  it('need an IP address with a port', () => {
    assert.deepEqual(errorsOf(statsd({ address: socketAddress('statsd.test', 8125) })), [
      'stats_sinks[0].typed_config.address.socket_address.address: "statsd.test" is not an IP address; statistics are sent to an IP address',
    ]);
    assert.deepEqual(errorsOf(statsd({ address: socketAddress('127.0.0.1', 0) })), [
      'stats_sinks[0].typed_config.address.socket_address.port_value: is required: no datagram can be sent to port 0',
    ]);
    assert.equal(errorsOf(statsd({})).length, 1);
  });
});

describe('the settings of sinks with tags', () => {
  const GRAPHITE = 'type.googleapis.com/envoy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink';
  const target = { kind: 'udp', ip: '127.0.0.1', port: 8125 };

  it('have a prefix and a limit of datagrams', () => {
    const limited = { address: UDP, prefix: 'mine', max_bytes_per_datagram: 512 };
    const { statSinks } = mustLoad({
      stats_sinks: [
        { name: 'envoy.stat_sinks.dog_statsd', typed_config: { '@type': `${TYPES}.v3.DogStatsdSink`, address: UDP } },
        { name: 'envoy.dog_statsd', config: { address: UDP } },
        { name: 'envoy.stat_sinks.graphite_statsd', typed_config: { '@type': GRAPHITE, ...limited } },
      ],
    });
    const plain = { name: 'stat_sinks.dog_statsd', settings: { prefix: 'proxy', target, maxBytes: 0 } };
    const graphite = { name: 'stat_sinks.graphite_statsd', settings: { prefix: 'mine', target, maxBytes: 512 } };
    assert.deepEqual(statSinks, [plain, plain, graphite]);
  });

  it('refuse datagrams that no network takes', () => {
    const typed = { '@type': GRAPHITE, address: UDP, max_bytes_per_datagram: 65_508 };
    assert.deepEqual(errorsOf({ name: 'envoy.stat_sinks.graphite_statsd', typed_config: typed }), [
      'stats_sinks[0].typed_config.max_bytes_per_datagram: 65508 exceeds the limit 65507',
    ]);
  });
});

describe('the settings of sinks over gRPC', () => {
  const METRICS_SERVICE = `${TYPES}.v3.MetricsServiceConfig`;
  const OTEL = 'type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig';
  const service = { google_grpc: { target_uri: '127.0.0.1:4317', stat_prefix: 'metrics' } };
  const sink = (type: string, fields: { readonly [key: string]: Json }): Json => ({
    name: 'envoy.stat_sinks.over_grpc',
    typed_config: { '@type': type, ...fields },
  });

  it('have defaults', () => {
    const { statSinks } = mustLoad({
      stats_sinks: [sink(METRICS_SERVICE, { grpc_service: service }), sink(OTEL, { grpc_service: service })],
    });
    const settings = { target: { kind: 'uri', uri: '127.0.0.1:4317' }, metadata: [], timeoutMs: 10_000 };
    assert.deepEqual(statSinks, [
      {
        name: 'stat_sinks.metrics_service',
        settings: {
          service: settings,
          generation: 'v3',
          countersAsDeltas: false,
          tagsAsLabels: false,
          hasSummaries: true,
          hasHistograms: true,
          batchSize: 0,
        },
      },
      {
        name: 'stat_sinks.open_telemetry',
        settings: {
          service: settings,
          countersAsDeltas: false,
          histogramsAsDeltas: false,
          tagsAsAttributes: true,
          usesExtractedNames: true,
          prefix: '',
        },
      },
    ]);
  });

  it('are what the fields say', () => {
    const inCluster = {
      envoy_grpc: { cluster_name: 'web', authority: 'collector.test' },
      timeout: '0.25s',
      initial_metadata: [{ key: 'Authorization', value: 'Bearer token' }],
    };
    const { statSinks } = mustLoad({
      static_resources: { clusters: [clusterNamed('web')] },
      stats_sinks: [
        sink(METRICS_SERVICE, {
          grpc_service: inCluster,
          report_counters_as_deltas: true,
          transport_api_version: 'V2',
          emit_tags_as_labels: true,
          histogram_emit_mode: 'HISTOGRAM',
          batch_size: 50,
        }),
        sink(OTEL, {
          grpc_service: inCluster,
          report_counters_as_deltas: true,
          report_histograms_as_deltas: true,
          emit_tags_as_attributes: false,
          use_tag_extracted_name: false,
          prefix: 'mine',
        }),
      ],
    });
    const settings = {
      target: { kind: 'cluster', cluster: 'web', authority: 'collector.test' },
      metadata: [{ key: 'authorization', value: 'Bearer token' }],
      timeoutMs: 250,
    };
    assert.deepEqual(statSinks[0]!.settings, {
      service: settings,
      generation: 'v2',
      countersAsDeltas: true,
      tagsAsLabels: true,
      hasSummaries: false,
      hasHistograms: true,
      batchSize: 50,
    });
    assert.deepEqual(statSinks[1]!.settings, {
      service: settings,
      countersAsDeltas: true,
      histogramsAsDeltas: true,
      tagsAsAttributes: false,
      usesExtractedNames: false,
      prefix: 'mine.',
    });
  });

  it('refuse by name what is not cleartext, clusters that do not exist, and metadata that is none', () => {
    const google = service.google_grpc;
    const tls = { google_grpc: { ...google, channel_credentials: { ssl_credentials: {} } } };
    assert.match(
      errorsOf(sink(OTEL, { grpc_service: tls })).join(),
      /channel_credentials\.ssl_credentials: stat sinks speak cleartext to gRPC services/,
    );
    const token = { google_grpc: { ...google, call_credentials: [{ access_token: 'token' }] } };
    assert.match(
      errorsOf(sink(OTEL, { grpc_service: token })).join(),
      /google_grpc\.call_credentials: stat sinks send no tokens/,
    );
    const nowhere = { envoy_grpc: { cluster_name: 'nowhere' } };
    assert.match(errorsOf(sink(OTEL, { grpc_service: nowhere })).join(), /cluster "nowhere" does not exist/);
    const metadata = [
      { key: 'grpc-timeout', value: '1S' },
      { key: 'fine', value: 'bell\u0007' },
    ];
    assert.deepEqual(errorsOf(sink(OTEL, { grpc_service: { ...service, initial_metadata: metadata } })), [
      'stats_sinks[0].typed_config.grpc_service.initial_metadata[0].key: "grpc-timeout" is no name of metadata that can be set',
      'stats_sinks[0].typed_config.grpc_service.initial_metadata[1].value: has characters beyond printable ASCII',
    ]);
    const local = { google_grpc: { ...google, channel_credentials: { local_credentials: {} } } };
    assert.deepEqual(errorsOf(sink(OTEL, { grpc_service: local })), []);
    const conversions = [{ metric_name: 'other' }];
    const converted = sink(OTEL, { grpc_service: service, custom_metric_conversions: conversions });
    assert.match(errorsOf(converted).join(), /custom_metric_conversions is not supported/);
  });
});
