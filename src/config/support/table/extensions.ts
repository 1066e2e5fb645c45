// Message types of the extensions that this build has.

export const HTTP_CONNECTION_MANAGER =
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
export const TCP_PROXY = 'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
export const PROXY_PROTOCOL = 'proxy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol';
export const ORIGINAL_DST = 'proxy.extensions.filters.listener.original_dst.v3.OriginalDst';
export const TLS_INSPECTOR = 'proxy.extensions.filters.listener.tls_inspector.v3.TlsInspector';
export const HTTP_INSPECTOR = 'proxy.extensions.filters.listener.http_inspector.v3.HttpInspector';
export const LISTENER_RATE_LIMIT = 'proxy.extensions.filters.listener.local_ratelimit.v3.LocalRateLimit';
export const UDP_PROXY = 'proxy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig';
export const UDP_ROUTE = 'proxy.extensions.filters.udp.udp_proxy.v3.Route';
/** Of listeners for connections. */
export const LISTENER_FILTER_TYPES: readonly string[] = [
  PROXY_PROTOCOL,
  ORIGINAL_DST,
  TLS_INSPECTOR,
  HTTP_INSPECTOR,
  LISTENER_RATE_LIMIT,
];
/** Those that are no extensions. */
export const TERMINAL_TYPES: readonly string[] = [HTTP_CONNECTION_MANAGER, TCP_PROXY];
export const ACCESS_ACTION = 'proxy.config.rbac.v3.Action';
export const FORWARD_CLIENT_CERT =
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.ForwardClientCertConfig';
export const ROUTER = 'proxy.extensions.filters.http.router.v3.Router';
export const REQ_WITHOUT_QUERY = 'proxy.extensions.formatter.req_without_query.v3.ReqWithoutQuery';
export const METADATA_FORMATTER = 'proxy.extensions.formatter.metadata.v3.Metadata';
export const RAW_BUFFER = 'proxy.extensions.transport_sockets.raw_buffer.v3.RawBuffer';
export const UPSTREAM_TLS = 'proxy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
export const UPSTREAM_PROXY_PROTOCOL =
  'proxy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport';
export const INTERNAL_LISTENER = 'proxy.extensions.bootstrap.internal_listener.v3.InternalListener';
export const RE2 = 'proxy.extensions.regex_engines.v3.GoogleRE2';
export const CARES_RESOLVER = 'proxy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig';
export const LOCAL_ADDRESS_SELECTOR = 'proxy.config.upstream.local_address_selector.v3.DefaultLocalAddressSelector';
export const DNS_CLUSTER = 'proxy.extensions.clusters.dns.v3.DnsCluster';
export const FORWARD_PROXY_CLUSTER = 'proxy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
export const AGGREGATE_CLUSTER = 'proxy.extensions.clusters.aggregate.v3.ClusterConfig';
export const REDIS_CLUSTER = 'proxy.extensions.clusters.redis.v3.RedisClusterConfig';
export const HEALTH_EVENT_FILE = 'proxy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink';
export const PRESERVE_CASE = 'proxy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig';
/** Of the connections to the hosts of a cluster. */
export const UPSTREAM_NETWORK_FILTERS: readonly string[] = [];

/** Note on the v2 field `config` beside `typed_config`. */
export const READ_AS_TYPED = 'read as typed_config';
export const HTTP_OPTIONS = 'proxy.extensions.upstreams.http.v3.HttpProtocolOptions';
export const REDIS_OPTIONS = 'proxy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions';
export const REDIS_CHECKER = 'proxy.extensions.health_checkers.redis.v3.Redis';
export const HTTP3 = 'this build speaks no HTTP/3';
