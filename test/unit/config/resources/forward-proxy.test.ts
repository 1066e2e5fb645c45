// Clusters of forward proxies: what their settings become, in the form of either generation, and what they refuse.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterSettings, DnsCacheSettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  ROUTER,
  socketAddress,
  withClusters,
} from '../../../support/bootstrap.ts';
import { RESOLVER } from '../../../support/dns-discovery.ts';

const AT = 'static_resources.clusters[0]';
const CACHE_AT = `${AT}.cluster_type.typed_config.dns_cache_config`;
const TYPES = 'type.googleapis.com/envoy.extensions';
const TLS: JsonObject = {
  name: 'tls',
  typed_config: { '@type': `${TYPES}.transport_sockets.tls.v3.UpstreamTlsContext` },
};

function forward(cache: JsonObject, config: JsonObject = {}, fields: JsonObject = {}): JsonObject {
  return {
    name: 'web',
    lb_policy: 'CLUSTER_PROVIDED',
    cluster_type: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typed_config: {
        '@type': `${TYPES}.clusters.dynamic_forward_proxy.v3.ClusterConfig`,
        dns_cache_config: { name: 'hosts', ...cache },
        ...config,
      },
    },
    ...fields,
  };
}

function settingsOf(cluster: JsonObject): ClusterSettings {
  return mustLoad(withClusters(cluster)).clusters[0]!;
}

function cacheOf(cluster: JsonObject): DnsCacheSettings {
  const { discovery } = settingsOf(cluster);
  assert.equal(discovery.kind, 'forward-proxy');
  return discovery.cache;
}

function faultsOf(...clusters: readonly JsonObject[]): string[] {
  return faultTexts(load(withClusters(...clusters)));
}

const DEFAULTS: DnsCacheSettings = {
  name: 'hosts',
  lookupFamily: 'AUTO',
  refreshRateMs: 60_000,
  minRefreshRateMs: 5000,
  failureRefresh: undefined,
  forgetsFailures: false,
  hostTtlMs: 300_000,
  maxHosts: 1024,
  maxPending: 1024,
  queryTimeoutMs: 5000,
  preresolved: [],
  resolver: RESOLVER,
};

