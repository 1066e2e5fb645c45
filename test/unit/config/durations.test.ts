// Every duration that a bootstrap can hold and that this build implements, set to a month and to the longest there is. It is
// refused by name, or becomes a setting of just that length; that waits of any length are kept is shown for the clock
// (test/unit/base/clock.test.ts) and for the timer wheel (test/unit/data-plane/network.test.ts), which all waits go through.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BootstrapConfig } from '../../../src/config/index.ts';
import { protoSchema } from '../../../src/config/proto/root.ts';
import { coverageFrom, supportWith } from '../../../src/config/support/index.ts';
import { EXTENSIONS } from '../../../src/extensions/control-registry.ts';
import type {
  AdaptiveConcurrencySettings,
  GradientSettings,
} from '../../../src/extensions/filters.http/adaptive_concurrency/settings.ts';
import type {
  JwtAuthnSettings,
  ProviderSettings,
  RemoteKeys,
} from '../../../src/extensions/filters.http/jwt_authn/settings.ts';
import type { OnDemandSettings } from '../../../src/extensions/filters.http/on_demand/settings.ts';
import type { NetworkRbacSettings } from '../../../src/extensions/filters.network/rbac/settings.ts';
import type { RedisPoolSettings, RedisSettings } from '../../../src/extensions/filters.network/redis_proxy/settings.ts';
import type {
  CheckIntervals,
  DnsCacheSettings,
  DnsDiscoverySettings,
  ForwardAction,
  HttpConnectionManagerSettings,
  RestSourceSettings,
  TcpProxySettings,
  WatchdogSettings,
} from '../../../src/snapshot/index.ts';
import {
  clusterNamed,
  faultTexts,
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  load,
  ROUTER,
  tcpFilter,
  withClusters,
  withListeners,
  withRoutes,
} from '../../support/bootstrap.ts';
import { CertificateFolder } from '../../support/certificates.ts';

const LENGTHS = [
  { text: '2592000s', ms: 30 * 24 * 60 * 60 * 1000 },
  { text: '315576000000s', ms: 315_576_000_000 * 1000 },
];

/** Clusters from a server that is asked by HTTP. */
function polled(fields: JsonObject): JsonObject {
  const api_config_source = { api_type: 'REST', cluster_names: ['control'], refresh_delay: '1s', ...fields };
  return {
    node: { id: 'me', cluster: 'us' },
    static_resources: { clusters: [clusterNamed('control')] },
    dynamic_resources: { cds_config: { api_config_source } },
  };
}

function pollOf({ dynamicResources }: BootstrapConfig): RestSourceSettings {
  return dynamicResources.clusters!.origin as RestSourceSettings;
}

interface DurationRow {
  /** A bootstrap in which the field has this value. */
  readonly bootstrap: (value: string) => JsonObject;
  /** What has become of it; null where nothing is ever waited for. */
  readonly settingMs: ((bootstrap: BootstrapConfig) => unknown) | null;
}

const CONNECTION_LIMIT = 'type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
const EXT_AUTHZ = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz';
const LOCAL_RATE_LIMIT = 'type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit';
const ADAPTIVE_CONCURRENCY =
  'type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency';
const GRADIENT = 'proxy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig';
const BANDWIDTH_LIMIT = 'type.googleapis.com/envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit';
const STATEFUL_SESSION = 'type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession';
const COOKIE_SESSION = 'type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState';
const UDP_PROXY = 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig';
const JWT_AUTHN = 'type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication';
const ON_DEMAND = 'type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand';
const RATE_LIMIT = 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit';
const FAULT = 'type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault';
const HEALTH_CHECK = 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck';
const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const ROUND_ROBIN = 'type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin';
const REDIS_CLUSTER = 'type.googleapis.com/envoy.extensions.clusters.redis.v3.RedisClusterConfig';
const DNS_CLUSTER = 'type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster';
const FORWARD_PROXY = 'type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
const REDIS_PROXY = 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy';
const FIXED_HEAP = 'type.googleapis.com/envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig';
const SCALED_TIMERS = 'type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig';
const OPEN_TELEMETRY = 'type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig';
const HTTP_GRPC_LOG = 'type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig';
const OPEN_TELEMETRY_LOG =
  'type.googleapis.com/envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig';
const CARES = 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig';

const CERTIFICATE = await selfSigned();

async function selfSigned(): Promise<JsonObject> {
  using folder = new CertificateFolder();
  const { certificate, key } = await folder.make('web');
  return { certificate_chain: { inline_string: certificate }, private_key: { inline_string: key } };
}

/** A listener with a certificate. */
function secured(chain: JsonObject, context: JsonObject = {}): JsonObject {
  const tls_context = { common_tls_context: { tls_certificates: [CERTIFICATE] }, ...context };
  return withListeners(listenerWith([], { filter_chains: [{ filters: [httpFilter({})], tls_context, ...chain }] }));
}

const firstCluster = ({ clusters }: BootstrapConfig) => clusters[0]!;
const firstFilter = ({ listeners }: BootstrapConfig) => listeners[0]!.filterChains[0]!.filter;
const manager = (bootstrap: BootstrapConfig) => firstFilter(bootstrap) as HttpConnectionManagerSettings;
const tcpProxy = (bootstrap: BootstrapConfig) => firstFilter(bootstrap) as TcpProxySettings;
const forwarding = (bootstrap: BootstrapConfig) => {
  return manager(bootstrap).routeTable.virtualHosts[0]!.routes[0]!.action as ForwardAction;
};
const discovery = (bootstrap: BootstrapConfig) => {
  const settings = firstCluster(bootstrap).discovery;
  return settings as Extract<typeof settings, DnsDiscoverySettings>;
};

function cluster(fields: JsonObject): JsonObject {
  return withClusters(clusterNamed('web', fields));
}

function dnsCluster(fields: JsonObject): JsonObject {
  return cluster({ type: 'STRICT_DNS', ...fields });
}

function typedDnsCluster(fields: JsonObject): JsonObject {
  return cluster({ cluster_type: { name: 'dns', typed_config: { '@type': DNS_CLUSTER, ...fields } } });
}

