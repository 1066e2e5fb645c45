// Every extension name that a configuration may hold, by category. Names are written without the leading
// `proxy.`; the first is canonical, the others are what older configurations call it. A name without a row
// is unknown; a row says nothing about whether weir implements the extension. Those that it does not have are in
// lacking-extensions.ts.

import { LACKING, type LackingExtension } from './lacking-extensions.ts';

/** As `--disable-extensions` and the node's extension list spell categories. */
export type ExtensionCategory =
  | 'access_loggers'
  | 'clusters'
  | 'compression.compressor'
  | 'compression.decompressor'
  | 'filters.http'
  | 'filters.listener'
  | 'filters.network'
  | 'filters.upstream_network'
  | 'health_checkers'
  | 'http.cache'
  | 'http.stateful_session'
  | 'internal_redirect_predicates'
  | 'load_balancing_policies'
  | 'path.match'
  | 'path.rewrite'
  | 'resolvers'
  | 'resource_monitors'
  | 'retry_host_predicates'
  | 'retry_priorities'
  | 'stats_sinks'
  | 'tracers'
  | 'transport_sockets.downstream'
  | 'transport_sockets.upstream'
  | 'upstream_options';

export interface ExtensionRow {
  readonly names: readonly [canonical: string, ...others: string[]];
  /**
   * Message of its settings, without the leading `proxy.`. `none`: it takes no settings. `undescribed`: the
   * schema has no message for it, because weir has no such extension.
   */
  readonly config: string;
  /** Message of its per-route settings, where that is another one. */
  readonly perRoute?: string;
  /** What whoever wants an extension that weir does not have may do. */
  readonly instead?: string;
}

type Rows = readonly ExtensionRow[];

const row = (config: string, canonical: string, ...others: string[]): ExtensionRow => ({
  names: [canonical, ...others],
  config,
});

const lackingRow = ({ names, instead }: LackingExtension): ExtensionRow => ({
  ...row('undescribed', ...names),
  instead,
});

const perRoute = (message: string, base: ExtensionRow): ExtensionRow => ({ ...base, perRoute: message });

const NETWORK = 'extensions.filters.network';
const HTTP = 'extensions.filters.http';
const LISTENER = 'extensions.filters.listener';
const BALANCING = 'extensions.load_balancing_policies';

const NETWORK_FILTERS: Rows = [
  row(
    `${NETWORK}.http_connection_manager.v3.HttpConnectionManager`,
    'filters.network.http_connection_manager',
    'http_connection_manager',
  ),
  row(`${NETWORK}.tcp_proxy.v3.TcpProxy`, 'filters.network.tcp_proxy', 'tcp_proxy'),
  row(`${NETWORK}.echo.v3.Echo`, 'filters.network.echo', 'echo'),
  row(`${NETWORK}.rbac.v3.RBAC`, 'filters.network.rbac'),
  row(`${NETWORK}.local_ratelimit.v3.LocalRateLimit`, 'filters.network.local_ratelimit'),
  row(`${NETWORK}.direct_response.v3.Config`, 'filters.network.direct_response'),
  row(`${NETWORK}.set_filter_state.v3.Config`, 'filters.network.set_filter_state'),
  row(`${NETWORK}.sni_cluster.v3.SniCluster`, 'filters.network.sni_cluster'),
  row(
    `${NETWORK}.sni_dynamic_forward_proxy.v3.FilterConfig`,
    'filters.network.sni_dynamic_forward_proxy',
    'sni_dynamic_forward_proxy',
  ),
  row(`${NETWORK}.connection_limit.v3.ConnectionLimit`, 'filters.network.connection_limit'),
  row(`${NETWORK}.ratelimit.v3.RateLimit`, 'filters.network.ratelimit', 'ratelimit'),
  row(`${NETWORK}.ext_authz.v3.ExtAuthz`, 'filters.network.ext_authz', 'ext_authz'),
  row(`${NETWORK}.redis_proxy.v3.RedisProxy`, 'filters.network.redis_proxy', 'redis_proxy'),
];

