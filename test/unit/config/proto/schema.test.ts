import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type protobuf from 'protobufjs/light.js';
import { PACKAGE_ROOT } from '../../../../src/base/package-root.ts';
import { Cluster_LbPolicy } from '../../../../src/config/proto/generated/enums.ts';
import type { Cluster } from '../../../../src/config/proto/generated/messages.ts';
import { type Int64, int64ToBigInt, int64ToNumber } from '../../../../src/config/proto/int64.ts';
import { envoySpelling } from '../../../../src/config/proto/message-names.ts';
import { describeType, protoSchema, typeName } from '../../../../src/config/proto/root.ts';
import { runProgram } from '../../../support/child-process.ts';

const schema = protoSchema();
const cluster = schema.messageType('proxy.config.cluster.v3.Cluster');

describe('message names', () => {
  const spellings = [
    ['proxy.config.cluster.v3.Cluster', 'v3'],
    ['envoy.config.cluster.v3.Cluster', 'v3'],
    ['.proxy.config.cluster.v3.Cluster', 'v3'],
    ['envoy.api.v2.Cluster', 'v2'],
    ['proxy.api.v2.Cluster', 'v2'],
    ['type.googleapis.com/envoy.config.cluster.v3.Cluster', 'v3'],
    ['type.googleapis.com/proxy.api.v2.Cluster', 'v2'],
    ['https://types.example/any/envoy.api.v2.Cluster', 'v2'],
  ] as const;
  for (const [name, generation] of spellings) {
    it(`${name} is the cluster message of ${generation}`, () => {
      assert.deepEqual(schema.find(name), { type: cluster, generation });
    });
  }

  const moved = [
    ['envoy.api.v2.auth.UpstreamTlsContext', 'proxy.extensions.transport_sockets.tls.v3.UpstreamTlsContext'],
    ['envoy.api.v2.core.HealthCheck.HttpHealthCheck', 'proxy.config.core.v3.HealthCheck.HttpHealthCheck'],
    ['envoy.config.filter.network.tcp_proxy.v2.TcpProxy', 'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy'],
    ['envoy.config.bootstrap.v2.Bootstrap', 'proxy.config.bootstrap.v3.Bootstrap'],
    ['envoy.type.matcher.StringMatcher', 'proxy.type.matcher.v3.StringMatcher'],
    ['envoy.config.filter.http.cache.v2alpha.CacheConfig', 'proxy.extensions.filters.http.cache.v3.CacheConfig'],
    ['envoy.config.filter.http.on_demand.v2.OnDemand', 'proxy.extensions.filters.http.on_demand.v3.OnDemand'],
    ['envoy.config.filter.http.ext_authz.v2alpha.ExtAuthz', 'proxy.extensions.filters.http.ext_authz.v3.ExtAuthz'],
    ['envoy.admin.v2alpha.ServerInfo', 'proxy.admin.v3.ServerInfo'],
    ['envoy.data.cluster.v2alpha.OutlierDetectionEvent', 'proxy.data.cluster.v3.OutlierDetectionEvent'],
  ] as const;
  for (const [older, current] of moved) {
    it(`${older} is now ${current}`, () => {
      assert.equal(typeName(schema.find(older)!.type), current);
      assert.equal(schema.find(older)!.generation, 'v2');
    });
  }

  it('knows what was alpha before it was stable, and caches by their former places', () => {
    for (const [former, current] of [
      [
        'envoy.extensions.filters.http.bandwidth_limit.v3alpha.BandwidthLimit',
        'filters.http.bandwidth_limit.v3.BandwidthLimit',
      ],
      [
        'envoy.extensions.access_loggers.open_telemetry.v3alpha.OpenTelemetryAccessLogConfig',
        'access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig',
      ],
      [
        'envoy.extensions.cache.simple_http_cache.v3alpha.SimpleHttpCacheConfig',
        'http.cache.simple_http_cache.v3.SimpleHttpCacheConfig',
      ],
      [
        'envoy.extensions.cache.simple_http_cache.v3.SimpleHttpCacheConfig',
        'http.cache.simple_http_cache.v3.SimpleHttpCacheConfig',
      ],
      [
        'envoy.source.extensions.filters.http.cache.SimpleHttpCacheConfig',
        'http.cache.simple_http_cache.v3.SimpleHttpCacheConfig',
      ],
    ] as const) {
      const found = schema.find(`type.googleapis.com/${former}`);
      assert.equal(found && typeName(found.type), `proxy.extensions.${current}`);
      assert.equal(found!.generation, 'v3');
    }
    assert.equal(schema.find('envoy.extensions.filters.http.nothing.v3alpha.X'), undefined);
  });

  it('knows the well-known types and the typed structs that an Any may hold', () => {
    for (const name of [
      'google.protobuf.Duration',
      'google.protobuf.Struct',
      'google.protobuf.BoolValue',
      'xds.type.v3.TypedStruct',
      'udpa.type.v1.TypedStruct',
    ]) {
      assert.equal(typeName(schema.find(`type.googleapis.com/${name}`)!.type), name);
    }
  });

  it('an unknown name is undefined to readers and a bug to our own code', () => {
    assert.equal(schema.find('envoy.config.cluster.v3.Clusters'), undefined);
    assert.throws(() => schema.messageType('proxy.Nothing'), /no message proxy\.Nothing/);
  });

  it('no two messages share a name', () => {
    const names = schema.types().map((type) => schema.find(typeName(type))!.type);
    assert.deepEqual(names, schema.types());
  });

  it('errors name a message without its package', () => {
    assert.equal(describeType(schema.messageType('envoy.api.v2.Cluster.RingHashLbConfig')), 'Cluster.RingHashLbConfig');
  });

  it('canonical names can be written in the older spelling', () => {
    assert.equal(envoySpelling('proxy.config.cluster.v3.Cluster'), 'envoy.config.cluster.v3.Cluster');
    assert.equal(envoySpelling('google.protobuf.Any'), 'google.protobuf.Any');
  });
});

