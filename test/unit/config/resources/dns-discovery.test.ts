// Members that DNS finds: their names, how often and whom to ask.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterSettings } from '../../../../src/snapshot/index.ts';
import {
  clusterNamed,
  faultTexts,
  type JsonObject,
  load,
  mustLoad,
  socketAddress,
  withClusters,
} from '../../../support/bootstrap.ts';
import { RESOLVER } from '../../../support/dns-discovery.ts';

const AT = 'static_resources.clusters[0]';

function settingsOf(cluster: JsonObject): ClusterSettings {
  return mustLoad(withClusters(cluster)).clusters[0]!;
}

function errorsOf(cluster: JsonObject): string[] {
  return faultTexts(load(withClusters(cluster)));
}

describe('a STRICT_DNS cluster', () => {
  const named = (fields: JsonObject): JsonObject => ({ name: 'web', type: 'STRICT_DNS', ...fields });
  const COMMON = {
    hostname: '',
    weight: 1,
    locality: { region: '', zone: '', subZone: '' },
    priority: 0,
    canary: false,
    health: 'unknown',
    localityWeight: 0,
    hashKey: '',
    subsetValues: [],
  } as const;

  it('takes names and addresses, in the form of either generation', () => {
    const v2 = settingsOf(named({ hosts: [socketAddress('web.test', 80), socketAddress('::0001', 81)] }));
    const members = [
      { endpoint: { address: socketAddress('web.test', 80) } },
      { endpoint: { address: socketAddress('::1', 81) } },
    ];
    const v3 = settingsOf(named({ load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: members }] } }));
    const targets = [
      { name: 'web.test', port: 80, ...COMMON },
      { name: '::1', port: 81, ...COMMON },
    ];
    for (const { discovery, hosts } of [v2, v3]) {
      assert.deepEqual(hosts, []);
      assert.deepEqual(discovery, {
        kind: 'strict-dns',
        targets,
        lookupFamily: 'AUTO',
        familyOrder: { first: undefined, firstCount: 1 },
        refreshRateMs: 5000,
        failureRefresh: undefined,
        jitterMs: 0,
        respectTtl: false,
        resolver: RESOLVER,
      });
    }
  });

  it('reads how often and whom to ask', () => {
    const { discovery } = settingsOf(
      named({
        hosts: [socketAddress('web.test', 80)],
        dns_lookup_family: 'V4_PREFERRED',
        dns_refresh_rate: '1s',
        dns_failure_refresh_rate: { base_interval: '0.1s' },
        dns_jitter: '0.5s',
        respect_dns_ttl: true,
        dns_resolvers: [socketAddress('10.0.0.9', 53)],
        dns_resolution_config: {
          resolvers: [socketAddress('10.0.0.1', 5353), socketAddress('::1', 0)],
          dns_resolver_options: { no_default_search_domain: true },
        },
      }),
    );
    assert.equal(discovery.kind, 'strict-dns');
    const { targets: _targets, ...read } = discovery.kind === 'strict-dns' ? discovery : { targets: [] };
    assert.deepEqual(read, {
      kind: 'strict-dns',
      lookupFamily: 'V4_PREFERRED',
      familyOrder: { first: undefined, firstCount: 1 },
      refreshRateMs: 1000,
      failureRefresh: { baseMs: 100, maxMs: 1000 },
      jitterMs: 500,
      respectTtl: true,
      resolver: {
        ...RESOLVER,
        servers: [
          { ip: '10.0.0.1', port: 5353 },
          { ip: '::1', port: 53 },
        ],
        useSearchDomains: false,
      },
    });
  });

  it('is refused with a unix socket, and with a resolver that is a name', () => {
    assert.deepEqual(errorsOf(named({ hosts: [{ pipe: { path: '/tmp/x' } }] })), [
      `${AT}.hosts[0].pipe: a unix socket has no name to look up; it needs a STATIC cluster`,
    ]);
    const fields = { hosts: [socketAddress('web.test', 80)], dns_resolvers: [socketAddress('dns.test', 53)] };
    assert.deepEqual(errorsOf(named(fields)), [
      `${AT}.dns_resolvers[0].socket_address.address: "dns.test" is not an IP address; a DNS server is asked at an IP address`,
    ]);
  });
});