const HTTP_FILTERS: Rows = [
  row(`${HTTP}.router.v3.Router`, 'filters.http.router', 'router'),
  row(`${HTTP}.health_check.v3.HealthCheck`, 'filters.http.health_check', 'health_check'),
  row(`${HTTP}.fault.v3.HTTPFault`, 'filters.http.fault', 'fault'),
  perRoute(
    `${HTTP}.api_key_auth.v3.ApiKeyAuthPerRoute`,
    row(`${HTTP}.api_key_auth.v3.ApiKeyAuth`, 'filters.http.api_key_auth'),
  ),
  row(`${HTTP}.ip_tagging.v3.IPTagging`, 'filters.http.ip_tagging', 'ip_tagging'),
  perRoute(`${HTTP}.cors.v3.CorsPolicy`, row(`${HTTP}.cors.v3.Cors`, 'filters.http.cors', 'cors')),
  perRoute(`${HTTP}.buffer.v3.BufferPerRoute`, row(`${HTTP}.buffer.v3.Buffer`, 'filters.http.buffer', 'buffer')),
  row(`${HTTP}.gzip.v3.Gzip`, 'filters.http.gzip', 'gzip'),
  perRoute(
    `${HTTP}.compressor.v3.CompressorPerRoute`,
    row(`${HTTP}.compressor.v3.Compressor`, 'filters.http.compressor'),
  ),
  row(`${HTTP}.decompressor.v3.Decompressor`, 'filters.http.decompressor'),
  row(`${HTTP}.local_ratelimit.v3.LocalRateLimit`, 'filters.http.local_ratelimit', 'local_rate_limit'),
  perRoute(`${HTTP}.lua.v3.LuaPerRoute`, row(`${HTTP}.lua.v3.Lua`, 'filters.http.lua', 'lua')),
  perRoute(`${HTTP}.rbac.v3.RBACPerRoute`, row(`${HTTP}.rbac.v3.RBAC`, 'filters.http.rbac')),
  row(`${HTTP}.tap.v3.Tap`, 'filters.http.tap'),
  perRoute(
    `${HTTP}.ratelimit.v3.RateLimitPerRoute`,
    row(`${HTTP}.ratelimit.v3.RateLimit`, 'filters.http.ratelimit', 'rate_limit'),
  ),
  row(`${HTTP}.grpc_web.v3.GrpcWeb`, 'filters.http.grpc_web', 'grpc_web'),
  row(`${HTTP}.grpc_http1_bridge.v3.Config`, 'filters.http.grpc_http1_bridge', 'grpc_http1_bridge'),
  row(`${HTTP}.grpc_stats.v3.FilterConfig`, 'filters.http.grpc_stats'),
  perRoute(`${HTTP}.on_demand.v3.PerRouteConfig`, row(`${HTTP}.on_demand.v3.OnDemand`, 'filters.http.on_demand')),
  row(`${HTTP}.cache.v3.CacheConfig`, 'filters.http.cache'),
  row(`${HTTP}.custom_response.v3.CustomResponse`, 'filters.http.custom_response'),
  perRoute(
    `${HTTP}.stateful_session.v3.StatefulSessionPerRoute`,
    row(`${HTTP}.stateful_session.v3.StatefulSession`, 'filters.http.stateful_session'),
  ),
  perRoute(
    `${HTTP}.ext_authz.v3.ExtAuthzPerRoute`,
    row(`${HTTP}.ext_authz.v3.ExtAuthz`, 'filters.http.ext_authz', 'ext_authz'),
  ),
  perRoute(
    `${HTTP}.jwt_authn.v3.PerRouteConfig`,
    row(`${HTTP}.jwt_authn.v3.JwtAuthentication`, 'filters.http.jwt_authn'),
  ),
  row(`${HTTP}.csrf.v3.CsrfPolicy`, 'filters.http.csrf', 'csrf'),
  perRoute(
    `${HTTP}.header_mutation.v3.HeaderMutationPerRoute`,
    row(`${HTTP}.header_mutation.v3.HeaderMutation`, 'filters.http.header_mutation'),
  ),
  row(`${HTTP}.header_to_metadata.v3.Config`, 'filters.http.header_to_metadata'),
  row(`${HTTP}.adaptive_concurrency.v3.AdaptiveConcurrency`, 'filters.http.adaptive_concurrency'),
  row(`${HTTP}.bandwidth_limit.v3.BandwidthLimit`, 'filters.http.bandwidth_limit'),
  perRoute(
    'extensions.common.matching.v3.ExtensionWithMatcherPerRoute',
    row('extensions.common.matching.v3.ExtensionWithMatcher', 'filters.http.match_delegate'),
  ),
  row(`${HTTP}.set_filter_state.v3.Config`, 'filters.http.set_filter_state'),
  row(`${HTTP}.set_metadata.v3.Config`, 'filters.http.set_metadata'),
  perRoute(
    `${HTTP}.grpc_json_transcoder.v3.GrpcJsonTranscoder`,
    row(
      `${HTTP}.grpc_json_transcoder.v3.GrpcJsonTranscoder`,
      'filters.http.grpc_json_transcoder',
      'grpc_json_transcoder',
    ),
  ),
  perRoute(`${HTTP}.module.v3.ModulePerRoute`, row(`${HTTP}.module.v3.Module`, 'filters.http.module')),
  perRoute(
    `${HTTP}.dynamic_forward_proxy.v3.PerRouteConfig`,
    row(`${HTTP}.dynamic_forward_proxy.v3.FilterConfig`, 'filters.http.dynamic_forward_proxy'),
  ),
  perRoute(
    `${HTTP}.basic_auth.v3.BasicAuthPerRoute`,
    row(`${HTTP}.basic_auth.v3.BasicAuth`, 'filters.http.basic_auth'),
  ),
];

