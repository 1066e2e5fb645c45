// The extensions of this build as the main thread knows them: from a message of the configuration to settings. What
// they do is in data-registry.ts, for those that run in workers, and in stat-sink-registry.ts.

import type {
  AccessLoggerManifests,
  ExtensionManifests,
  HttpFilterManifests,
  NetworkFilterManifests,
  StatSinkManifests,
  TracerManifests,
} from '../config/index.ts';
import { FILE_LOG } from './access_loggers/file/config.ts';
import { HTTP_GRPC_LOG, TCP_GRPC_LOG } from './access_loggers/grpc/config.ts';
import { OPEN_TELEMETRY_LOG } from './access_loggers/open_telemetry/config.ts';
import { STDERR_LOG, STDOUT_LOG } from './access_loggers/stream/config.ts';
import { ADAPTIVE_CONCURRENCY } from './filters.http/adaptive_concurrency/config.ts';
import { API_KEY_AUTH } from './filters.http/api_key_auth/config.ts';
import { BANDWIDTH_LIMIT } from './filters.http/bandwidth_limit/config.ts';
import { BASIC_AUTH_MANIFEST } from './filters.http/basic_auth/config.ts';
import { BUFFER_MANIFEST } from './filters.http/buffer/config.ts';
import { CACHE } from './filters.http/cache/config.ts';
import { COMPRESSOR_MANIFEST } from './filters.http/compressor/config.ts';
import { CORS } from './filters.http/cors/config.ts';
import { CSRF } from './filters.http/csrf/config.ts';
import { CUSTOM_RESPONSE } from './filters.http/custom_response/config.ts';
import { DECOMPRESSOR_MANIFEST } from './filters.http/decompressor/config.ts';
import { DYNAMIC_FORWARD_PROXY } from './filters.http/dynamic_forward_proxy/config.ts';
import { EXT_AUTHZ_MANIFEST } from './filters.http/ext_authz/config.ts';
import { FAULT_MANIFEST } from './filters.http/fault/config.ts';
import { GRPC_BRIDGE } from './filters.http/grpc_http1_bridge/config.ts';
import { GRPC_JSON_TRANSCODER } from './filters.http/grpc_json_transcoder/config.ts';
import { GRPC_STATS } from './filters.http/grpc_stats/config.ts';
import { GRPC_WEB } from './filters.http/grpc_web/config.ts';
import { GZIP_MANIFEST } from './filters.http/gzip/config.ts';
import { HEADER_MUTATION } from './filters.http/header_mutation/config.ts';
import { HEADER_TO_METADATA } from './filters.http/header_to_metadata/config.ts';
import { HEALTH_CHECK } from './filters.http/health_check/config.ts';
import { IP_TAGGING } from './filters.http/ip_tagging/config.ts';
import { JWT_AUTHN } from './filters.http/jwt_authn/config.ts';
import { LOCAL_RATE_LIMIT } from './filters.http/local_ratelimit/config.ts';
import { LUA_MANIFEST } from './filters.http/lua/config.ts';
import { MATCH_DELEGATE } from './filters.http/match_delegate/config.ts';
import { type GivenFilters, moduleManifest } from './filters.http/module/config.ts';
import { ON_DEMAND } from './filters.http/on_demand/config.ts';
import { RATE_LIMIT } from './filters.http/ratelimit/config.ts';
import { RBAC } from './filters.http/rbac/config.ts';
import { SET_FILTER_STATE } from './filters.http/set_filter_state/config.ts';
import { SET_METADATA } from './filters.http/set_metadata/config.ts';
import { STATEFUL_SESSION } from './filters.http/stateful_session/config.ts';
import { TAP } from './filters.http/tap/config.ts';
import { CONNECTION_LIMIT } from './filters.network/connection_limit/config.ts';
import { DIRECT_RESPONSE } from './filters.network/direct_response/config.ts';
import { ECHO } from './filters.network/echo/config.ts';
import { NETWORK_EXT_AUTHZ } from './filters.network/ext_authz/config.ts';
import { NETWORK_LOCAL_RATE_LIMIT } from './filters.network/local_ratelimit/config.ts';
import { NETWORK_RATE_LIMIT } from './filters.network/ratelimit/config.ts';
import { NETWORK_RBAC } from './filters.network/rbac/config.ts';
import { REDIS_PROXY_MANIFEST } from './filters.network/redis_proxy/config.ts';
import { NETWORK_SET_FILTER_STATE } from './filters.network/set_filter_state/config.ts';
import { SNI_CLUSTER } from './filters.network/sni_cluster/config.ts';
import { SNI_DYNAMIC_FORWARD_PROXY } from './filters.network/sni_dynamic_forward_proxy/config.ts';
import { DOG_STATSD } from './stat_sinks/dog_statsd/config.ts';
import { GRAPHITE_STATSD } from './stat_sinks/graphite_statsd/config.ts';
import { HYSTRIX } from './stat_sinks/hystrix/config.ts';
import { METRICS_SERVICE } from './stat_sinks/metrics_service/config.ts';
import { OPEN_TELEMETRY } from './stat_sinks/open_telemetry/config.ts';
import { STATSD } from './stat_sinks/statsd/config.ts';
import { DATADOG } from './tracers/datadog/config.ts';
import { OPEN_TELEMETRY_TRACING } from './tracers/opentelemetry/config.ts';
import { ZIPKIN } from './tracers/zipkin/config.ts';

