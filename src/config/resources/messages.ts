// Short names for the messages that the conversions read; some of the generated names depend on what else
// is in the schema, so they are looked up by full name.

import type { MessageTypes } from '../proto/generated/messages.ts';

export type {
  AccessLog,
  AccessLogFilter as AccessLogFilterMessage,
  Address as AddressMessage,
  Admin,
  AggregateClusterConfig as AggregateCluster,
  AllowListedRoutesConfig,
  Any,
  ApiConfigSource,
  BackoffStrategy,
  BindConfig,
  Bootstrap,
  Buffer as BufferMessage,
  BufferPerRoute as BufferPerRouteMessage,
  CaresDnsResolverConfig,
  CertificateValidationContext,
  CidrRange as CidrRangeMessage,
  CircuitBreakers,
  CircuitBreakers_Thresholds as Thresholds,
  Cluster,
  Cluster_LbSubsetConfig as LbSubsetConfig,
  Cluster_LbSubsetConfig_LbSubsetSelector as LbSubsetSelector,
  ClusterLoadAssignment,
  CommonTlsContext,
  ComparisonFilter,
  ConfigSource,
  ConnectionLimit as ConnectionLimitMessage,
  CookieMatcher,
  CoreHealthCheck as HealthCheckMessage,
  CoreHttpProtocolOptions as HttpProtocolOptions,
  CorsCorsPolicy as CorsPolicyMessage,
  CustomTag as CustomTagMessage,
  DataSource,
  DirectResponseAction as DirectResponseMessage,
  DnsCacheConfig,
  DnsCluster,
  DogStatsdSink,
  DownstreamTlsContext,
  Duration,
  DynamicForwardProxyClusterConfig as ForwardProxyCluster,
  DynamicForwardProxyFilterConfig as ForwardProxyFilterMessage,
  Endpoint,
  ExtensionConfigSource,
  FilterChain,
  FilterChainMatch as FilterChainMatchMessage,
  FilterStateMatcher,
  FractionalPercent,
  GraphiteStatsdSink,
  GrpcHttp1BridgeConfig as GrpcBridgeFilterMessage,
  GrpcService,
  GrpcStatsFilterConfig as GrpcStatsFilterMessage,
  HeaderMatcher,
  HeaderValue,
  HeaderValueOption,
  HealthCheck_CustomHealthCheck as CustomHealthCheck,
  HealthCheck_GrpcHealthCheck as GrpcHealthCheck,
  HealthCheck_HttpHealthCheck as HttpHealthCheck,
  HealthCheck_Payload as Payload,
  HealthCheck_TcpHealthCheck as TcpHealthCheck,
  HealthCheckEventFileSink,
  HealthCheckHealthCheck as HealthCheckFilterMessage,
  HedgePolicy,
  Http1ProtocolOptions,
  Http2ProtocolOptions,
  HttpConnectionManager,
  HttpConnectionManager_Tracing as HcmTracing,
  HttpFilter,
  HttpTapTap as HttpTapMessage,
  HystrixSink,
  InternalRedirectPolicy,
  LbEndpoint,
  Listener,
  Locality as LocalityMessage,
  LocalityLbEndpoints,
  LocalReplyConfig,
  MetricsServiceConfig,
  OmitHostMetadataConfig,
  OutlierDetection,
  Percent,
  PreviousPrioritiesConfig,
  ProxyProtocol,
  ProxyProtocolConfig,
  ProxyProtocolUpstreamTransport,
  ProxyTypeMatcherRegexMatcher as RegexMatcher,
  ProxyTypeMatcherStringMatcher as StringMatcher,
  QueryParameterMatcher,
  RedirectAction as RedirectMessage,
  RedisClusterConfig as RedisCluster,
  RegexMatchAndSubstitute,
  ResponseMapper,
  RouteAction as RouteActionMessage,
  RouteAction_HashPolicy as HashPolicyMessage,
  RouteAction_RequestMirrorPolicy as RequestMirrorPolicy,
  RouteConfiguration,
  RouteCorsPolicy as OlderCorsPolicyMessage,
  RouteFilterConfig,
  RouteMatch,
  RouteRetryPolicy as RetryPolicyMessage,
  Router,
  RuntimeFeatureFlag,
  RuntimeFractionalPercent,
  RuntimeUInt32,
  SdsSecretConfig,
  Secret,
  SinkConfig as OpenTelemetrySinkConfig,
  SocketOption,
  StatsConfig,
  StatsdSink,
  StatsSink,
  Struct,
  SubjectAltNameMatcher,
  SubstitutionFormatString,
  TapConfig,
  TcpKeepalive,
  TcpProxy,
  TcpProxy_TunnelingConfig,
  TlsCertificate,
  TlsInspector,
  TlsParameters,
  TlsSessionTicketKeys,
  Tracing_Http as TracerMessage,
  TransportSocket,
  UdpProxyConfig,
  UdpSocketConfig,
  UpstreamHttpProtocolOptions,
  UpstreamTlsContext,
  Value,
  VirtualCluster,
  VirtualHost,
  WatchedDirectory,
  WeightedCluster as WeightedClusterMessage,
  WeightedCluster_ClusterWeight as ClusterWeight,
} from '../proto/generated/messages.ts';

export type UriTemplateMatch = MessageTypes['proxy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig'];
export type UriTemplateRewrite = MessageTypes['proxy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig'];
export type MetadataMatcher = MessageTypes['proxy.type.matcher.v3.MetadataMatcher'];
export type ValueMatcher = MessageTypes['proxy.type.matcher.v3.ValueMatcher'];
export type HeaderMutation = MessageTypes['proxy.config.common.mutation_rules.v3.HeaderMutation'];
export type Metadata = MessageTypes['proxy.config.core.v3.Metadata'];
export type Route = MessageTypes['proxy.config.route.v3.Route'];
export type UdpRoute = MessageTypes['proxy.extensions.filters.udp.udp_proxy.v3.Route'];
/** A network filter of a listener. */
export type RingHashMessage = MessageTypes['proxy.extensions.load_balancing_policies.ring_hash.v3.RingHash'];
export type MaglevMessage = MessageTypes['proxy.extensions.load_balancing_policies.maglev.v3.Maglev'];
export type NetworkFilter = MessageTypes['proxy.config.listener.v3.Filter'];
/** HTTP options towards an upstream, from typed_extension_protocol_options. */
export type UpstreamHttpOptions = MessageTypes['proxy.extensions.upstreams.http.v3.HttpProtocolOptions'];

/** A message of the load-balancing policies, such as `maglev.v3.Maglev`. */
export type MessageOf<Name extends string> =
  `proxy.extensions.load_balancing_policies.${Name}` extends infer Full extends keyof MessageTypes
    ? MessageTypes[Full]
    : never;
export type EarlyHeaderMutation =
  MessageTypes['proxy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation'];
export type XffConfig = MessageTypes['proxy.extensions.http.original_ip_detection.xff.v3.XffConfig'];
export type CustomHeaderConfig =
  MessageTypes['proxy.extensions.http.original_ip_detection.custom_header.v3.CustomHeaderConfig'];
export type UuidRequestIdConfig = MessageTypes['proxy.extensions.request_id.uuid.v3.UuidRequestIdConfig'];
export type CoreRetryPolicy = MessageTypes['proxy.config.core.v3.RetryPolicy'];