const LISTENER_FILTERS: Rows = [
  row(`${LISTENER}.tls_inspector.v3.TlsInspector`, 'filters.listener.tls_inspector', 'listener.tls_inspector'),
  row(`${LISTENER}.http_inspector.v3.HttpInspector`, 'filters.listener.http_inspector', 'listener.http_inspector'),
  row(`${LISTENER}.original_dst.v3.OriginalDst`, 'filters.listener.original_dst', 'listener.original_dst'),
  {
    ...row(`${LISTENER}.original_src.v3.OriginalSrc`, 'filters.listener.original_src', 'listener.original_src'),
    instead: 'upstreams see the address of this proxy; a PROXY header to them tells that of the client',
  },
  row(`${LISTENER}.local_ratelimit.v3.LocalRateLimit`, 'filters.listener.local_ratelimit'),
  row(`${LISTENER}.proxy_protocol.v3.ProxyProtocol`, 'filters.listener.proxy_protocol', 'listener.proxy_protocol'),
  row('extensions.filters.udp.udp_proxy.v3.UdpProxyConfig', 'filters.udp_listener.udp_proxy', 'filters.udp.udp_proxy'),
];

const BOTH_SIDES: Rows = [
  row('extensions.transport_sockets.raw_buffer.v3.RawBuffer', 'transport_sockets.raw_buffer', 'raw_buffer'),
  row('extensions.transport_sockets.tap.v3.Tap', 'transport_sockets.tap'),
];

const DOWNSTREAM_SOCKETS: Rows = [
  row('extensions.transport_sockets.tls.v3.DownstreamTlsContext', 'transport_sockets.tls', 'tls'),
  ...BOTH_SIDES,
];

const UPSTREAM_SOCKETS: Rows = [
  row('extensions.transport_sockets.tls.v3.UpstreamTlsContext', 'transport_sockets.tls', 'tls'),
  row(
    'extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport',
    'transport_sockets.upstream_proxy_protocol',
  ),
  ...BOTH_SIDES,
];

const ACCESS_LOGGERS: Rows = [
  row('extensions.access_loggers.file.v3.FileAccessLog', 'access_loggers.file', 'file_access_log'),
  row('extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig', 'access_loggers.http_grpc', 'http_grpc_access_log'),
  row('extensions.access_loggers.grpc.v3.TcpGrpcAccessLogConfig', 'access_loggers.tcp_grpc', 'tcp_grpc_access_log'),
  row('extensions.access_loggers.stream.v3.StdoutAccessLog', 'access_loggers.stdout', 'stdout_access_log'),
  row('extensions.access_loggers.stream.v3.StderrAccessLog', 'access_loggers.stderr', 'stderr_access_log'),
  row('extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig', 'access_loggers.open_telemetry'),
];

