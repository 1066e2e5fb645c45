// Short names for the messages that the conversions read; two of the generated names depend on what else
// is in the schema, so they are looked up by full name.

import type { MessageTypes } from '../proto/generated/messages.ts';

export type {
  AccessLog,
  AccessLogFilter as AccessLogFilterMessage,
  Address as AddressMessage,
  Admin,
  AllowListedRoutesConfig,
  Any,
  BackoffStrategy,
  BindConfig,
  Bootstrap,
  CaresDnsResolverConfig,
  CidrRange as CidrRangeMessage,
  CircuitBreakers,
  CircuitBreakers_Thresholds as Thresholds,
  Cluster,
  Cluster_LbSubsetConfig as LbSubsetConfig,
  Cluster_LbSubsetConfig_LbSubsetSelector as LbSubsetSelector,
  ClusterLoadAssignment,
  ComparisonFilter,
  ConnectionLimit,
  CoreHealthCheck as HealthCheckMessage,
  CoreHttpProtocolOptions as HttpProtocolOptions,
  DataSource,
  DirectResponseAction as DirectResponseMessage,
  DnsCluster,
  Duration,
  Endpoint,
  FileAccessLog,
  FilterChain,
  FilterChainMatch as FilterChainMatchMessage,
  FractionalPercent,
  HeaderMatcher,
  HeaderMutation,
  HeaderValue,
  HeaderValueOption,
  HealthCheck_HttpHealthCheck as HttpHealthCheck,
  HealthCheck_Payload as Payload,
  HealthCheck_TcpHealthCheck as TcpHealthCheck,
  HealthCheckEventFileSink,
  HealthCheckHealthCheck as HealthCheckFilterMessage,
  HedgePolicy,
  Http1ProtocolOptions,
  HttpConnectionManager,
  HttpFilter,
  InternalRedirectPolicy,
  LbEndpoint,
  Listener,
  Locality as LocalityMessage,
  LocalityLbEndpoints,
  Metadata,
  OmitHostMetadataConfig,
  OutlierDetection,
  PreviousPrioritiesConfig,
  ProxyProtocol,
  ProxyTypeMatcherRegexMatcher as RegexMatcher,
  ProxyTypeMatcherStringMatcher as StringMatcher,
  QueryParameterMatcher,
  RedirectAction as RedirectMessage,
  RegexMatchAndSubstitute,
  Route,
  RouteAction as RouteActionMessage,
  RouteAction_HashPolicy as HashPolicyMessage,
  RouteAction_RequestMirrorPolicy as RequestMirrorPolicy,
  RouteConfiguration,
  RouteMatch,
  RouteRetryPolicy as RetryPolicyMessage,
  Router,
  RuntimeFeatureFlag,
  RuntimeFractionalPercent,
  RuntimeUInt32,
  SocketOption,
  StatsConfig,
  StatsdSink,
  StatsSink,
  StderrAccessLog,
  StdoutAccessLog,
  Struct,
  SubstitutionFormatString,
  TcpKeepalive,
  TcpProxy,
  TransportSocket,
  Value,
  VirtualHost,
  WeightedCluster as WeightedClusterMessage,
  WeightedCluster_ClusterWeight as ClusterWeight,
} from '../proto/generated/messages.ts';

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
