// The extensions of this build as workers know them: by name, from settings to something that runs. Their other half
// is control-registry.ts.

import type {
  AccessLoggerRegistry,
  HttpFilterRegistry,
  NetworkFilterRegistry,
  TracerRegistry,
} from '../data-plane/index.ts';
import { HTTP_GRPC_LOGGER, TCP_GRPC_LOGGER } from './access_loggers/grpc/logger.ts';
import { OPEN_TELEMETRY_LOGGER } from './access_loggers/open_telemetry/logger.ts';
import { ADAPTIVE_CONCURRENCY_FILTER } from './filters.http/adaptive_concurrency/filter.ts';
import { API_KEY_AUTH_FILTER } from './filters.http/api_key_auth/filter.ts';
import { BANDWIDTH_LIMIT_FILTER } from './filters.http/bandwidth_limit/filter.ts';
import { BASIC_AUTH_FILTER } from './filters.http/basic_auth/filter.ts';
import { BUFFER_FILTER } from './filters.http/buffer/filter.ts';
import { CACHE_FILTER } from './filters.http/cache/filter.ts';
import { COMPRESSOR_FILTER } from './filters.http/compressor/filter.ts';
import { CORS_FILTER } from './filters.http/cors/filter.ts';
import { CSRF_FILTER } from './filters.http/csrf/filter.ts';
import { CUSTOM_RESPONSE_FILTER } from './filters.http/custom_response/filter.ts';
import { DECOMPRESSOR_FILTER } from './filters.http/decompressor/filter.ts';
import { DYNAMIC_FORWARD_PROXY_FILTER } from './filters.http/dynamic_forward_proxy/filter.ts';
import { EXT_AUTHZ_FILTER } from './filters.http/ext_authz/filter.ts';
import { FAULT_FILTER } from './filters.http/fault/filter.ts';
import { GRPC_BRIDGE_FILTER } from './filters.http/grpc_http1_bridge/filter.ts';
import { GRPC_JSON_TRANSCODER_FILTER } from './filters.http/grpc_json_transcoder/filter.ts';
import { GRPC_STATS_FILTER } from './filters.http/grpc_stats/filter.ts';
import { GRPC_WEB_FILTER } from './filters.http/grpc_web/filter.ts';
import { HEADER_MUTATION_FILTER } from './filters.http/header_mutation/filter.ts';
import { HEADER_TO_METADATA_FILTER } from './filters.http/header_to_metadata/filter.ts';
import { HEALTH_CHECK_FILTER } from './filters.http/health_check/filter.ts';
import { IP_TAGGING_FILTER } from './filters.http/ip_tagging/filter.ts';
import { JWT_AUTHN_FILTER } from './filters.http/jwt_authn/filter.ts';
import { LOCAL_RATE_LIMIT_FILTER } from './filters.http/local_ratelimit/filter.ts';
import { LUA_FILTER } from './filters.http/lua/filter.ts';
import { matchDelegate } from './filters.http/match_delegate/filter.ts';
import { MODULE_FILTER } from './filters.http/module/filter.ts';
import { ON_DEMAND_FILTER } from './filters.http/on_demand/filter.ts';
import { RATE_LIMIT_FILTER } from './filters.http/ratelimit/filter.ts';
import { RBAC_FILTER } from './filters.http/rbac/filter.ts';
import { SET_FILTER_STATE_FILTER } from './filters.http/set_filter_state/filter.ts';
import { SET_METADATA_FILTER } from './filters.http/set_metadata/filter.ts';
import { STATEFUL_SESSION_FILTER } from './filters.http/stateful_session/filter.ts';
import { TAP_FILTER } from './filters.http/tap/filter.ts';
import { CONNECTION_LIMIT_FILTER } from './filters.network/connection_limit/filter.ts';
import { DIRECT_RESPONSE_FILTER } from './filters.network/direct_response/filter.ts';
import { ECHO_FILTER } from './filters.network/echo/filter.ts';
import { NETWORK_EXT_AUTHZ_FILTER } from './filters.network/ext_authz/filter.ts';
import { NETWORK_LOCAL_RATE_LIMIT_FILTER } from './filters.network/local_ratelimit/filter.ts';
import { NETWORK_RATE_LIMIT_FILTER } from './filters.network/ratelimit/filter.ts';
import { NETWORK_RBAC_FILTER } from './filters.network/rbac/filter.ts';
import { REDIS_PROXY_FILTER } from './filters.network/redis_proxy/filter.ts';
import { NETWORK_SET_FILTER_STATE_FILTER } from './filters.network/set_filter_state/filter.ts';
import { SNI_CLUSTER_FILTER } from './filters.network/sni_cluster/filter.ts';
import { SNI_DYNAMIC_FORWARD_PROXY_FILTER } from './filters.network/sni_dynamic_forward_proxy/filter.ts';
import { DATADOG_TRACER } from './tracers/datadog/tracer.ts';
import { OPEN_TELEMETRY_TRACER } from './tracers/opentelemetry/tracer.ts';
import { ZIPKIN_TRACER } from './tracers/zipkin/tracer.ts';