describe('the bundle', () => {
  it('resolves every field type and default', () => {
    const unresolved = schema.types().flatMap((type) => type.fieldsArray.filter((field) => !field.resolved));
    assert.deepEqual(unresolved, []);
    assert.ok(schema.types().length > 600);
  });

  it('keeps options on fields, oneofs and messages', () => {
    assert.equal(cluster.options!['(proxy.v2_name)'], 'envoy.api.v2.Cluster');
    assert.equal(cluster.fields.name!.options!['(proxy.rule)'], 'non-empty');
    assert.equal(cluster.fields.hosts!.options!.deprecated, true);
    const bootstrapLayer = schema.messageType('proxy.config.bootstrap.v3.RuntimeLayer');
    assert.equal(bootstrapLayer.oneofs.layer_specifier!.options!['(proxy.required)'], true);
  });

  it('round-trips fields that only one generation numbers', () => {
    const address = { socket_address: { address: '127.0.0.1', port_value: 80 } };
    const fields = {
      name: 'web',
      hosts: [address],
      tls_context: { sni: 'a.example' },
      wait_for_warm_on_init: { value: false },
      dns_jitter: { seconds: 1, nanos: 5 },
      ring_hash_lb_config: { minimum_ring_size: { value: 2048 } },
    };
    const decoded = cluster.decode(cluster.encode(cluster.fromObject(fields)).finish()) as unknown as Cluster;
    assert.equal(decoded.hosts[0]!.socket_address!.port_value, 80);
    assert.equal(decoded.tls_context!.sni, 'a.example');
    assert.equal(decoded.wait_for_warm_on_init!.value, false);
    assert.equal(decoded.dns_jitter!.nanos, 5);
    assert.equal(int64ToNumber(decoded.ring_hash_lb_config!.minimum_ring_size!.value), 2048);
    assert.equal(decoded.lb_config, 'ring_hash_lb_config');
    assert.equal(decoded.connect_timeout, null);
  });

  it('reads the bytes of a v2 cluster by number', () => {
    // name = 1 "a", hosts = 7 {socket_address = 1 {address = 2 "h", port_value = 3: 80}}, lb_policy = 6: 4
    const bytes = Uint8Array.from([0x0a, 1, 0x61, 0x3a, 7, 0x0a, 5, 0x12, 1, 0x68, 0x18, 80, 0x30, 4]);
    const decoded = schema.find('envoy.api.v2.Cluster')!.type.decode(bytes) as unknown as Cluster;
    assert.equal(decoded.name, 'a');
    assert.equal(decoded.hosts[0]!.socket_address!.address, 'h');
    assert.equal(decoded.lb_policy, Cluster_LbPolicy.ORIGINAL_DST_LB);
  });

  it('gives an enum value its v3 name on output and takes the v2 name on input', () => {
    const apiType = schema.root.lookupEnum('proxy.config.core.v3.ApiConfigSource.ApiType');
    assert.equal(apiType.valuesById[0], 'DEPRECATED_AND_UNAVAILABLE_DO_NOT_USE');
    assert.equal(apiType.values.UNSUPPORTED_REST_LEGACY, 0);
  });

  it('writes JSON in snake_case from the output root and in lowerCamelCase from the other', () => {
    assert.equal(schema.outputType(cluster).fields.connect_timeout!.jsonName, 'connect_timeout');
    assert.equal(cluster.fields.connect_timeout!.jsonName, 'connectTimeout');
    assert.equal(schema.outputType(cluster), schema.outputType(cluster));
  });
});