const MODULE = 'proxy.extensions.filters.http.module.v3.Module';

const HTTP_FILTERS: HttpFilterManifests = {
  'proxy.extensions.common.matching.v3.ExtensionWithMatcher': MATCH_DELEGATE,
  'proxy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency': ADAPTIVE_CONCURRENCY,
  'proxy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth': API_KEY_AUTH,
  'proxy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit': BANDWIDTH_LIMIT,
  'proxy.extensions.filters.http.basic_auth.v3.BasicAuth': BASIC_AUTH_MANIFEST,
  'proxy.extensions.filters.http.buffer.v3.Buffer': BUFFER_MANIFEST,
  'proxy.extensions.filters.http.cache.v3.CacheConfig': CACHE,
  'proxy.extensions.filters.http.compressor.v3.Compressor': COMPRESSOR_MANIFEST,
  'proxy.extensions.filters.http.cors.v3.Cors': CORS,
  'proxy.extensions.filters.http.csrf.v3.CsrfPolicy': CSRF,
  'proxy.extensions.filters.http.custom_response.v3.CustomResponse': CUSTOM_RESPONSE,
  'proxy.extensions.filters.http.decompressor.v3.Decompressor': DECOMPRESSOR_MANIFEST,
  'proxy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig': DYNAMIC_FORWARD_PROXY,
  'proxy.extensions.filters.http.ext_authz.v3.ExtAuthz': EXT_AUTHZ_MANIFEST,
  'proxy.extensions.filters.http.fault.v3.HTTPFault': FAULT_MANIFEST,
  'proxy.extensions.filters.http.grpc_http1_bridge.v3.Config': GRPC_BRIDGE,
  'proxy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder': GRPC_JSON_TRANSCODER,
  'proxy.extensions.filters.http.grpc_stats.v3.FilterConfig': GRPC_STATS,
  'proxy.extensions.filters.http.grpc_web.v3.GrpcWeb': GRPC_WEB,
  'proxy.extensions.filters.http.gzip.v3.Gzip': GZIP_MANIFEST,
  'proxy.extensions.filters.http.header_mutation.v3.HeaderMutation': HEADER_MUTATION,
  'proxy.extensions.filters.http.header_to_metadata.v3.Config': HEADER_TO_METADATA,
  'proxy.extensions.filters.http.health_check.v3.HealthCheck': HEALTH_CHECK,
  'proxy.extensions.filters.http.ip_tagging.v3.IPTagging': IP_TAGGING,
  'proxy.extensions.filters.http.jwt_authn.v3.JwtAuthentication': JWT_AUTHN,
  'proxy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit': LOCAL_RATE_LIMIT,
  'proxy.extensions.filters.http.lua.v3.Lua': LUA_MANIFEST,
  [MODULE]: moduleManifest(),
  'proxy.extensions.filters.http.ratelimit.v3.RateLimit': RATE_LIMIT,
  'proxy.extensions.filters.http.rbac.v3.RBAC': RBAC,
  'proxy.extensions.filters.http.set_filter_state.v3.Config': SET_FILTER_STATE,
  'proxy.extensions.filters.http.on_demand.v3.OnDemand': ON_DEMAND,
  'proxy.extensions.filters.http.set_metadata.v3.Config': SET_METADATA,
  'proxy.extensions.filters.http.stateful_session.v3.StatefulSession': STATEFUL_SESSION,
  'proxy.extensions.filters.http.tap.v3.Tap': TAP,
};

