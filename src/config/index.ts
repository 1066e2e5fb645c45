// Bytes in, validated settings and every fault out: the only door to configuration for serving, for
// validating and for the library.

export type {
  AdminSettings,
  BootstrapConfig,
  FixedStatTag,
  LoadBootstrapInput,
  LoadBootstrapResult,
  NodeSettings,
} from './bootstrap/bootstrap-config.ts';
export type { DynamicResourcesSettings } from './bootstrap/dynamic-resources.ts';
export { loadBootstrap, prepareLoading } from './bootstrap/load.ts';
export type {
  MonitoredResource,
  OverloadActionName,
  OverloadSettings,
  ResourceMonitorSettings,
  TriggerSettings,
} from './bootstrap/overload.ts';
export type { RuntimeDiscovery, RuntimeFiles, RuntimeLayerSettings } from './bootstrap/runtime.ts';
export { shownConfigYaml } from './bootstrap/shown-yaml.ts';
export { openDigest } from './discovery/digested-response.ts';
export type {
  DiscoverableResources,
  ReadFilters,
  ReadHost,
  ReadRoutes,
  RoutesView,
  SecretMessage,
  SecretReading,
} from './discovery/discoverable-resources.ts';
export type {
  DiscoveredResource,
  DiscoveredResponse,
  OfferedResource,
} from './discovery/discovered-response.ts';
export {
  AGGREGATED_SERVICE,
  DISCOVERY_SERVICES,
  type DiscoveryService,
  discoveryService,
} from './discovery/discovery-services.ts';
export type { NodeMessage, RequestNames, StateRequest } from './discovery/exchange-requests.ts';
export type { RawResource, RawResponse, ReadResponse } from './discovery/exchange-responses.ts';
export type {
  CheckOrder,
  CheckOrders,
  FoundHealth,
  FoundLocality,
  OrderedCheck,
} from './discovery/health-messages.ts';
export type { ReportRequest } from './discovery/load-messages.ts';
export type { ResourceType } from './discovery/resource-type.ts';
export { buffersOf, digestResponse, type ReadingOrder, type ResponseDigest } from './discovery/response-digest.ts';
export {
  type OpenedResponse,
  openResponse,
  openResponseFile,
} from './discovery/response-file.ts';
export { RUNTIME_TYPE, type RuntimeResource } from './discovery/runtime-type.ts';
export { readStoredResource, rereadResource } from './discovery/stored-resource.ts';
export { type ConfigFault, type FaultSeverity, formatFault, hasErrors } from './fault.ts';
export { bootstrapSchema, type ProtoComments } from './json-schema/bootstrap-schema.ts';
export { ClientResourceStatus } from './proto/generated/enums.ts';
export type { MessageTypes } from './proto/generated/messages.ts';
export { int64ToNumber as toNumber } from './proto/int64.ts';
export {
  isMaskOf,
  type MaskTree,
  maskPaths,
  maskTree,
} from './proto/json-text/field-mask.ts';
export { messageJson } from './proto/json-text/message-json.ts';
export { redactedJson } from './proto/json-text/redaction.ts';
export { describeLacking, findLacking } from './proto/lacking-extensions.ts';
export { MessageEncoder, nanoseconds } from './proto/message-encoder.ts';
export { type MessageType, protoSchema } from './proto/root.ts';
export { jsonToStruct } from './proto/struct.ts';
export { textOfMessage } from './proto/text-writer.ts';
export { type UnknownFieldMode, UnknownFieldPolicy } from './proto/unknown-fields.ts';
export { encodeDelimited } from './proto/wire.ts';
export { encodeMessage, headOf, partsOf, textOf } from './proto/wire-parts.ts';
export type {
  AccessLoggerManifest,
  AccessLoggerManifests,
  LineLoggerManifest,
} from './resources/access-log/access-log.ts';
export { checkLogPath } from './resources/access-log/log-path.ts';
export { convertAddress } from './resources/address.ts';
export { addressMessage } from './resources/address-message.ts';
export { convertCidrRange } from './resources/cidr.ts';
export { convertClusterDemand, type ServiceStreamSettings } from './resources/config-source.ts';
export type { Conversion } from './resources/conversion.ts';
export { readDataSource } from './resources/data-source.ts';
export { convertDnsCache } from './resources/dns-cache.ts';
export { BARE_ENDPOINT } from './resources/endpoint.ts';
export { type OpenedExtension, openExtension } from './resources/extension.ts';
export type { ExtensionManifests } from './resources/extension-manifests.ts';
export type { FaultSink } from './resources/fault-sink.ts';
export { CONNECTION_STATE_KEYS, REQUEST_STATE_KEYS } from './resources/filter-state.ts';
export { parseFormat } from './resources/format/format-string.ts';
export {
  convertJsonFormat,
  convertSubstitutionFormat,
  convertTextFormat,
  defaultLineFormat,
} from './resources/format/line-format.ts';
export { initialMetadata } from './resources/grpc-metadata.ts';
export { convertCookie } from './resources/hash-policy.ts';
export { convertHeaderAdditions, convertHeaderMutations } from './resources/header-edits.ts';
export type { HttpFilterManifest, HttpFilterManifests, RouteFilterManifest } from './resources/http-filter.ts';
export { convertReplyFormat } from './resources/local-reply.ts';
export { CONNECTION_INPUTS, REQUEST_INPUTS, RESPONSE_INPUTS } from './resources/matching/match-inputs.ts';
export { convertMatchTree, type MatcherMessage, type TreePlace } from './resources/matching/match-tree.ts';
export type {
  AddressMessage,
  BufferMessage,
  BufferPerRouteMessage,
  ConnectionLimitMessage,
  CorsPolicyMessage,
  DogStatsdSink,
  ForwardProxyFilterMessage,
  GraphiteStatsdSink,
  GrpcBridgeFilterMessage,
  GrpcService,
  GrpcStatsFilterMessage,
  HealthCheckFilterMessage,
  HttpTapMessage,
  HystrixSink,
  MetricsServiceConfig,
  OlderCorsPolicyMessage,
  OpenTelemetrySinkConfig,
  StatsdSink,
  TapConfig,
} from './resources/messages.ts';
export { convertMetadataMatch } from './resources/metadata-match.ts';
export type { NetworkFilterManifest, NetworkFilterManifests } from './resources/network-filter.ts';
export { convertRateLimits } from './resources/rate-limits.ts';
export { convertRedirect } from './resources/redirect-action.ts';
export { credentialOf } from './resources/redis-options.ts';
export { convertOwnRetries } from './resources/retry-policy.ts';
export {
  convertConditions,
  convertHeaderMatcher,
  convertHeaderMatchers,
  convertMatchTemplate,
  convertPathMatch,
  convertQueryMatchers,
  convertStateMatch,
} from './resources/route-match.ts';
export { fractionOf, runtimeFlagOf, runtimeFractionOf } from './resources/runtime-settings.ts';
export { flatRuntimeValues, invalidEntryText } from './resources/runtime-struct.ts';
export { ScopeClaims } from './resources/scoped-routes.ts';
export type { StatSinkManifest, StatSinkManifests, StatSinkSettings } from './resources/stat-sink.ts';
export { convertStringMatcher, convertSubstitution, regexMatch } from './resources/string-match.ts';
export { structToJson } from './resources/struct.ts';
export { type ReadContext, type ReadFault, type RereadInput, TlsReader } from './resources/tls/reread.ts';
export { convertTokenBucket } from './resources/token-bucket.ts';
export { convertTags, type TracerManifest, type TracerManifests } from './resources/tracing.ts';
export { durationMsOr, valueOr } from './resources/units.ts';
export { MAX_SOURCE_BYTES } from './source/source.ts';
export { type DisablingOutcome, disableExtensions, linkedExtensions } from './support/linked-extensions.ts';
export {
  extensions,
  type MessageSupport,
  only,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from './support/verdict.ts';
export { type ConvertedTap, convertTapConfig } from './tap/tap-config.ts';
export { readTapOrder, type TapOrder } from './tap/tap-request.ts';
