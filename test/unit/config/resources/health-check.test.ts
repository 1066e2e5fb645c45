// Health checks as a configuration says them, in both generations.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HealthCheckSettings, HttpProbeSettings } from '../../../../src/snapshot/index.ts';
import {
  clusterNamed,
  faultTexts,
  type JsonObject,
  load,
  mustLoad,
  socketAddress,
  withClusters,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0]';
const CHECK_AT = `${AT}.health_checks[0]`;
const REQUIRED = { timeout: '1s', interval: '5s', unhealthy_threshold: 3, healthy_threshold: 2 };
const TCP = { tcp_health_check: {} };

function checkOf(check: JsonObject, cluster: JsonObject = {}): HealthCheckSettings {
  const fields = { health_checks: [{ ...REQUIRED, ...check }], ...cluster };
  return mustLoad(withClusters(clusterNamed('web', fields))).clusters[0]!.healthCheck!;
}

function httpOf(http: JsonObject): HttpProbeSettings {
  return checkOf({ http_health_check: { path: '/', ...http } }).probe as HttpProbeSettings;
}

function errorsOf(check: JsonObject, cluster: JsonObject = {}): string[] {
  const fields = { health_checks: [{ ...REQUIRED, ...check }], ...cluster };
  return faultTexts(load(withClusters(clusterNamed('web', fields))));
}