const STATS_SINKS: Rows = [
  row('config.metrics.v3.StatsdSink', 'stat_sinks.statsd', 'statsd'),
  row('config.metrics.v3.DogStatsdSink', 'stat_sinks.dog_statsd', 'dog_statsd'),
  row('config.metrics.v3.MetricsServiceConfig', 'stat_sinks.metrics_service', 'metrics_service'),
  row('config.metrics.v3.HystrixSink', 'stat_sinks.hystrix'),
  row('extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink', 'stat_sinks.graphite_statsd'),
  row('extensions.stat_sinks.open_telemetry.v3.SinkConfig', 'stat_sinks.open_telemetry'),
];

const LOAD_BALANCING_POLICIES: Rows = [
  row(`${BALANCING}.round_robin.v3.RoundRobin`, 'load_balancing_policies.round_robin'),
  row(`${BALANCING}.least_request.v3.LeastRequest`, 'load_balancing_policies.least_request'),
  row(`${BALANCING}.random.v3.Random`, 'load_balancing_policies.random'),
  row(`${BALANCING}.ring_hash.v3.RingHash`, 'load_balancing_policies.ring_hash'),
  row(`${BALANCING}.maglev.v3.Maglev`, 'load_balancing_policies.maglev'),
  row(`${BALANCING}.subset.v3.Subset`, 'load_balancing_policies.subset'),
  row(`${BALANCING}.wrr_locality.v3.WrrLocality`, 'load_balancing_policies.wrr_locality'),
  row(`${BALANCING}.cluster_provided.v3.ClusterProvided`, 'load_balancing_policies.cluster_provided'),
  row(`${BALANCING}.pick_first.v3.PickFirst`, 'load_balancing_policies.pick_first'),
];

const REDIRECT = 'extensions.internal_redirect';
const RETRY_HOST = 'extensions.retry.host';
const HTTP_OPTIONS = 'extensions.upstreams.http.v3.HttpProtocolOptions';
const TCP_OPTIONS = 'extensions.upstreams.tcp.v3.TcpProtocolOptions';