export const HTTP_FILTERS: HttpFilterRegistry = {
  'filters.http.adaptive_concurrency': ADAPTIVE_CONCURRENCY_FILTER,
  'filters.http.api_key_auth': API_KEY_AUTH_FILTER,
  'filters.http.bandwidth_limit': BANDWIDTH_LIMIT_FILTER,
  'filters.http.basic_auth': BASIC_AUTH_FILTER,
  'filters.http.buffer': BUFFER_FILTER,
  'filters.http.cache': CACHE_FILTER,
  'filters.http.compressor': COMPRESSOR_FILTER,
  'filters.http.cors': CORS_FILTER,
  'filters.http.csrf': CSRF_FILTER,
  'filters.http.custom_response': CUSTOM_RESPONSE_FILTER,
  'filters.http.decompressor': DECOMPRESSOR_FILTER,
  'filters.http.dynamic_forward_proxy': DYNAMIC_FORWARD_PROXY_FILTER,
  'filters.http.ext_authz': EXT_AUTHZ_FILTER,
  'filters.http.fault': FAULT_FILTER,
  'filters.http.grpc_http1_bridge': GRPC_BRIDGE_FILTER,
  'filters.http.grpc_json_transcoder': GRPC_JSON_TRANSCODER_FILTER,
  'filters.http.grpc_stats': GRPC_STATS_FILTER,
  'filters.http.grpc_web': GRPC_WEB_FILTER,
  'filters.http.header_mutation': HEADER_MUTATION_FILTER,
  'filters.http.header_to_metadata': HEADER_TO_METADATA_FILTER,
  'filters.http.health_check': HEALTH_CHECK_FILTER,
  'filters.http.ip_tagging': IP_TAGGING_FILTER,
  'filters.http.jwt_authn': JWT_AUTHN_FILTER,
  'filters.http.local_ratelimit': LOCAL_RATE_LIMIT_FILTER,
  'filters.http.lua': LUA_FILTER,
  'filters.http.match_delegate': matchDelegate(() => HTTP_FILTERS),
  'filters.http.module': MODULE_FILTER,
  'filters.http.ratelimit': RATE_LIMIT_FILTER,
  'filters.http.rbac': RBAC_FILTER,
  'filters.http.set_filter_state': SET_FILTER_STATE_FILTER,
  'filters.http.on_demand': ON_DEMAND_FILTER,
  'filters.http.set_metadata': SET_METADATA_FILTER,
  'filters.http.stateful_session': STATEFUL_SESSION_FILTER,
  'filters.http.tap': TAP_FILTER,
};

export const NETWORK_FILTERS: NetworkFilterRegistry = {
  'filters.network.connection_limit': CONNECTION_LIMIT_FILTER,
  'filters.network.direct_response': DIRECT_RESPONSE_FILTER,
  'filters.network.echo': ECHO_FILTER,
  'filters.network.ext_authz': NETWORK_EXT_AUTHZ_FILTER,
  'filters.network.local_ratelimit': NETWORK_LOCAL_RATE_LIMIT_FILTER,
  'filters.network.ratelimit': NETWORK_RATE_LIMIT_FILTER,
  'filters.network.rbac': NETWORK_RBAC_FILTER,
  'filters.network.set_filter_state': NETWORK_SET_FILTER_STATE_FILTER,
  'filters.network.sni_cluster': SNI_CLUSTER_FILTER,
  'filters.network.sni_dynamic_forward_proxy': SNI_DYNAMIC_FORWARD_PROXY_FILTER,
  'filters.network.redis_proxy': REDIS_PROXY_FILTER,
};

export const TRACERS: TracerRegistry = {
  'tracers.datadog': DATADOG_TRACER,
  'tracers.opentelemetry': OPEN_TELEMETRY_TRACER,
  'tracers.zipkin': ZIPKIN_TRACER,
};

export const ACCESS_LOGGERS: AccessLoggerRegistry = {
  'access_loggers.http_grpc': HTTP_GRPC_LOGGER,
  'access_loggers.open_telemetry': OPEN_TELEMETRY_LOGGER,
  'access_loggers.tcp_grpc': TCP_GRPC_LOGGER,
};