describe('the health checks of a cluster', () => {
  it('are none without any', () => {
    assert.equal(mustLoad(withClusters(clusterNamed('web'))).clusters[0]!.healthCheck, undefined);
  });

  it('may have wishes of their own for TLS, which say nothing in cleartext', () => {
    const wishes = { tls_options: { alpn_protocols: ['h2'] }, transport_socket_match_criteria: { mode: 'tls' } };
    const socket = {
      name: 'raw',
      typed_config: { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer' },
    };
    const matches = [{ name: 'tls', match: { mode: 'tls' }, transport_socket: socket }];
    const check = checkOf({ ...TCP, ...wishes }, { tls_context: {}, transport_socket_matches: matches });
    assert.deepEqual(check.alpnProtocols, ['h2']);
    assert.deepEqual(check.transportMetadata, { 'envoy.transport_socket_match': { mode: 'tls' } });
    const plain = load(withClusters(clusterNamed('web', { health_checks: [{ ...REQUIRED, ...TCP, ...wishes }] })));
    assert.deepEqual(faultTexts(plain, 'warning'), [
      `${CHECK_AT}.tls_options: no connection of this cluster is secured`,
      `${CHECK_AT}.transport_socket_match_criteria: there are no transport_socket_matches to choose from`,
    ]);
    assert.equal(checkOf({ ...TCP, tls_options: {} }, { tls_context: {} }).alpnProtocols, undefined);
  });

  it('are by HTTP/2 in either form', () => {
    assert.equal(httpOf({}).speaksHttp2, undefined);
    assert.equal(httpOf({ codec_client_type: 'HTTP1' }).speaksHttp2, undefined);
    assert.equal(httpOf({ codec_client_type: 'HTTP2' }).speaksHttp2, true);
    assert.equal(httpOf({ use_http2: true }).speaksHttp2, true);
  });

  it('are by gRPC where the cluster speaks HTTP/2', () => {
    const http2 = { http2_protocol_options: {} };
    const header = { key: 'X-Token', value: 'abc' };
    assert.deepEqual(checkOf({ grpc_health_check: {} }, http2).probe, {
      kind: 'grpc',
      serviceName: '',
      authority: 'web',
      headersToAdd: [],
      headersToRemove: [],
    });
    const own = { service_name: 'a', authority: 'b', initial_metadata: [{ header }] };
    assert.deepEqual(checkOf({ grpc_health_check: own }, http2).probe, {
      kind: 'grpc',
      serviceName: 'a',
      authority: 'b',
      headersToAdd: [{ name: 'x-token', value: 'abc', appends: true }],
      headersToRemove: [],
    });
    const named = clusterNamed('a\nb', { ...http2, health_checks: [{ ...REQUIRED, grpc_health_check: {} }] });
    assert.deepEqual(faultTexts(load(withClusters(named))), [
      `${CHECK_AT}.grpc_health_check.authority: is needed: "a\\nb", the name of the cluster, cannot be a Host header`,
    ]);
  });

  it('fill in the documented defaults', () => {
    assert.deepEqual(checkOf(TCP), {
      probe: { kind: 'tcp', send: Buffer.alloc(0), receive: [] },
      timeoutMs: 1000,
      intervals: {
        initialJitterMs: 0,
        healthyMs: 5000,
        healthyEdgeMs: 5000,
        unhealthyMs: 5000,
        unhealthyEdgeMs: 5000,
        noTrafficMs: 60_000,
        noTrafficHealthyMs: 60_000,
        jitterMs: 0,
        jitterPercent: 0,
      },
      unhealthyThreshold: 3,
      healthyThreshold: 2,
      reusesConnection: true,
      port: 0,
      eventLogPaths: [],
      alwaysLogsFailures: false,
      alwaysLogsSuccess: false,
      excludesNewHosts: false,
      removesPassingHosts: false,
    });
    assert.deepEqual(httpOf({}), {
      kind: 'http',
      method: 'GET',
      path: '/',
      authority: 'web',
      body: Buffer.alloc(0),
      headersToAdd: [],
      headersToRemove: [],
      expectedStatuses: [{ start: 200, end: 201 }],
      retriableStatuses: [],
      receive: [],
      responseBufferBytes: 1024,
      serviceName: undefined,
    });
  });

  it('take every interval, with those that follow from one another', () => {
    const { intervals } = checkOf({
      ...TCP,
      initial_jitter: '0.1s',
      interval_jitter: '0.2s',
      interval_jitter_percent: 7,
      unhealthy_interval: '8s',
      no_traffic_interval: '9s',
    });
    assert.deepEqual(intervals, {
      initialJitterMs: 100,
      healthyMs: 5000,
      healthyEdgeMs: 5000,
      unhealthyMs: 8000,
      unhealthyEdgeMs: 8000,
      noTrafficMs: 9000,
      noTrafficHealthyMs: 9000,
      jitterMs: 200,
      jitterPercent: 7,
    });
    const edges = { unhealthy_edge_interval: '1s', healthy_edge_interval: '2s', no_traffic_healthy_interval: '3s' };
    const { unhealthyEdgeMs, healthyEdgeMs, noTrafficHealthyMs } = checkOf({ ...TCP, ...edges }).intervals;
    assert.deepEqual([unhealthyEdgeMs, healthyEdgeMs, noTrafficHealthyMs], [1000, 2000, 3000]);
  });

  const sink = {
    name: 'sink',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink',
      event_log_path: '/b',
    },
  };

  it('have the paths of their event logs looked at', () => {
    const findLogPathFault = (path: string): string => `it is ${path}`;
    const check = { ...REQUIRED, ...TCP, event_log_path: '/a', event_logger: [sink] };
    const result = load(withClusters(clusterNamed('web', { health_checks: [check] })), { findLogPathFault });
    assert.deepEqual(faultTexts(result), [
      `${CHECK_AT}.event_log_path: "/a" cannot be written: it is /a`,
      `${CHECK_AT}.event_logger[0].typed_config.event_log_path: "/b" cannot be written: it is /b`,
    ]);
  });

  it('take the rest', () => {
    const settings = checkOf(
      {
        ...TCP,
        reuse_connection: false,
        alt_port: 81,
        event_log_path: '/a',
        event_logger: [sink, sink],
        always_log_health_check_failures: true,
        always_log_health_check_success: true,
      },
      {
        common_lb_config: { ignore_new_hosts_until_first_hc: true },
        drain_connections_on_host_removal: true,
      },
    );
    const { reusesConnection, port, eventLogPaths, alwaysLogsFailures, alwaysLogsSuccess } = settings;
    assert.deepEqual([reusesConnection, port, eventLogPaths], [false, 81, ['/a', '/b']]);
    assert.deepEqual([alwaysLogsFailures, alwaysLogsSuccess], [true, true]);
    assert.deepEqual([settings.excludesNewHosts, settings.removesPassingHosts], [true, true]);
  });

  it('read payloads as hexadecimal text or as bytes', () => {
    const { probe } = checkOf({
      tcp_health_check: { send: { text: '00fF' }, receive: [{ binary: 'b2s=' }, { text: '0a' }] },
    });
    assert.deepEqual(probe, {
      kind: 'tcp',
      send: Buffer.from([0, 255]),
      receive: [Buffer.from('ok'), Buffer.from('\n')],
    });
  });

  it('read an HTTP check, in the form of either generation', () => {
    const header = { header: { key: 'X-A', value: 'b' }, append: false };
    const settings = httpOf({
      host: 'h.test',
      path: '/up?x',
      method: 'PUT',
      send: { text: '70' },
      receive: [{ text: '6f6b' }],
      response_buffer_size: 7,
      request_headers_to_add: [header],
      request_headers_to_remove: ['User-Agent'],
      expected_statuses: [{ start: 200, end: 300 }],
      retriable_statuses: [{ start: 500, end: 600 }],
      service_name_matcher: { exact: 'web' },
    });
    assert.deepEqual(settings, {
      kind: 'http',
      method: 'PUT',
      path: '/up?x',
      authority: 'h.test',
      body: Buffer.from('p'),
      headersToAdd: [{ name: 'x-a', value: 'b', appends: false }],
      headersToRemove: ['user-agent'],
      expectedStatuses: [{ start: 200, end: 300 }],
      retriableStatuses: [{ start: 500, end: 600 }],
      receive: [Buffer.from('ok')],
      responseBufferBytes: 7,
      serviceName: { kind: 'exact', value: 'web', ignoresCase: false },
    });
    assert.deepEqual(httpOf({ service_name: 'web' }).serviceName, { kind: 'prefix', value: 'web', ignoresCase: false });
    assert.equal(httpOf({ response_buffer_size: 0 }).responseBufferBytes, 1024 * 1024);
  });

  const http = (fields: JsonObject): JsonObject => ({ http_health_check: { path: '/', ...fields } });
  const HTTP_AT = `${CHECK_AT}.http_health_check`;
  const faults: readonly {
    readonly name: string;
    readonly check: JsonObject;
    readonly error: string;
    readonly cluster?: JsonObject;
  }[] = [
    {
      name: 'a threshold of 0',
      check: { ...TCP, healthy_threshold: 0 },
      error: `${CHECK_AT}.healthy_threshold: must be at least 1`,
    },
    {
      name: 'half a byte',
      check: { tcp_health_check: { send: { text: '123' } } },
      error: `${CHECK_AT}.tcp_health_check.send.text: invalid hex string "123"`,
    },
    {
      name: 'a path with a space',
      check: http({ path: '/a b' }),
      error: `${HTTP_AT}.path: "/a b" cannot be a request target`,
    },
    {
      name: 'no path, once',
      check: http({ path: '' }),
      error: `${HTTP_AT}.path: must not be empty`,
    },
    {
      name: 'a Host of two lines',
      check: http({ host: 'a\r\nx: y' }),
      error: `${HTTP_AT}.host: is not a header value: it holds control characters`,
    },
    {
      name: 'a body of a GET',
      check: http({ send: { text: '00' } }),
      error: `${HTTP_AT}.send: a GET request has no body`,
    },
    {
      name: 'an empty range of statuses',
      check: http({ expected_statuses: [{ start: 200, end: 200 }] }),
      error: `${HTTP_AT}.expected_statuses[0]: [200, 200) is empty: the end does not belong to the range`,
    },
    {
      name: 'a status that there is not',
      check: http({ retriable_statuses: [{ start: 500, end: 700 }] }),
      error: `${HTTP_AT}.retriable_statuses[0]: [500, 700) leaves the range of statuses, [100, 600)`,
    },
    {
      name: 'a header that would need a client',
      check: http({ request_headers_to_add: [{ header: { key: 'x', value: '%PROTOCOL%' } }] }),
      error: `${HTTP_AT}.request_headers_to_add: "x" cannot hold commands: a check has no client`,
    },
    {
      name: 'HTTP/3',
      check: http({ codec_client_type: 'HTTP3' }),
      error: `${HTTP_AT}.codec_client_type: codec_client_type HTTP3 is not supported by this build: there is no QUIC`,
    },
    {
      name: 'gRPC over HTTP/1',
      check: { grpc_health_check: {} },
      error: `${CHECK_AT}.grpc_health_check: web cluster must support HTTP/2 for gRPC healthchecking`,
    },
    {
      name: 'metadata that would need a client',
      check: { grpc_health_check: { initial_metadata: [{ header: { key: 'x', value: '%PROTOCOL%' } }] } },
      error: `${CHECK_AT}.grpc_health_check.initial_metadata: "x" cannot hold commands: a check has no client`,
      cluster: { http2_protocol_options: {} },
    },
    {
      name: 'a port above all ports',
      check: { ...TCP, alt_port: 70_000 },
      error: `${CHECK_AT}.alt_port: 70000 exceeds the limit 65535`,
    },
  ];
  for (const { name, check, error, cluster } of faults) {
    it(`cannot be with ${name}`, () => assert.deepEqual(errorsOf(check, cluster), [error]));
  }

  it('cannot write a line behind their Host, which may be the name of the cluster', () => {
    const cluster = clusterNamed('a\nb', { health_checks: [{ ...REQUIRED, ...http({}) }] });
    assert.deepEqual(faultTexts(load(withClusters(cluster))), [
      `${HTTP_AT}.host: is needed: "a\\nb", the name of the cluster, cannot be a Host header`,
    ]);
    // Which is fine where no Host is sent.
    const byTcp = clusterNamed('a\nb', { health_checks: [{ ...REQUIRED, ...TCP }] });
    assert.equal(mustLoad(withClusters(byTcp)).clusters[0]!.name, 'a\nb');
  });

  it('are one at most', () => {
    const check = { ...REQUIRED, ...TCP };
    assert.deepEqual(faultTexts(load(withClusters(clusterNamed('web', { health_checks: [check, check] })))), [
      `${AT}.health_checks[1]: a cluster can have one health check only`,
    ]);
  });

  it('are as an endpoint wants them', () => {
    const endpointWith = (health_check_config: JsonObject): JsonObject => ({
      load_assignment: {
        cluster_name: 'web',
        endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress('10.0.0.1', 80), health_check_config } }] }],
      },
    });
    const cluster = clusterNamed(
      'web',
      endpointWith({
        port_value: 81,
        hostname: 'h.test',
        address: socketAddress('10.0.0.2', 82),
        disable_active_health_check: true,
      }),
    );
    assert.deepEqual(mustLoad(withClusters(cluster)).clusters[0]!.hosts[0]!.check, {
      address: { kind: 'ip', ip: '10.0.0.2', port: 82 },
      port: 81,
      hostname: 'h.test',
      isDisabled: true,
    });
    const split = clusterNamed('web', endpointWith({ hostname: 'a\0b' }));
    assert.match(
      faultTexts(load(withClusters(split))).join(),
      /hostname: is not a header value: it holds CR, LF or NUL/,
    );
    const named = clusterNamed('web', endpointWith({ address: socketAddress('check.test', 82) }));
    assert.match(faultTexts(load(withClusters(named))).join(), /a check connects to an IP address/);
  });
});