const PRESENT: Readonly<Record<ExtensionCategory, Rows>> = {
  access_loggers: ACCESS_LOGGERS,
  clusters: [
    row('none', 'cluster.static'),
    row('none', 'cluster.strict_dns'),
    row('none', 'cluster.logical_dns'),
    row('none', 'cluster.eds'),
    row('none', 'cluster.original_dst'),
    row('extensions.clusters.aggregate.v3.ClusterConfig', 'clusters.aggregate'),
    row('extensions.clusters.dns.v3.DnsCluster', 'clusters.dns'),
    row('extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig', 'clusters.dynamic_forward_proxy'),
    row('extensions.clusters.redis.v3.RedisClusterConfig', 'clusters.redis'),
  ],
  'compression.compressor': [
    row('extensions.compression.gzip.compressor.v3.Gzip', 'compression.gzip.compressor'),
    row('extensions.compression.brotli.compressor.v3.Brotli', 'compression.brotli.compressor'),
    row('extensions.compression.zstd.compressor.v3.Zstd', 'compression.zstd.compressor'),
  ],
  'compression.decompressor': [
    row('extensions.compression.gzip.decompressor.v3.Gzip', 'compression.gzip.decompressor'),
    row('extensions.compression.brotli.decompressor.v3.Brotli', 'compression.brotli.decompressor'),
    row('extensions.compression.zstd.decompressor.v3.Zstd', 'compression.zstd.decompressor'),
  ],
  'filters.http': HTTP_FILTERS,
  'filters.listener': LISTENER_FILTERS,
  'filters.network': NETWORK_FILTERS,
  // There are none, neither here nor among those that configurations are known to name.
  'filters.upstream_network': [],
  health_checkers: [row('extensions.health_checkers.redis.v3.Redis', 'health_checkers.redis')],
  'http.cache': [
    row('extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig', 'extensions.http.cache.simple'),
  ],
  'http.stateful_session': [
    row('extensions.http.stateful_session.cookie.v3.CookieBasedSessionState', 'http.stateful_session.cookie'),
    row('extensions.http.stateful_session.header.v3.HeaderBasedSessionState', 'http.stateful_session.header'),
    row('extensions.http.stateful_session.envelope.v3.EnvelopeSessionState', 'http.stateful_session.envelope'),
  ],
  internal_redirect_predicates: [
    row(
      `${REDIRECT}.allow_listed_routes.v3.AllowListedRoutesConfig`,
      'internal_redirect_predicates.allow_listed_routes',
    ),
    row(`${REDIRECT}.previous_routes.v3.PreviousRoutesConfig`, 'internal_redirect_predicates.previous_routes'),
    row(`${REDIRECT}.safe_cross_scheme.v3.SafeCrossSchemeConfig`, 'internal_redirect_predicates.safe_cross_scheme'),
  ],
  load_balancing_policies: LOAD_BALANCING_POLICIES,
  'path.match': [
    row('extensions.path.match.uri_template.v3.UriTemplateMatchConfig', 'path.match.uri_template.uri_template_matcher'),
  ],
  'path.rewrite': [
    row(
      'extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig',
      'path.rewrite.uri_template.uri_template_rewriter',
    ),
  ],
  resolvers: [row('none', 'ip')],
  resource_monitors: [
    row('extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig', 'resource_monitors.fixed_heap'),
    row(
      'extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig',
      'resource_monitors.injected_resource',
    ),
    row(
      'extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
      'resource_monitors.global_downstream_max_connections',
      'resource_monitors.downstream_connections',
    ),
    row('extensions.resource_monitors.cgroup_memory.v3.CgroupMemoryConfig', 'resource_monitors.cgroup_memory'),
  ],
  retry_host_predicates: [
    row(`${RETRY_HOST}.previous_hosts.v3.PreviousHostsPredicate`, 'retry_host_predicates.previous_hosts'),
    row(`${RETRY_HOST}.omit_canary_hosts.v3.OmitCanaryHostsPredicate`, 'retry_host_predicates.omit_canary_hosts'),
    row(`${RETRY_HOST}.omit_host_metadata.v3.OmitHostMetadataConfig`, 'retry_host_predicates.omit_host_metadata'),
  ],
  retry_priorities: [
    row(
      'extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig',
      'retry_priorities.previous_priorities',
    ),
  ],
  stats_sinks: STATS_SINKS,
  tracers: [
    row('config.trace.v3.ZipkinConfig', 'tracers.zipkin', 'zipkin'),
    row('config.trace.v3.OpenTelemetryConfig', 'tracers.opentelemetry'),
    row('config.trace.v3.DatadogConfig', 'tracers.datadog', 'datadog'),
  ],
  'transport_sockets.downstream': DOWNSTREAM_SOCKETS,
  'transport_sockets.upstream': UPSTREAM_SOCKETS,
  upstream_options: [
    row(HTTP_OPTIONS, HTTP_OPTIONS),
    row(TCP_OPTIONS, TCP_OPTIONS),
    row(`${NETWORK}.redis_proxy.v3.RedisProtocolOptions`, 'filters.network.redis_proxy', 'redis_proxy'),
  ],
};

/** Of some there is so much that their messages are known. */
const rowsOf = (category: ExtensionCategory): Rows => {
  const present = new Set(PRESENT[category].map(({ names: [name] }) => name));
  const lacking = (LACKING[category] ?? []).filter(({ names: [name] }) => !present.has(name));
  return [...PRESENT[category], ...lacking.map(lackingRow)];
};

export const EXTENSIONS = Object.fromEntries(
  Object.keys(PRESENT).map((category) => [category, rowsOf(category as ExtensionCategory)]),
) as Readonly<Record<ExtensionCategory, Rows>>;