const NETWORK_FILTERS: NetworkFilterManifests = {
  'proxy.extensions.filters.network.connection_limit.v3.ConnectionLimit': CONNECTION_LIMIT,
  'proxy.extensions.filters.network.direct_response.v3.Config': DIRECT_RESPONSE,
  'proxy.extensions.filters.network.echo.v3.Echo': ECHO,
  'proxy.extensions.filters.network.ext_authz.v3.ExtAuthz': NETWORK_EXT_AUTHZ,
  'proxy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit': NETWORK_LOCAL_RATE_LIMIT,
  'proxy.extensions.filters.network.ratelimit.v3.RateLimit': NETWORK_RATE_LIMIT,
  'proxy.extensions.filters.network.rbac.v3.RBAC': NETWORK_RBAC,
  'proxy.extensions.filters.network.set_filter_state.v3.Config': NETWORK_SET_FILTER_STATE,
  'proxy.extensions.filters.network.sni_cluster.v3.SniCluster': SNI_CLUSTER,
  'proxy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig': SNI_DYNAMIC_FORWARD_PROXY,
  'proxy.extensions.filters.network.redis_proxy.v3.RedisProxy': REDIS_PROXY_MANIFEST,
};

const ACCESS_LOGGERS: AccessLoggerManifests = {
  'proxy.extensions.access_loggers.file.v3.FileAccessLog': FILE_LOG,
  'proxy.extensions.access_loggers.stream.v3.StdoutAccessLog': STDOUT_LOG,
  'proxy.extensions.access_loggers.stream.v3.StderrAccessLog': STDERR_LOG,
  'proxy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig': HTTP_GRPC_LOG,
  'proxy.extensions.access_loggers.grpc.v3.TcpGrpcAccessLogConfig': TCP_GRPC_LOG,
  'proxy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig': OPEN_TELEMETRY_LOG,
};

const TRACERS: TracerManifests = {
  'proxy.config.trace.v3.DatadogConfig': DATADOG,
  'proxy.config.trace.v3.OpenTelemetryConfig': OPEN_TELEMETRY_TRACING,
  'proxy.config.trace.v3.ZipkinConfig': ZIPKIN,
};

const STAT_SINKS: StatSinkManifests = {
  'proxy.config.metrics.v3.StatsdSink': STATSD,
  'proxy.config.metrics.v3.DogStatsdSink': DOG_STATSD,
  'proxy.config.metrics.v3.MetricsServiceConfig': METRICS_SERVICE,
  'proxy.config.metrics.v3.HystrixSink': HYSTRIX,
  'proxy.extensions.stat_sinks.open_telemetry.v3.SinkConfig': OPEN_TELEMETRY,
  'proxy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink': GRAPHITE_STATSD,
};

export const EXTENSIONS: ExtensionManifests = {
  statSinks: STAT_SINKS,
  httpFilters: HTTP_FILTERS,
  networkFilters: NETWORK_FILTERS,
  tracers: TRACERS,
  accessLoggers: ACCESS_LOGGERS,
};

/** With filters that the program brings, by name. */
export function extensionsWith(given: GivenFilters): ExtensionManifests {
  return given.size === 0
    ? EXTENSIONS
    : { ...EXTENSIONS, httpFilters: { ...HTTP_FILTERS, [MODULE]: moduleManifest(given) } };
}