describe('field names', () => {
  const routeAction = schema.messageType('proxy.config.route.v3.RouteAction');
  const tapConnection = schema.messageType('proxy.data.tap.v3.Connection');
  const number = (type: protobuf.Type, key: string, generation: 'v2' | 'v3') =>
    schema.fieldNames.find(type, key, generation)?.id;

  it('accept snake_case and lowerCamelCase', () => {
    assert.equal(number(cluster, 'connect_timeout', 'v3'), 4);
    assert.equal(number(cluster, 'connectTimeout', 'v3'), 4);
    assert.equal(number(cluster, 'ConnectTimeout', 'v3'), undefined);
  });

  it('mean the field of the generation where both use the name', () => {
    assert.equal(number(routeAction, 'host_rewrite', 'v2'), 6);
    assert.equal(number(routeAction, 'hostRewrite', 'v3'), 44);
    assert.equal(number(tapConnection, 'remote_address', 'v2'), 3);
    assert.equal(number(tapConnection, 'remote_address', 'v3'), 2);
    assert.equal(number(tapConnection, 'local_address', 'v2'), 2);
    assert.equal(number(tapConnection, 'local_address', 'v3'), 1);
  });

  it('of the other generation are accepted where they mean one thing only', () => {
    assert.equal(number(routeAction, 'auto_host_rewrite_header', 'v3'), 29);
    assert.equal(number(routeAction, 'host_rewrite_literal', 'v2'), 6);
    assert.equal(number(cluster, 'drainConnectionsOnHostRemoval', 'v3'), 32);
    assert.equal(number(cluster, 'hosts', 'v3'), 7);
  });

  it('from before v2 was frozen are accepted', () => {
    const validation = schema.messageType('envoy.api.v2.auth.CertificateValidationContext');
    assert.equal(number(validation, 'verify_spki_sha256', 'v2'), 3);
  });
});

describe('64-bit integers', () => {
  const uint64 = schema.messageType('google.protobuf.UInt64Value');
  const decoded = (value: string) =>
    (uint64.decode(uint64.encode(uint64.fromObject({ value })).finish()) as unknown as { value: Int64 }).value;

  it('are read exactly in both forms', () => {
    assert.equal(int64ToBigInt(decoded('18446744073709551615')), 18446744073709551615n);
    assert.equal(int64ToBigInt(7), 7n);
    assert.equal(int64ToNumber(decoded('9007199254740991')), Number.MAX_SAFE_INTEGER);
    assert.equal(int64ToNumber(5), 5);
  });
});

describe('generated files', () => {
  it('are those of the sources', async () => {
    const check = await runProgram(process.execPath, ['scripts/build-proto.mjs', '--check'], { cwd: PACKAGE_ROOT });
    assert.equal(check.code, 0, check.stderr);
  });
});