describe('who is asked for names', () => {
  const cares = (fields: JsonObject): JsonObject => ({
    typed_dns_resolver_config: {
      name: 'envoy.network.dns_resolver.cares',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
        ...fields,
      },
    },
  });
  const options = (fields: JsonObject): JsonObject => ({
    dns_resolution_config: { resolvers: [socketAddress('10.0.0.1', 53)], dns_resolver_options: fields },
  });
  const resolverOf = (cluster: JsonObject, bootstrap: JsonObject = {}): object => {
    const whole = { name: 'web', type: 'LOGICAL_DNS', hosts: [socketAddress('web.test', 80)], ...cluster };
    const { discovery } = mustLoad({ ...withClusters(whole), ...bootstrap }).clusters[0]!;
    return 'resolver' in discovery ? discovery.resolver : {};
  };
  const server = (ip: string): object => ({ servers: [{ ip, port: 53 }] });

  it('comes from the newest form that is set', () => {
    const old = { dns_resolvers: [socketAddress('10.0.0.9', 53)], use_tcp_for_dns_lookups: true };
    assert.deepEqual(resolverOf(old), { ...RESOLVER, ...server('10.0.0.9'), useTcp: true });
    const middle = { ...old, ...options({ use_tcp_for_dns_lookups: true, no_default_search_domain: true }) };
    const expected = { ...RESOLVER, ...server('10.0.0.1'), useTcp: true, useSearchDomains: false };
    assert.deepEqual(resolverOf(middle), expected);
    const typed = cares({
      resolvers: [socketAddress('10.0.0.2', 0)],
      dns_resolver_options: { use_tcp_for_dns_lookups: true },
      use_resolvers_as_fallback: true,
      query_timeout_seconds: 2,
      query_tries: 3,
      rotate_nameservers: true,
      edns0_max_payload_size: 1232,
      filter_unroutable_families: true,
    });
    assert.deepEqual(resolverOf({ ...middle, ...typed }), {
      ...RESOLVER,
      ...server('10.0.0.2'),
      useTcp: true,
      serversAreFallback: true,
      queryTimeoutMs: 2000,
      queryTries: 3,
      rotate: true,
      udpPayloadBytes: 1232,
      leavesOutUnroutable: true,
    });
  });

  it('tells of answers over UDP that servers may send and networks carry', () => {
    const asking = (bytes: number): JsonObject => ({
      name: 'web',
      type: 'STRICT_DNS',
      hosts: [socketAddress('web', 80)],
      ...cares({ edns0_max_payload_size: bytes }),
    });
    for (const bytes of [511, 4097]) {
      const [error] = errorsOf(asking(bytes));
      assert.match(error!, new RegExp(`edns0_max_payload_size: ${bytes} is outside of 512 to 4096 bytes$`));
    }
    for (const bytes of [512, 4096]) assert.deepEqual(errorsOf(asking(bytes)), []);
  });

  it('comes from the bootstrap where the cluster does not say', () => {
    const bootstrap = options({ no_default_search_domain: true });
    const expected = { ...RESOLVER, ...server('10.0.0.1'), useSearchDomains: false };
    assert.deepEqual(resolverOf({}, bootstrap), expected);
    assert.deepEqual(resolverOf({ use_tcp_for_dns_lookups: true }, bootstrap), { ...expected, useTcp: true });
    assert.deepEqual(resolverOf({}, { use_tcp_for_dns_lookups: true }), { ...RESOLVER, useTcp: true });
    assert.deepEqual(resolverOf({}, cares({ query_tries: 1 })), { ...RESOLVER, queryTries: 1 });
  });

  it('is refused by name where another resolver is asked for', () => {
    const typed_config = { '@type': 'type.googleapis.com/google.protobuf.Empty' };
    const cluster = clusterNamed('web', {
      typed_dns_resolver_config: { name: 'envoy.network.dns_resolver.apple', typed_config },
    });
    const [error] = errorsOf(cluster);
    assert.match(error!, /typed_dns_resolver_config.*"envoy\.network\.dns_resolver\.apple" is not supported/);
  });
});

