export type { RetryBudget } from '../base/circuit-limits.ts';
export type { MetadataMatch, ValueMatch } from '../base/metadata-match.ts';
export { givesNoHosts, namesMembers } from '../base/named-members.ts';
export type { Fraction, RuntimeSetting, RuntimeTexts } from '../base/runtime.ts';
export type { StringMatch } from '../base/string-match.ts';
export type {
  AccessLogDestination,
  AccessLogFileSettings,
  AccessLogFilter,
  AccessLogSettings,
  ComparisonOperator,
  ReportedLogSettings,
} from './access-log.ts';
export type {
  HashFunction,
  HashingSettings,
  LeastRequestSettings,
  LoadBalancingPolicy,
  SlowStartSettings,
  SubsetCriteria,
  SubsetFallback,
  SubsetSelector,
  SubsetSettings,
  SubsetValue,
  ZoneRoutingSettings,
} from './balancing.ts';
export type { CidrRange } from './cidr-range.ts';
export type {
  AggregateShare,
  AggregateShares,
  AssignmentPolicy,
  AssignmentSettings,
  CircuitBreakerThresholds,
  ClusterSettings,
  ClusterSnapshot,
  ForwardProxySettings,
  HostSnapshot,
  HostsAmendment,
  HostsUpdate,
  KeepaliveSettings,
  LookupLimit,
  OriginalDstSettings,
  PreconnectSettings,
  RequestForm,
  RequestServerName,
  ResponseHeadLimits,
  TransportSocketMatch,
  UpstreamHttp2,
} from './cluster.ts';
export { NO_CELLS } from './cluster.ts';
export type {
  ConfigSourceSettings,
  FileSourceSettings,
  GrpcSourceSettings,
  GrpcTargetSettings,
  ManagementServerSettings,
  RequestRateSettings,
  RestSourceSettings,
} from './config-source.ts';
export type { ClusterDemandSettings, Demand } from './demand.ts';
export type {
  ConfiguredFilter,
  ConfiguredListenerFilter,
  ConfiguredNetworkFilter,
  ConfiguredTerminal,
  DiscoveredFilter,
  DiscoveredListenerFilter,
  DiscoveredNetworkFilter,
  DiscoveredTerminal,
  PublishedExtension,
  PublishedFilter,
  PublishedListenerFilter,
  PublishedNetworkFilter,
  PublishedPlace,
  PublishedTerminal,
} from './discovered-filter.ts';
export type { DnsResolverSettings } from './dns-resolver.ts';
export type { DrainedListeners, DrainProgress, DrainState, DrainStrategy } from './drain.ts';
export type {
  ConfiguredHealth,
  EndpointSettings,
  HostSettings,
  Locality,
  NamedAddress,
} from './endpoint.ts';
export type {
  ConnectionPredicate,
  ConnectionSourceType,
  DiscoveredListenerFilterSettings,
  FilterChainChoice,
  FilterChainMatch,
  FilterChainSettings,
  FilterChainSnapshot,
  HttpInspectorSettings,
  ListenerFilterSettings,
  ListenerFilterSnapshot,
  ListenerRateLimitSettings,
  OriginalDstFilterSettings,
  OwnListenerFilterSettings,
  ProxyProtocolSettings,
  TerminalParts,
  TlsInspectorSettings,
  TlvRule,
} from './filter-chain.ts';
export type {
  DurationPrecision,
  FormatCommand,
  FormatOperator,
  FormatSegment,
  FormatSegments,
  JsonFormat,
  LineFormat,
  Moment,
  ReplyFormat,
  WireDirection,
  WireKind,
  WireOperator,
  WireSide,
} from './format.ts';
export type {
  ForwardingSettings,
  InternalAddressSettings,
  OriginDetection,
  SchemePorts,
  ServiceName,
} from './forwarding.ts';
export type {
  CheckHeaders,
  CheckIntervals,
  EndpointCheckSettings,
  GrpcProbeSettings,
  HealthCheckSettings,
  HttpProbeSettings,
  ProbeSettings,
  RedisProbeSettings,
  ServerCredentials,
  StatusRange,
  TcpProbeSettings,
} from './health-check.ts';
export type {
  DiscoverySettings,
  DnsCacheSettings,
  DnsDiscoverySettings,
  DnsLookupFamily,
  DnsTarget,
  EdsDiscoverySettings,
  ForwardProxyDiscoverySettings,
  OriginalDstDiscoverySettings,
  RedisDiscoverySettings,
} from './host-discovery.ts';
export type { Http2KeepaliveSettings, Http2Settings } from './http2.ts';
export type { InternalRedirectSettings, RedirectPredicate } from './internal-redirect.ts';
export type {
  AcceptedSocketOptions,
  AcceptLimitSnapshot,
  BackoffSettings,
  ClientCertificateSettings,
  ConnectionLifeSettings,
  Http1Settings,
  HttpConnectionManagerSettings,
  HttpFilterSettings,
  HttpLogEntries,
  ListenerSettings,
  ListenerSnapshot,
  OwnTerminalSettings,
  ProxyStatusSettings,
  ServerHeaderTransformation,
  TcpClusterShare,
  TcpHashInput,
  TcpLogEntries,
  TcpProxySettings,
  TcpTunnelSettings,
  TerminalFilterSettings,
  TlvSettings,
  TrafficDirection,
  UpgradeSettings,
  UpstreamLogSettings,
} from './listener.ts';
export type { LocalReplySettings, ReplyMapperSettings } from './local-reply.ts';
export type {
  ConnectionInputKind,
  InputTest,
  MatchDomains,
  MatchInput,
  MatchMap,
  MatchOutcome,
  MatchPredicate,
  MatchRanges,
  MatchTree,
} from './matcher.ts';
export type {
  ClusterUpdate,
  DynamicStatKey,
  FilterNews,
  HostRefusal,
  InheritedSockets,
  LogLevelName,
  MainToWorker,
  WorkerInit,
  WorkerLogRecord,
  WorkerToMain,
} from './messages.ts';
export type { Metadata, MetadataSource } from './metadata.ts';
export type { ExtensionTerminalSettings, NetworkFilterSettings, NetworkFilterSnapshot } from './network-filter.ts';
export type { EscapedSlashesAction, NormalizationSettings, UnderscoresAction } from './normalization.ts';
export type { ConsecutiveKind, OutlierKind, OutlierLimits, OutlierSettings } from './outlier.ts';
export {
  type LoadShedState,
  NO_OVERLOAD,
  type OverloadState,
  type StreamReset,
  type TimeoutFloor,
} from './overload.ts';
export { type PackedCluster, packClusters, unpackCluster } from './packed-cluster.ts';
export { packTls, unpackTls } from './packed-tls.ts';
export type { DiscoveredRoutes, NamedFilter, PublishedRoutes } from './published-routes.ts';
export type { DescribedValue, RateLimitAction, RateLimitSettings, RouteRateLimits } from './rate-limit.ts';
export type {
  BackOffSettings,
  RateLimitedBackOffSettings,
  RetryCondition,
  RetryHostPredicate,
  RetrySettings,
} from './retry.ts';
export type {
  ClientCertificateMatch,
  CookieMatch,
  DirectResponseAction,
  FilterStateMatch,
  FiltersOfRoute,
  ForwardAction,
  GrpcTimeoutSettings,
  HashCookie,
  HashInput,
  HashPolicy,
  HeaderAddition,
  HeaderAppendAction,
  HeaderEdits,
  HeaderMatch,
  HostRewrite,
  MirrorPolicy,
  PathMatch,
  PathRewrite,
  QueryParameterMatch,
  RedirectAction,
  RegexSubstitution,
  RouteAction,
  RouteConditions,
  RouteFilterSettings,
  RouteSnapshot,
  RouteTableSnapshot,
  RouteUpgrade,
  VirtualClusterSettings,
  VirtualHostSnapshot,
  WeightedCluster,
  WeightedClusters,
} from './route-table.ts';
export type {
  DiscoveredTableName,
  PublishedScope,
  PublishedScopes,
  ScopedRoutesSettings,
  ScopeKeyPart,
  ScopeSettings,
  TakenElement,
} from './scoped-routes.ts';
export { socketMatchOf } from './socket-match.ts';
export {
  type TapFile,
  type TapFiles,
  type TapFormat,
  type TapMatch,
  type TapMessage,
  type TappedBody,
  type TappedFields,
  type TappedMessage,
  type TappedPiece,
  type TapSession,
  type TapSettings,
  type TapTrace,
  tapTraceCost,
} from './tap.ts';
export type {
  DownstreamTlsSettings,
  DownstreamTlsSnapshot,
  OcspStaple,
  SecretKind,
  SecretReference,
  SecuredChain,
  SubjectAltNameMatch,
  TlsCertificateSettings,
  TlsCertificateSources,
  TlsFile,
  TlsIdentity,
  TlsKeyLogSettings,
  TlsSettings,
  TlsSource,
  TlsValidationSettings,
  TlsValidationSources,
  TlsVersion,
  UpstreamTlsSettings,
} from './tls.ts';
export type {
  CustomTag,
  RouteTracing,
  TracedNode,
  TracerSettings,
  TraceSampling,
  TracingSettings,
} from './tracing.ts';
export type { UdpHashPolicy, UdpProxySettings, UdpProxySnapshot } from './udp-proxy.ts';
export { type SecuredTransport, upstreamContextsOf, withUpstreamContexts } from './upstream-contexts.ts';
export type { WatchdogSettings, WorkerWatchdog } from './watchdog.ts';
export type { WholeStats } from './whole-stats.ts';