function redisCluster(field: string, setting: 'refreshMs' | 'timeoutMs' | 'redirectIntervalMs'): DurationRow {
  return {
    bootstrap: (value) => {
      const typed_config = { '@type': REDIS_CLUSTER, [field]: value };
      return cluster({ lb_policy: 'CLUSTER_PROVIDED', cluster_type: { name: 'envoy.clusters.redis', typed_config } });
    },
    settingMs: (bootstrap) => {
      const settings = firstCluster(bootstrap).discovery;
      return (settings as Extract<typeof settings, { readonly kind: 'redis' }>)[setting];
    },
  };
}

function forwardProxy(fields: JsonObject): JsonObject {
  const typed_config = { '@type': FORWARD_PROXY, dns_cache_config: { name: 'hosts', ...fields } };
  const name = 'envoy.clusters.dynamic_forward_proxy';
  return withClusters({ name: 'web', lb_policy: 'CLUSTER_PROVIDED', cluster_type: { name, typed_config } });
}

function dnsCache(bootstrap: BootstrapConfig): DnsCacheSettings {
  const { discovery } = bootstrap.clusters[0]!;
  return (discovery as Extract<typeof discovery, { readonly kind: 'forward-proxy' }>).cache;
}

function networkRbac(fields: JsonObject): JsonObject {
  const type = 'type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC';
  const rbac = { name: 'rbac', typed_config: { '@type': type, stat_prefix: 'a', rules: {}, ...fields } };
  return withListeners(listenerWith([rbac, tcpFilter({})]));
}

function redisProxy(settings: JsonObject, fields: JsonObject = {}): JsonObject {
  const typed_config = {
    '@type': REDIS_PROXY,
    stat_prefix: 'a',
    settings,
    prefix_routes: { catch_all_route: { cluster: 'web' } },
    ...fields,
  };
  const filter = { name: 'redis', typed_config };
  return { static_resources: { clusters: [clusterNamed('web')], listeners: [listenerWith([filter])] } };
}

function redisSettings(bootstrap: BootstrapConfig): RedisSettings {
  const { filter } = bootstrap.listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'extension');
  return filter.settings as RedisSettings;
}

function redisPool(bootstrap: BootstrapConfig): RedisPoolSettings {
  return redisSettings(bootstrap).pool;
}

function checked(fields: JsonObject): JsonObject {
  const required = { timeout: '1s', interval: '1s', unhealthy_threshold: 2, healthy_threshold: 2 };
  return cluster({ health_checks: [{ ...required, tcp_health_check: {}, ...fields }] });
}

/** A wait between the checks of a host. */
function checkInterval(field: string, setting: keyof CheckIntervals): DurationRow {
  return {
    bootstrap: (value) => checked({ [field]: value }),
    settingMs: (bootstrap) => firstCluster(bootstrap).healthCheck!.intervals[setting],
  };
}

function httpManager(fields: JsonObject): JsonObject {
  return withListeners(listenerWith([httpFilter(fields)]));
}

function watchdogTimeout(field: string, setting: keyof WatchdogSettings): DurationRow {
  return {
    bootstrap: (value) => ({ ...withClusters(), watchdogs: { worker_watchdog: { [field]: value } } }),
    settingMs: (bootstrap) => bootstrap.watchdogs.workers[setting],
  };
}

function overloaded(fields: JsonObject): JsonObject {
  const heap = { name: 'heap', typed_config: { '@type': FIXED_HEAP, max_heap_size_bytes: 1 } };
  return { ...withClusters(), overload_manager: { resource_monitors: [heap], ...fields } };
}

function tcp(fields: JsonObject): JsonObject {
  return withListeners(listenerWith([tcpFilter(fields)]));
}

function route(fields: JsonObject): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web', ...fields } }];
  return withRoutes({ virtual_hosts: [{ name: 'all', domains: ['*'], routes }] });
}

function retrying(fields: JsonObject): JsonObject {
  return route({ retry_policy: { retry_on: '5xx', ...fields } });
}

function upstreamHttp(fields: JsonObject): JsonObject {
  const options = { '@type': `type.googleapis.com/${HTTP_OPTIONS}`, common_http_protocol_options: fields };
  const explicit = { explicit_http_config: { http_protocol_options: {} } };
  return cluster({ typed_extension_protocol_options: { [HTTP_OPTIONS]: { ...options, ...explicit } } });
}

function keepalive(fields: JsonObject): JsonObject {
  return cluster({ http2_protocol_options: { connection_keepalive: fields } });
}

/** Of a provider of tokens. */
function gradientRow(
  fields: (value: string) => { limit?: JsonObject; latency?: JsonObject },
  setting: (gradient: GradientSettings) => unknown,
): DurationRow {
  return {
    bootstrap: (value) => {
      const { limit = { concurrency_update_interval: '1s' }, latency = { interval: '1s' } } = fields(value);
      const gradient_controller_config = { concurrency_limit_params: limit, min_rtt_calc_params: latency };
      const typed_config = { '@type': ADAPTIVE_CONCURRENCY, gradient_controller_config };
      return httpManager({ http_filters: [{ name: 'concurrency', typed_config }, ROUTER] });
    },
    settingMs: (bootstrap) =>
      setting((manager(bootstrap).httpFilters[0]!.settings as AdaptiveConcurrencySettings).gradient),
  };
}

function tokens(fields: (value: string) => JsonObject, setting: (provider: ProviderSettings) => unknown): DurationRow {
  const bootstrap = (value: string): JsonObject => {
    const typed_config = { '@type': JWT_AUTHN, providers: { a: fields(value) } };
    return httpManager({ http_filters: [{ name: 'jwt', typed_config }, ROUTER] });
  };
  const settings = (made: BootstrapConfig) => manager(made).httpFilters[0]!.settings as JwtAuthnSettings;
  return { bootstrap, settingMs: (made) => setting(settings(made).providers[0]!) };
}

function remoteTokens(fields: (value: string) => JsonObject, setting: (keys: RemoteKeys) => unknown): DurationRow {
  const http_uri = { uri: 'http://a', cluster: 'web', timeout: '1s' };
  return tokens(
    (value) => ({ remote_jwks: { http_uri, ...fields(value) } }),
    ({ keys }) => setting(keys as RemoteKeys),
  );
}