describe('names of hosts', () => {
  const nameOf = (name: string): string => {
    const cluster = { name: 'web', type: 'STRICT_DNS', hosts: [socketAddress(name, 80)] };
    const { discovery } = settingsOf(cluster);
    return 'targets' in discovery ? discovery.targets[0]!.name : '';
  };
  const accepted = [
    ['web.test.', 'web.test.'],
    ['_my-host.Test', '_my-host.Test'],
    ['bücher.test', 'xn--bcher-kva.test'],
    ['127.1', '127.1'],
  ] as const;
  for (const [name, expected] of accepted) {
    it(`may be ${name}`, () => assert.equal(nameOf(name), expected));
  }
  for (const name of ['a..b', '.web', 'web test', 'x'.repeat(64), `${'x.'.repeat(130)}test`, 'bü cher.test', '.']) {
    it(`cannot be ${name}`, () => {
      const errors = errorsOf({ name: 'web', type: 'STRICT_DNS', hosts: [socketAddress(name, 80)] });
      assert.match(errors.join(), /hosts\[0\]\.socket_address\.address: .* is neither a host name nor an IP address/);
    });
  }
});

describe('a cluster type by its own name', () => {
  const ASSIGNED = {
    load_assignment: {
      cluster_name: 'web',
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress('10.0.0.1', 80) } }] }],
    },
  };
  const typed = (cluster_type: JsonObject): JsonObject => ({ name: 'web', cluster_type, ...ASSIGNED });
  const dnsCluster = (fields: JsonObject): JsonObject =>
    typed({
      name: 'envoy.cluster.dns',
      typed_config: { '@type': 'type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster', ...fields },
    });

  for (const [name, kind] of [
    ['envoy.cluster.static', 'static'],
    ['proxy.cluster.strict_dns', 'strict-dns'],
    ['envoy.cluster.logical_dns', 'logical-dns'],
  ] as const) {
    it(`${name} is as the type`, () => {
      const { discovery, hosts } = settingsOf(typed({ name }));
      assert.equal(discovery.kind, kind);
      assert.equal(hosts.length, kind === 'static' ? 1 : 0);
    });
  }

  it('with settings for DNS brings all that the cluster has no say in', () => {
    const typed_dns_resolver_config = {
      name: 'cares',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
        resolvers: [socketAddress('10.0.0.5', 53)],
      },
    };
    const { discovery } = settingsOf(
      dnsCluster({
        dns_refresh_rate: '2s',
        dns_failure_refresh_rate: { base_interval: '1s', max_interval: '3s' },
        respect_dns_ttl: true,
        dns_jitter: '0.5s',
        dns_lookup_family: 'V4_PREFERRED',
        typed_dns_resolver_config,
        all_addresses_in_single_endpoint: true,
      }),
    );
    assert.ok('targets' in discovery);
    const { targets, ...rest } = discovery;
    assert.equal(targets.length, 1);
    assert.deepEqual(rest, {
      kind: 'logical-dns',
      lookupFamily: 'V4_PREFERRED',
      familyOrder: { first: undefined, firstCount: 1 },
      refreshRateMs: 2000,
      failureRefresh: { baseMs: 1000, maxMs: 3000 },
      jitterMs: 500,
      respectTtl: true,
      resolver: { ...RESOLVER, servers: [{ ip: '10.0.0.5', port: 53 }] },
    });
  });

  it('with settings for DNS has the defaults of the other form', () => {
    const { discovery } = settingsOf(dnsCluster({}));
    const older = settingsOf({ name: 'web', type: 'STRICT_DNS', ...ASSIGNED }).discovery;
    assert.deepEqual(discovery, older);
    const bootstrap = { ...withClusters(dnsCluster({})), use_tcp_for_dns_lookups: true };
    const [cluster] = mustLoad(bootstrap).clusters;
    assert.equal(cluster!.discovery.kind === 'strict-dns' && cluster!.discovery.resolver.useTcp, true);
  });

  it('is held to the rules of its type, which its name may say', () => {
    const wrongWay = dnsCluster({ dns_failure_refresh_rate: { base_interval: '2s', max_interval: '1s' } });
    assert.deepEqual(errorsOf(wrongWay), [
      `${AT}.cluster_type.typed_config.dns_failure_refresh_rate.max_interval: must not be less than base_interval`,
    ]);
    assert.deepEqual(errorsOf({ name: 'web', cluster_type: { name: 'envoy.cluster.strict_dns' } }), [
      `${AT}: a cluster of type STRICT_DNS needs load_assignment`,
    ]);
    const [error] = errorsOf({ name: 'web', cluster_type: { name: 'envoy.clusters.aggregate' } }).slice(-1);
    assert.match(error!, /cluster_type\.typed_config\.clusters: must have at least 1 entry/);
  });
});