describe('a cluster of a forward proxy', () => {
  it('has defaults, and no members', () => {
    const settings = settingsOf(forward({}));
    assert.deepEqual(settings.discovery, { kind: 'forward-proxy', cache: DEFAULTS });
    assert.deepEqual(settings.hosts, []);
    assert.deepEqual(settings.forwardProxy, { defaultPort: 80, namesServers: false });
  });

  it('takes all that is said of its cache', () => {
    const cache = cacheOf(
      forward({
        dns_lookup_family: 'V6_ONLY',
        dns_refresh_rate: '7s',
        dns_min_refresh_rate: '2s',
        dns_failure_refresh_rate: { base_interval: '1s', max_interval: '4s' },
        disable_dns_refresh_on_failure: true,
        host_ttl: '9s',
        max_hosts: 3,
        dns_cache_circuit_breaker: { max_pending_requests: 5 },
        dns_query_timeout: '0s',
        preresolve_hostnames: [
          { address: 'a.test', port_value: 80 },
          { address: '::0001', port_value: 81 },
        ],
        dns_resolution_config: { resolvers: [socketAddress('10.0.0.53', 53)] },
      }),
    );
    assert.deepEqual(cache, {
      ...DEFAULTS,
      lookupFamily: 'V6_ONLY',
      refreshRateMs: 7000,
      minRefreshRateMs: 2000,
      failureRefresh: { baseMs: 1000, maxMs: 4000 },
      forgetsFailures: true,
      hostTtlMs: 9000,
      maxHosts: 3,
      maxPending: 5,
      queryTimeoutMs: 0,
      preresolved: [
        { name: 'a.test', port: 80 },
        { name: '::1', port: 81 },
      ],
      resolver: { ...RESOLVER, servers: [{ ip: '10.0.0.53', port: 53 }] },
    });
  });

  it('asks by TCP, or as a typed resolver says', () => {
    assert.equal(cacheOf(forward({ use_tcp_for_dns_lookups: true })).resolver.useTcp, true);
    const typed_dns_resolver_config = {
      name: 'cares',
      typed_config: {
        '@type': `${TYPES}.network.dns_resolver.cares.v3.CaresDnsResolverConfig`,
        resolvers: [socketAddress('10.0.0.54', 5353)],
      },
    };
    const { servers } = cacheOf(forward({ typed_dns_resolver_config })).resolver;
    assert.deepEqual(servers, [{ ip: '10.0.0.54', port: 5353 }]);
  });

  it('is known by its names of v2', () => {
    const cluster = forward({});
    const typed_config = {
      '@type': 'type.googleapis.com/envoy.config.cluster.dynamic_forward_proxy.v2alpha.ClusterConfig',
      dns_cache_config: { name: 'hosts', max_hosts: 9 },
    };
    const v2 = { ...cluster, cluster_type: { name: 'envoy.clusters.dynamic_forward_proxy', typed_config } };
    assert.equal(cacheOf(v2).maxHosts, 9);
  });

  it('speaks TLS at port 443 by the names of its hosts, unless it says itself what names count', () => {
    const tls = (options: JsonObject | undefined, config: JsonObject = {}) =>
      forward({}, config, { transport_socket: TLS, ...(options && { upstream_http_protocol_options: options }) });
    assert.deepEqual(settingsOf(tls(undefined)).forwardProxy, { defaultPort: 443, namesServers: true });
    const both = settingsOf(tls({ auto_sni: true, auto_san_validation: true }));
    assert.equal(both.forwardProxy?.namesServers, false);
    assert.deepEqual(both.requestServerName, { header: '', isSent: true, isVerified: true });
    const reason =
      'needs to be true in a cluster of type DYNAMIC_FORWARD_PROXY, unless allow_insecure_cluster_options is';
    assert.deepEqual(faultsOf(tls({})), [
      `${AT}.upstream_http_protocol_options.auto_sni: ${reason}`,
      `${AT}.upstream_http_protocol_options.auto_san_validation: ${reason}`,
    ]);
    assert.deepEqual(faultsOf(tls({ auto_sni: true })), [
      `${AT}.upstream_http_protocol_options.auto_san_validation: ${reason}`,
    ]);
    const insecure = settingsOf(tls({}, { allow_insecure_cluster_options: true }));
    assert.deepEqual(insecure.forwardProxy, { defaultPort: 443, namesServers: false });
  });

  for (const [what, cluster, fault] of [
    [
      'another balancer',
      forward({}, {}, { lb_policy: 'ROUND_ROBIN' }),
      `${AT}.lb_policy: type DYNAMIC_FORWARD_PROXY needs CLUSTER_PROVIDED, not ROUND_ROBIN`,
    ],
    [
      'members of its own',
      forward({}, {}, { load_assignment: { cluster_name: 'web' } }),
      `${AT}.load_assignment: type DYNAMIC_FORWARD_PROXY takes its members from the requests`,
    ],
    [
      'members of its own in the form of v2',
      forward({}, {}, { hosts: [socketAddress('10.0.0.1', 80)] }),
      `${AT}.hosts: type DYNAMIC_FORWARD_PROXY takes its members from the requests`,
    ],
    ['no cache', forward({}, { dns_cache_config: null }), `${AT}.cluster_type.typed_config: needs dns_cache_config`],
    [
      'waits that shrink',
      forward({ dns_failure_refresh_rate: { base_interval: '2s', max_interval: '1s' } }),
      `${CACHE_AT}.dns_failure_refresh_rate.max_interval: must not be less than base_interval`,
    ],
    [
      'more hosts at the start than there may be',
      forward({ max_hosts: 1, preresolve_hostnames: [1, 2].map((n) => ({ address: `h${n}.test`, port_value: 80 })) }),
      `${CACHE_AT}.preresolve_hostnames: 2 names, more than max_hosts (1) allows`,
    ],
  ] as const) {
    it(`refuses ${what}`, () => assert.deepEqual(faultsOf(cluster), [fault]));
  }

  it('refuses what it cannot do, by name', () => {
    const kept = { name: 'file', typed_config: { '@type': 'type.googleapis.com/google.protobuf.Struct', value: {} } };
    assert.match(faultsOf(forward({ key_value_config: kept })).join('\n'), /key_value_config is not supported/);
    const subs = forward({}, { dns_cache_config: null, sub_clusters_config: {} });
    assert.match(faultsOf(subs).join('\n'), /sub_clusters_config is not supported/);
    const loaded = load(withClusters(forward({}, { allow_coalesced_connections: true })));
    assert.match(faultTexts(loaded, 'warning').join('\n'), /allow_coalesced_connections/);
    assert.deepEqual(faultTexts(loaded), []);
  });

  it('shares its cache with who says the same of it, and with nobody else', () => {
    const other = (cache: JsonObject): JsonObject => ({ ...forward(cache), name: 'other' });
    assert.deepEqual(faultsOf(forward({}), other({})), []);
    assert.deepEqual(faultsOf(forward({}), other({ max_hosts: 7 })), [
      `static_resources.clusters[1].cluster_type.typed_config.dns_cache_config: the DNS cache "hosts" has other settings in ${CACHE_AT}`,
    ]);
  });
});

describe('the filter of a forward proxy', () => {
  const filtered = (config: JsonObject, perRoute: JsonObject = {}): JsonObject => {
    const filter = {
      name: 'envoy.filters.http.dynamic_forward_proxy',
      typed_config: { '@type': `${TYPES}.filters.http.dynamic_forward_proxy.v3.FilterConfig`, ...config },
    };
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' }, ...perRoute }];
    const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
    return {
      static_resources: {
        clusters: [forward({})],
        listeners: [listenerWith([httpFilter({ route_config, http_filters: [filter, ROUTER] })])],
      },
    };
  };
  const errors = (config: JsonObject): string => faultTexts(load(filtered(config))).join('\n');

  it('has to say the same of its cache as the cluster', () => {
    assert.equal(errors({ dns_cache_config: { name: 'hosts' } }), '');
    assert.match(
      errors({ dns_cache_config: { name: 'hosts', host_ttl: '1s' } }),
      /the DNS cache "hosts" has other settings in static_resources\.clusters\[0\]/,
    );
    assert.match(errors({}), /needs dns_cache_config/);
  });

  it('refuses what it cannot do, by name', () => {
    assert.match(errors({ sub_cluster_config: {} }), /sub_cluster_config/);
    const warned = load(filtered({ dns_cache_config: { name: 'hosts' }, save_upstream_address: true }));
    assert.match(faultTexts(warned, 'warning').join('\n'), /save_upstream_address/);
  });
});