/** By message and field, as the support table names them. */
const ROWS: Readonly<Record<string, DurationRow>> = {
  'proxy.config.bootstrap.v3.Bootstrap.stats_flush_interval': {
    bootstrap: (value) => ({ ...withClusters(), stats_flush_interval: value }),
    settingMs: (bootstrap) => bootstrap.statsFlushIntervalMs,
  },
  'proxy.config.bootstrap.v3.Watchdog.miss_timeout': watchdogTimeout('miss_timeout', 'missMs'),
  'proxy.config.bootstrap.v3.Watchdog.megamiss_timeout': watchdogTimeout('megamiss_timeout', 'megaMissMs'),
  'proxy.config.bootstrap.v3.Watchdog.kill_timeout': watchdogTimeout('kill_timeout', 'killMs'),
  'proxy.config.bootstrap.v3.Watchdog.multikill_timeout': watchdogTimeout('multikill_timeout', 'multikillMs'),
  'proxy.config.bootstrap.v3.Watchdog.max_kill_timeout_jitter': watchdogTimeout(
    'max_kill_timeout_jitter',
    'killJitterMs',
  ),
  'proxy.config.overload.v3.OverloadManager.refresh_interval': {
    bootstrap: (value) => overloaded({ refresh_interval: value }),
    settingMs: (bootstrap) => bootstrap.overload!.refreshIntervalMs,
  },
  'proxy.config.overload.v3.ScaleTimersOverloadActionConfig.ScaleTimer.min_timeout': {
    bootstrap: (value) => {
      const timer_scale_factors = [{ timer: 'HTTP_DOWNSTREAM_STREAM_IDLE', min_timeout: value }];
      const typed_config = { '@type': SCALED_TIMERS, timer_scale_factors };
      const triggers = [{ name: 'heap', threshold: { value: 1 } }];
      return overloaded({ actions: [{ name: 'envoy.overload_actions.reduce_timeouts', triggers, typed_config }] });
    },
    settingMs: (bootstrap) => bootstrap.overload!.timeoutFloors.HTTP_DOWNSTREAM_STREAM_IDLE?.minMs,
  },
  'proxy.config.cluster.v3.Cluster.CommonLbConfig.update_merge_window': {
    bootstrap: (value) => cluster({ common_lb_config: { update_merge_window: value } }),
    settingMs: (bootstrap) => firstCluster(bootstrap).updateMergeWindowMs,
  },
  'proxy.config.cluster.v3.Cluster.SlowStartConfig.slow_start_window': {
    bootstrap: (value) => cluster({ round_robin_lb_config: { slow_start_config: { slow_start_window: value } } }),
    settingMs: (bootstrap) => firstCluster(bootstrap).slowStart?.windowMs,
  },
  'proxy.extensions.load_balancing_policies.common.v3.SlowStartConfig.slow_start_window': {
    bootstrap: (value) => {
      const options = { '@type': ROUND_ROBIN, slow_start_config: { slow_start_window: value } };
      const policies = [{ typed_extension_config: { name: 'round_robin', typed_config: options } }];
      return cluster({ lb_policy: 'LOAD_BALANCING_POLICY_CONFIG', load_balancing_policy: { policies } });
    },
    settingMs: (bootstrap) => firstCluster(bootstrap).slowStart?.windowMs,
  },
  'proxy.config.cluster.v3.Cluster.RefreshRate.base_interval': {
    bootstrap: (value) => dnsCluster({ dns_failure_refresh_rate: { base_interval: value } }),
    settingMs: (bootstrap) => discovery(bootstrap).failureRefresh?.baseMs,
  },
  'proxy.config.cluster.v3.Cluster.RefreshRate.max_interval': {
    bootstrap: (value) => dnsCluster({ dns_failure_refresh_rate: { base_interval: '1s', max_interval: value } }),
    settingMs: (bootstrap) => discovery(bootstrap).failureRefresh?.maxMs,
  },
  'proxy.config.cluster.v3.Cluster.connect_timeout': {
    bootstrap: (value) => cluster({ connect_timeout: value }),
    settingMs: (bootstrap) => firstCluster(bootstrap).connectTimeoutMs,
  },
  'proxy.config.cluster.v3.Cluster.dns_jitter': {
    bootstrap: (value) => dnsCluster({ dns_jitter: value }),
    settingMs: (bootstrap) => discovery(bootstrap).jitterMs,
  },
  'proxy.config.cluster.v3.Cluster.cleanup_interval': {
    bootstrap: (value) =>
      withClusters({ name: 'web', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', cleanup_interval: value }),
    settingMs: (bootstrap) => {
      const settings = firstCluster(bootstrap).discovery;
      return (settings as Extract<typeof settings, { readonly kind: 'original-dst' }>).cleanupIntervalMs;
    },
  },
  'proxy.config.cluster.v3.Cluster.dns_refresh_rate': {
    bootstrap: (value) => dnsCluster({ dns_refresh_rate: value }),
    settingMs: (bootstrap) => discovery(bootstrap).refreshRateMs,
  },
  'proxy.config.core.v3.BackoffStrategy.base_interval': {
    bootstrap: (value) => tcp({ backoff_options: { base_interval: value } }),
    settingMs: (bootstrap) => tcpProxy(bootstrap).connectBackoff?.baseMs,
  },
  'proxy.config.core.v3.BackoffStrategy.max_interval': {
    bootstrap: (value) => tcp({ backoff_options: { base_interval: '1s', max_interval: value } }),
    settingMs: (bootstrap) => tcpProxy(bootstrap).connectBackoff?.maxMs,
  },
  'proxy.config.core.v3.ApiConfigSource.refresh_delay': {
    bootstrap: (value) => polled({ refresh_delay: value }),
    settingMs: (bootstrap) => pollOf(bootstrap).refreshDelayMs,
  },
  'proxy.config.core.v3.ApiConfigSource.request_timeout': {
    bootstrap: (value) => polled({ request_timeout: value }),
    settingMs: (bootstrap) => pollOf(bootstrap).requestTimeoutMs,
  },
  'proxy.config.core.v3.ConfigSource.initial_fetch_timeout': {
    bootstrap: (value) => {
      const rtds_config = { path: '/some.yaml', initial_fetch_timeout: value };
      return { layered_runtime: { layers: [{ name: 'far', rtds_layer: { name: 'some', rtds_config } }] } };
    },
    settingMs: ({ runtimeLayers }) => runtimeLayers[0]!.discovery!.source.initialFetchTimeoutMs,
  },
  'proxy.config.core.v3.HealthCheck.healthy_edge_interval': checkInterval('healthy_edge_interval', 'healthyEdgeMs'),
  'proxy.config.core.v3.HealthCheck.initial_jitter': checkInterval('initial_jitter', 'initialJitterMs'),
  'proxy.config.core.v3.HealthCheck.interval': checkInterval('interval', 'healthyMs'),
  'proxy.config.core.v3.HealthCheck.interval_jitter': checkInterval('interval_jitter', 'jitterMs'),
  'proxy.config.core.v3.HealthCheck.no_traffic_healthy_interval': checkInterval(
    'no_traffic_healthy_interval',
    'noTrafficHealthyMs',
  ),
  'proxy.config.core.v3.HealthCheck.no_traffic_interval': checkInterval('no_traffic_interval', 'noTrafficMs'),
  'proxy.config.core.v3.HealthCheck.timeout': {
    bootstrap: (value) => checked({ timeout: value }),
    settingMs: (bootstrap) => firstCluster(bootstrap).healthCheck!.timeoutMs,
  },
  'proxy.config.core.v3.HealthCheck.unhealthy_edge_interval': checkInterval(
    'unhealthy_edge_interval',
    'unhealthyEdgeMs',
  ),
  'proxy.config.core.v3.HealthCheck.unhealthy_interval': checkInterval('unhealthy_interval', 'unhealthyMs'),
  'proxy.config.core.v3.KeepaliveSettings (downstream).interval': {
    bootstrap: (value) =>
      httpManager({ http2_protocol_options: { connection_keepalive: { interval: value, timeout: '1s' } } }),
    settingMs: (bootstrap) => manager(bootstrap).http2.keepalive!.intervalMs,
  },
  'proxy.config.core.v3.KeepaliveSettings (downstream).timeout': {
    bootstrap: (value) => httpManager({ http2_protocol_options: { connection_keepalive: { timeout: value } } }),
    settingMs: (bootstrap) => manager(bootstrap).http2.keepalive!.timeoutMs,
  },
  'proxy.config.core.v3.HttpProtocolOptions (downstream).idle_timeout': {
    bootstrap: (value) => httpManager({ common_http_protocol_options: { idle_timeout: value } }),
    settingMs: (bootstrap) => manager(bootstrap).idleTimeoutMs,
  },
  'proxy.config.core.v3.HttpProtocolOptions (downstream).max_connection_duration': {
    bootstrap: (value) => httpManager({ common_http_protocol_options: { max_connection_duration: value } }),
    settingMs: (bootstrap) => manager(bootstrap).connectionLife?.maxDurationMs,
  },
  'proxy.config.core.v3.HttpProtocolOptions (downstream).max_stream_duration': {
    bootstrap: (value) => httpManager({ common_http_protocol_options: { max_stream_duration: value } }),
    settingMs: (bootstrap) => manager(bootstrap).maxStreamDurationMs,
  },
  'proxy.config.core.v3.HttpProtocolOptions (upstream).idle_timeout': {
    bootstrap: (value) => upstreamHttp({ idle_timeout: value }),
    settingMs: (bootstrap) => firstCluster(bootstrap).idleTimeoutMs,
  },
  'proxy.config.core.v3.HttpProtocolOptions (upstream).max_connection_duration': {
    bootstrap: (value) => upstreamHttp({ max_connection_duration: value }),
    settingMs: (bootstrap) => firstCluster(bootstrap).maxConnectionDurationMs,
  },
  'proxy.config.core.v3.HttpProtocolOptions (upstream).max_stream_duration': {
    bootstrap: (value) => upstreamHttp({ max_stream_duration: value }),
    settingMs: (bootstrap) => firstCluster(bootstrap).maxStreamDurationMs,
  },
  'proxy.config.core.v3.KeepaliveSettings.interval': {
    bootstrap: (value) => keepalive({ interval: value, timeout: '1s' }),
    settingMs: (bootstrap) => firstCluster(bootstrap).http2?.settings.keepalive?.intervalMs,
  },
  'proxy.config.core.v3.KeepaliveSettings.timeout': {
    bootstrap: (value) => keepalive({ timeout: value }),
    settingMs: (bootstrap) => firstCluster(bootstrap).http2?.settings.keepalive?.timeoutMs,
  },
  'proxy.config.core.v3.KeepaliveSettings.connection_idle_interval': {
    bootstrap: (value) => keepalive({ connection_idle_interval: value, timeout: '1s' }),
    settingMs: (bootstrap) => firstCluster(bootstrap).http2?.settings.keepalive?.idleIntervalMs,
  },
  'proxy.config.endpoint.v3.ClusterLoadAssignment.Policy.endpoint_stale_after': {
    bootstrap: (value) =>
      cluster({ load_assignment: { cluster_name: 'web', endpoints: [], policy: { endpoint_stale_after: value } } }),
    settingMs: null,
  },
  'proxy.config.listener.v3.FilterChain.transport_socket_connect_timeout': {
    bootstrap: (value) => secured({ transport_socket_connect_timeout: value }),
    settingMs: ({ listeners }) => listeners[0]!.filterChains[0]!.transportConnectTimeoutMs,
  },
  'proxy.extensions.transport_sockets.tls.v3.DownstreamTlsContext.session_timeout': {
    bootstrap: (value) => secured({}, { session_timeout: value }),
    settingMs: ({ listeners }) => listeners[0]!.filterChains[0]!.tls!.sessionTimeoutMs,
  },
  'proxy.config.listener.v3.Listener.listener_filters_timeout': {
    bootstrap: (value) => withListeners(listenerWith([httpFilter({})], { listener_filters_timeout: value })),
    settingMs: ({ listeners }) => listeners[0]!.listenerFiltersTimeoutMs,
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.Cookie.ttl': {
    bootstrap: (value) => route({ hash_policy: [{ cookie: { name: 'c', ttl: value } }] }),
    // What the client does with it is the client's affair.
    settingMs: null,
  },
  'proxy.config.route.v3.RouteAction.MaxStreamDuration.grpc_timeout_header_max': {
    bootstrap: (value) => route({ max_stream_duration: { grpc_timeout_header_max: value } }),
    settingMs: (bootstrap) => forwarding(bootstrap).grpcStreamDuration!.maxMs,
  },
  'proxy.config.route.v3.RouteAction.MaxStreamDuration.grpc_timeout_header_offset': {
    bootstrap: (value) =>
      route({ max_stream_duration: { grpc_timeout_header_max: '1s', grpc_timeout_header_offset: value } }),
    settingMs: (bootstrap) => forwarding(bootstrap).grpcStreamDuration!.offsetMs,
  },
  'proxy.config.route.v3.RouteAction.MaxStreamDuration.max_stream_duration': {
    bootstrap: (value) => route({ max_stream_duration: { max_stream_duration: value } }),
    settingMs: (bootstrap) => forwarding(bootstrap).maxStreamDurationMs,
  },
  'proxy.config.route.v3.RouteAction.idle_timeout': {
    bootstrap: (value) => route({ idle_timeout: value }),
    settingMs: (bootstrap) => forwarding(bootstrap).idleTimeoutMs,
  },
  'proxy.config.route.v3.RouteAction.flush_timeout': {
    bootstrap: (value) => route({ flush_timeout: value }),
    settingMs: (bootstrap) => forwarding(bootstrap).flushTimeoutMs,
  },
  'proxy.config.route.v3.RouteAction.timeout': {
    bootstrap: (value) => route({ timeout: value }),
    settingMs: (bootstrap) => forwarding(bootstrap).timeoutMs,
  },
  'proxy.config.route.v3.RetryPolicy.RateLimitedRetryBackOff.max_interval': {
    bootstrap: (value) =>
      retrying({ rate_limited_retry_back_off: { reset_headers: [{ name: 'retry-after' }], max_interval: value } }),
    settingMs: (bootstrap) => forwarding(bootstrap).retry!.rateLimitedBackOff!.maxMs,
  },
  'proxy.config.route.v3.RetryPolicy.RetryBackOff.base_interval': {
    bootstrap: (value) => retrying({ retry_back_off: { base_interval: value } }),
    settingMs: (bootstrap) => forwarding(bootstrap).retry!.backOff!.baseMs,
  },
  'proxy.config.route.v3.RetryPolicy.RetryBackOff.max_interval': {
    bootstrap: (value) => retrying({ retry_back_off: { base_interval: '1s', max_interval: value } }),
    settingMs: (bootstrap) => forwarding(bootstrap).retry!.backOff!.maxMs,
  },
  'proxy.config.route.v3.RetryPolicy.per_try_idle_timeout': {
    bootstrap: (value) => retrying({ per_try_idle_timeout: value }),
    settingMs: (bootstrap) => forwarding(bootstrap).retry!.perTryIdleTimeoutMs,
  },
  'proxy.config.route.v3.RetryPolicy.per_try_timeout': {
    bootstrap: (value) => retrying({ per_try_timeout: value }),
    settingMs: (bootstrap) => forwarding(bootstrap).retry!.perTryTimeoutMs,
  },
  'proxy.config.route.v3.RouteAction.grpc_timeout_offset': {
    bootstrap: (value) => route({ max_grpc_timeout: '1s', grpc_timeout_offset: value }),
    settingMs: (bootstrap) => forwarding(bootstrap).grpcTimeout!.offsetMs,
  },
  'proxy.config.route.v3.RouteAction.max_grpc_timeout': {
    bootstrap: (value) => route({ max_grpc_timeout: value }),
    settingMs: (bootstrap) => forwarding(bootstrap).grpcTimeout!.maxMs,
  },
  'proxy.config.cluster.v3.OutlierDetection.interval': {
    bootstrap: (value) => cluster({ outlier_detection: { interval: value } }),
    settingMs: (bootstrap) => firstCluster(bootstrap).outlierDetection!.intervalMs,
  },
  'proxy.config.cluster.v3.OutlierDetection.base_ejection_time': {
    bootstrap: (value) => cluster({ outlier_detection: { max_ejection_time: value, base_ejection_time: value } }),
    settingMs: (bootstrap) => firstCluster(bootstrap).outlierDetection!.baseEjectionTimeMs,
  },
  'proxy.config.cluster.v3.OutlierDetection.max_ejection_time': {
    bootstrap: (value) => cluster({ outlier_detection: { max_ejection_time: value } }),
    settingMs: (bootstrap) => firstCluster(bootstrap).outlierDetection!.maxEjectionTimeMs,
  },
  'proxy.config.cluster.v3.OutlierDetection.max_ejection_time_jitter': {
    bootstrap: (value) => cluster({ outlier_detection: { max_ejection_time_jitter: value } }),
    settingMs: (bootstrap) => firstCluster(bootstrap).outlierDetection!.maxEjectionTimeJitterMs,
  },
  'proxy.extensions.clusters.redis.v3.RedisClusterConfig.cluster_refresh_rate': redisCluster(
    'cluster_refresh_rate',
    'refreshMs',
  ),
  'proxy.extensions.clusters.redis.v3.RedisClusterConfig.cluster_refresh_timeout': redisCluster(
    'cluster_refresh_timeout',
    'timeoutMs',
  ),
  'proxy.extensions.clusters.redis.v3.RedisClusterConfig.redirect_refresh_interval': redisCluster(
    'redirect_refresh_interval',
    'redirectIntervalMs',
  ),
  'proxy.extensions.clusters.dns.v3.DnsCluster.RefreshRate.base_interval': {
    bootstrap: (value) => typedDnsCluster({ dns_failure_refresh_rate: { base_interval: value } }),
    settingMs: (bootstrap) => discovery(bootstrap).failureRefresh?.baseMs,
  },
  'proxy.extensions.clusters.dns.v3.DnsCluster.RefreshRate.max_interval': {
    bootstrap: (value) => typedDnsCluster({ dns_failure_refresh_rate: { base_interval: '1s', max_interval: value } }),
    settingMs: (bootstrap) => discovery(bootstrap).failureRefresh?.maxMs,
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig.dns_refresh_rate': {
    bootstrap: (value) => forwardProxy({ dns_refresh_rate: value }),
    settingMs: (bootstrap) => dnsCache(bootstrap).refreshRateMs,
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig.dns_min_refresh_rate': {
    bootstrap: (value) => forwardProxy({ dns_min_refresh_rate: value }),
    settingMs: (bootstrap) => dnsCache(bootstrap).minRefreshRateMs,
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig.host_ttl': {
    bootstrap: (value) => forwardProxy({ host_ttl: value }),
    settingMs: (bootstrap) => dnsCache(bootstrap).hostTtlMs,
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig.dns_query_timeout': {
    bootstrap: (value) => forwardProxy({ dns_query_timeout: value }),
    settingMs: (bootstrap) => dnsCache(bootstrap).queryTimeoutMs,
  },
  'proxy.extensions.filters.network.ratelimit.v3.RateLimit.timeout': {
    bootstrap: (value) => {
      const type = 'type.googleapis.com/envoy.extensions.filters.network.ratelimit.v3.RateLimit';
      const rate_limit_service = { grpc_service: { envoy_grpc: { cluster_name: 'web' } } };
      const descriptors = [{ entries: [{ key: 'a', value: 'b' }] }];
      const fields = { stat_prefix: 'a', domain: 'all', descriptors, rate_limit_service, timeout: value };
      return withListeners(
        listenerWith([{ name: 'limit', typed_config: { '@type': type, ...fields } }, tcpFilter({})]),
      );
    },
    settingMs: (bootstrap) => {
      const [limit] = bootstrap.listeners[0]!.filterChains[0]!.networkFilters;
      return (limit!.settings as { service: { timeoutMs: number } }).service.timeoutMs;
    },
  },
  'proxy.extensions.filters.network.rbac.v3.RBAC.delay_deny': {
    bootstrap: (value) => networkRbac({ delay_deny: value }),
    settingMs: (bootstrap) => {
      const [rbac] = bootstrap.listeners[0]!.filterChains[0]!.networkFilters;
      return (rbac!.settings as NetworkRbacSettings).delayMs;
    },
  },
  'proxy.extensions.filters.network.redis_proxy.v3.RedisProxy.RedisFault.delay': {
    bootstrap: (value) =>
      redisProxy(
        { op_timeout: '1s' },
        { faults: [{ fault_type: 'ERROR', fault_enabled: { default_value: { numerator: 1 } }, delay: value }] },
      ),
    settingMs: (bootstrap) => redisSettings(bootstrap).faults[0]!.delayMs,
  },
  'proxy.extensions.filters.network.redis_proxy.v3.RedisProxy.ConnPoolSettings.op_timeout': {
    bootstrap: (value) => redisProxy({ op_timeout: value }),
    settingMs: (bootstrap) => redisPool(bootstrap).opTimeoutMs,
  },
  'proxy.extensions.filters.network.redis_proxy.v3.RedisProxy.ConnPoolSettings.buffer_flush_timeout': {
    bootstrap: (value) => redisProxy({ op_timeout: '1s', buffer_flush_timeout: value }),
    settingMs: (bootstrap) => redisPool(bootstrap).flushMs,
  },
  'proxy.extensions.clusters.dns.v3.DnsCluster.dns_jitter': {
    bootstrap: (value) => typedDnsCluster({ dns_jitter: value }),
    settingMs: (bootstrap) => discovery(bootstrap).jitterMs,
  },
  'proxy.extensions.clusters.dns.v3.DnsCluster.dns_refresh_rate': {
    bootstrap: (value) => typedDnsCluster({ dns_refresh_rate: value }),
    settingMs: (bootstrap) => discovery(bootstrap).refreshRateMs,
  },
  'proxy.extensions.filters.common.fault.v3.FaultDelay.fixed_delay': {
    bootstrap: (value) => {
      const filter = { name: 'fault', typed_config: { '@type': FAULT, delay: { fixed_delay: value } } };
      return httpManager({ http_filters: [filter, ROUTER] });
    },
    settingMs: (bootstrap) => {
      const { fault } = manager(bootstrap).httpFilters[0]!.settings as {
        fault: { delay: { fixedMs: { default: number } } };
      };
      return fault.delay.fixedMs.default;
    },
  },
  'proxy.extensions.filters.http.health_check.v3.HealthCheck.cache_time': {
    bootstrap: (value) => {
      const fields = { pass_through_mode: true, cache_time: value };
      const filter = { name: 'health', typed_config: { '@type': HEALTH_CHECK, ...fields } };
      return httpManager({ http_filters: [filter, ROUTER] });
    },
    settingMs: (bootstrap) => (manager(bootstrap).httpFilters[0]!.settings as { cacheTimeMs: number }).cacheTimeMs,
  },
  'proxy.extensions.filters.network.connection_limit.v3.ConnectionLimit.delay': {
    bootstrap: (value) => {
      const fields = { stat_prefix: 'limit', max_connections: 1, delay: value };
      const limit: Json = { name: 'limit', typed_config: { '@type': CONNECTION_LIMIT, ...fields } };
      return withListeners(listenerWith([limit, httpFilter({})]));
    },
    settingMs: ({ listeners }) =>
      (listeners[0]!.filterChains[0]!.networkFilters[0]!.settings as { delayMs: number }).delayMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.delayed_close_timeout': {
    bootstrap: (value) => httpManager({ delayed_close_timeout: value }),
    settingMs: (bootstrap) => manager(bootstrap).delayedCloseTimeoutMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.access_log_flush_interval': {
    bootstrap: (value) => httpManager({ access_log_flush_interval: value }),
    settingMs: (bootstrap) => manager(bootstrap).furtherLogEntries.intervalMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.HcmAccessLogOptions.access_log_flush_interval':
    {
      bootstrap: (value) => httpManager({ access_log_options: { access_log_flush_interval: value } }),
      settingMs: (bootstrap) => manager(bootstrap).furtherLogEntries.intervalMs,
    },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.stream_flush_timeout': {
    bootstrap: (value) => httpManager({ stream_flush_timeout: value }),
    settingMs: (bootstrap) => manager(bootstrap).streamFlushTimeoutMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.drain_timeout': {
    bootstrap: (value) => httpManager({ drain_timeout: value }),
    settingMs: (bootstrap) => manager(bootstrap).drainTimeoutMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.idle_timeout': {
    bootstrap: (value) => httpManager({ idle_timeout: value }),
    settingMs: (bootstrap) => manager(bootstrap).idleTimeoutMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.request_headers_timeout': {
    bootstrap: (value) => httpManager({ request_headers_timeout: value }),
    settingMs: (bootstrap) => manager(bootstrap).requestHeadersTimeoutMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.request_timeout': {
    bootstrap: (value) => httpManager({ request_timeout: value }),
    settingMs: (bootstrap) => manager(bootstrap).requestTimeoutMs,
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.stream_idle_timeout': {
    bootstrap: (value) => httpManager({ stream_idle_timeout: value }),
    settingMs: (bootstrap) => manager(bootstrap).streamIdleTimeoutMs,
  },
  'proxy.extensions.filters.http.router.v3.Router.UpstreamAccessLogOptions.upstream_log_flush_interval': {
    bootstrap: (value) => {
      const typed_config = {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
        upstream_log: [{ name: 'envoy.access_loggers.stdout' }],
        upstream_log_options: { upstream_log_flush_interval: value },
      };
      return httpManager({ http_filters: [{ name: 'envoy.filters.http.router', typed_config }] });
    },
    settingMs: (bootstrap) => manager(bootstrap).upstreamLog?.intervalMs,
  },
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy.OnDemand.timeout': {
    bootstrap: (value) => {
      const grpc_services = [{ envoy_grpc: { cluster_name: 'web' } }];
      const odcds_config = {
        api_config_source: { api_type: 'DELTA_GRPC', transport_api_version: 'V3', grpc_services },
      };
      return tcp({ on_demand: { odcds_config, timeout: value } });
    },
    settingMs: (bootstrap) => tcpProxy(bootstrap).onDemand!.timeoutMs,
  },
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy.access_log_flush_interval': {
    bootstrap: (value) => tcp({ access_log_flush_interval: value }),
    settingMs: (bootstrap) => tcpProxy(bootstrap).furtherLogEntries.intervalMs,
  },
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy.downstream_idle_timeout': {
    bootstrap: (value) => tcp({ downstream_idle_timeout: value }),
    settingMs: (bootstrap) => tcpProxy(bootstrap).clientIdleTimeoutMs,
  },
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy.idle_timeout': {
    bootstrap: (value) => tcp({ idle_timeout: value }),
    settingMs: (bootstrap) => tcpProxy(bootstrap).idleTimeoutMs,
  },
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy.max_downstream_connection_duration': {
    bootstrap: (value) => tcp({ max_downstream_connection_duration: value }),
    settingMs: (bootstrap) => tcpProxy(bootstrap).maxConnectionDurationMs,
  },
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy.upstream_idle_timeout': {
    bootstrap: (value) => tcp({ upstream_idle_timeout: value }),
    settingMs: (bootstrap) => tcpProxy(bootstrap).upstreamIdleTimeoutMs,
  },
  'proxy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.idle_timeout': {
    bootstrap: (value) => {
      const settings = { '@type': UDP_PROXY, stat_prefix: 'u', cluster: 'web', idle_timeout: value };
      const socket_address = { protocol: 'UDP', address: '127.0.0.1', port_value: 0 };
      return withListeners({ address: { socket_address }, listener_filters: [{ name: 'u', typed_config: settings }] });
    },
    settingMs: (bootstrap) => bootstrap.listeners[0]!.udp!.idleTimeoutMs,
  },
  'proxy.config.core.v3.HttpUri.timeout': {
    bootstrap: (value) => {
      const http_service = { server_uri: { uri: 'http://a', cluster: 'web', timeout: value } };
      const filter = { name: 'authz', typed_config: { '@type': EXT_AUTHZ, http_service } };
      return httpManager({ http_filters: [filter, ROUTER] });
    },
    settingMs: (bootstrap) => {
      const { service } = manager(bootstrap).httpFilters[0]!.settings as { service: { timeoutMs: number } };
      return service.timeoutMs;
    },
  },
  'proxy.extensions.filters.http.jwt_authn.v3.JwtProvider.max_lifetime': tokens(
    (value) => ({ local_jwks: { inline_string: '{"keys":[{"kty":"oct","k":"YQ"}]}' }, max_lifetime: value }),
    ({ maxLifetimeMs }) => maxLifetimeMs,
  ),
  'proxy.extensions.filters.http.jwt_authn.v3.RemoteJwks.cache_duration': remoteTokens(
    (value) => ({ cache_duration: value }),
    ({ cacheMs }) => cacheMs,
  ),
  'proxy.extensions.filters.http.jwt_authn.v3.JwksAsyncFetch.failed_refetch_duration': remoteTokens(
    (value) => ({ async_fetch: { failed_refetch_duration: value } }),
    ({ failedRefetchMs }) => failedRefetchMs,
  ),
  'proxy.extensions.filters.http.ratelimit.v3.RateLimit.timeout': {
    bootstrap: (value) => {
      const rate_limit_service = { grpc_service: { envoy_grpc: { cluster_name: 'web' } } };
      const fields = { domain: 'all', timeout: value, rate_limit_service };
      const filter = { name: 'limit', typed_config: { '@type': RATE_LIMIT, ...fields } };
      return httpManager({ http_filters: [filter, ROUTER] });
    },
    settingMs: (bootstrap) => {
      const { service } = manager(bootstrap).httpFilters[0]!.settings as { service: { timeoutMs: number } };
      return service.timeoutMs;
    },
  },
  'proxy.extensions.filters.http.on_demand.v3.OnDemandCds.timeout': {
    bootstrap: (value) => {
      const grpc_services = [{ envoy_grpc: { cluster_name: 'web' } }];
      const source = { api_config_source: { api_type: 'DELTA_GRPC', transport_api_version: 'V3', grpc_services } };
      const typed_config = { '@type': ON_DEMAND, odcds: { source, timeout: value } };
      return httpManager({ http_filters: [{ name: 'on_demand', typed_config }, ROUTER] });
    },
    settingMs: (bootstrap) => {
      const { clusters } = manager(bootstrap).httpFilters[0]!.settings as OnDemandSettings;
      return clusters!.timeoutMs;
    },
  },
  [`${GRADIENT}.ConcurrencyLimitCalculationParams.concurrency_update_interval`]: gradientRow(
    (value) => ({ limit: { concurrency_update_interval: value } }),
    ({ updateIntervalMs }) => updateIntervalMs,
  ),
  [`${GRADIENT}.MinimumRTTCalculationParams.interval`]: gradientRow(
    (value) => ({ latency: { interval: value } }),
    ({ measureIntervalMs }) => measureIntervalMs,
  ),
  [`${GRADIENT}.MinimumRTTCalculationParams.fixed_value`]: gradientRow(
    (value) => ({ latency: { fixed_value: value } }),
    ({ fixedLatencyMs }) => fixedLatencyMs,
  ),
  'proxy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit.fill_interval': {
    bootstrap: (value) => {
      const fields = { stat_prefix: 'limit', limit_kbps: 1, fill_interval: value };
      const filter = { name: 'limit', typed_config: { '@type': BANDWIDTH_LIMIT, ...fields } };
      return httpManager({ http_filters: [filter, ROUTER] });
    },
    // A second at most.
    settingMs: null,
  },
  'proxy.type.http.v3.Cookie.ttl': {
    bootstrap: (value) => {
      const state = { '@type': COOKIE_SESSION, cookie: { name: 'a', ttl: value } };
      const fields = { session_state: { name: 'cookie', typed_config: state } };
      const filter = { name: 'session', typed_config: { '@type': STATEFUL_SESSION, ...fields } };
      return httpManager({ http_filters: [filter, ROUTER] });
    },
    // In seconds.
    settingMs: null,
  },
  'proxy.type.v3.TokenBucket.fill_interval': {
    bootstrap: (value) => {
      const fields = { stat_prefix: 'limit', token_bucket: { max_tokens: 1, fill_interval: value } };
      const filter = { name: 'limit', typed_config: { '@type': LOCAL_RATE_LIMIT, ...fields } };
      return httpManager({ http_filters: [filter, ROUTER] });
    },
    settingMs: (bootstrap) => {
      const { bucket } = manager(bootstrap).httpFilters[0]!.settings as { bucket: { fillIntervalMs: number } };
      return bucket.fillIntervalMs;
    },
  },
  'proxy.extensions.access_loggers.grpc.v3.CommonGrpcAccessLogConfig.buffer_flush_interval': {
    bootstrap: (value) => {
      const grpc_service = { envoy_grpc: { cluster_name: 'web' } };
      const common_config = { log_name: 'a', grpc_service, transport_api_version: 'V3', buffer_flush_interval: value };
      return httpManager({ access_log: [{ name: 'log', typed_config: { '@type': HTTP_GRPC_LOG, common_config } }] });
    },
    settingMs: (bootstrap) => {
      const { settings } = manager(bootstrap).reportedLogs![0]!.logger as { settings: { flushIntervalMs: number } };
      return settings.flushIntervalMs;
    },
  },
  'proxy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig.buffer_flush_interval': {
    bootstrap: (value) => {
      const grpc_service = { envoy_grpc: { cluster_name: 'web' } };
      const typed_config = { '@type': OPEN_TELEMETRY_LOG, grpc_service, buffer_flush_interval: value };
      return httpManager({ access_log: [{ name: 'log', typed_config }] });
    },
    settingMs: (bootstrap) => {
      const { settings } = manager(bootstrap).reportedLogs![0]!.logger as { settings: { flushIntervalMs: number } };
      return settings.flushIntervalMs;
    },
  },
  'proxy.config.core.v3.GrpcService.timeout': {
    bootstrap: (value) => {
      const service = { google_grpc: { target_uri: '127.0.0.1:1', stat_prefix: 'metrics' }, timeout: value };
      return { stats_sinks: [{ name: 'otlp', typed_config: { '@type': OPEN_TELEMETRY, grpc_service: service } }] };
    },
    settingMs: ({ statSinks }) => (statSinks[0]!.settings as { service: { timeoutMs: number } }).service.timeoutMs,
  },
  'proxy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig.max_udp_channel_duration': {
    bootstrap: (value) =>
      dnsCluster({
        typed_dns_resolver_config: { name: 'cares', typed_config: { '@type': CARES, max_udp_channel_duration: value } },
      }),
    settingMs: null,
  },
};

/** Names of the fields that hold a duration and have an effect, wherever a bootstrap can hold them. */
function supportedDurations(): string[] {
  const schema = protoSchema();
  const bootstrap = schema.messageType('proxy.config.bootstrap.v3.Bootstrap');
  return coverageFrom(bootstrap, supportWith(EXTENSIONS), (name) => schema.messageType(name)).flatMap(
    ({ key, fields }) =>
      fields
        .filter(({ field, verdict }) => {
          return field.resolvedType?.fullName === '.google.protobuf.Duration' && verdict.kind !== 'unsupported';
        })
        .map(({ field }) => `${key}.${field.name}`),
  );
}

describe('a duration of any length', () => {
  it('has a row for every field that holds one', () => {
    assert.deepEqual(Object.keys(ROWS).sort(), supportedDurations().sort());
  });

  for (const [name, { bootstrap, settingMs }] of Object.entries(ROWS)) {
    it(`is kept, or refused by its name: ${name}`, () => {
      for (const { text, ms } of LENGTHS) {
        const result = load(bootstrap(text));
        const errors = faultTexts(result);
        for (const error of errors) assert.ok(error.includes(name.slice(name.lastIndexOf('.') + 1)), error);
        if (errors.length === 0 && settingMs !== null) assert.equal(settingMs(result.bootstrap!), ms);
      }
    });
  }
});
