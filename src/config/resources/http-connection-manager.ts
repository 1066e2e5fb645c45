// HttpConnectionManager message → HttpConnectionManagerSettings.

import type {
  Http2Settings,
  HttpConnectionManagerSettings,
  HttpFilterSettings,
  NamedFilter,
  RouteTableSnapshot,
  ServerHeaderTransformation,
  TracingSettings,
  UpgradeSettings,
} from '../../snapshot/index.ts';
import {
  HttpConnectionManager_CodecType as CodecType,
  HttpConnectionManager_ServerHeaderTransformation as ServerHeader,
} from '../proto/generated/enums.ts';
import { convertAccessLogs, convertReportedLogs } from './access-log/access-log.ts';
import { convertHttpLogEntries } from './access-log/further-entries.ts';
import { convertConfigSource } from './config-source.ts';
import type { Conversion } from './conversion.ts';
import { convertDiscoveredFilter, HTTP_FILTERS } from './discovered-filter.ts';
import { convertEarlyHeaderEdits } from './early-header-edits.ts';
import { openExtension } from './extension.ts';
import { type ChainMember, checkTerminalFilter } from './filter-chain-rules.ts';
import { convertForwardedClientCert } from './forwarded-client-cert.ts';
import { convertForwarding } from './forwarding.ts';
import { convertHeadLimits } from './head-limits.ts';
import { convertHttp1Options } from './http1-options.ts';
import { convertHttp2Options } from './http2-options.ts';
import { convertLocalReplies } from './local-reply.ts';
import type { HttpConnectionManager, HttpFilter, Router, UuidRequestIdConfig } from './messages.ts';
import { convertNormalization } from './normalization.ts';
import { namedFilters, RouteFilters } from './route-filters.ts';
import { convertRouteTable } from './route-table.ts';
import { convertScopedRoutes } from './scoped-routes.ts';
import { convertTracing } from './tracing.ts';
import { durationMsOr, valueOr } from './units.ts';
import { UpgradeTypes } from './upgrades.ts';

const ROUTER = 'proxy.extensions.filters.http.router.v3.Router';
const UUID_REQUEST_ID = 'proxy.extensions.request_id.uuid.v3.UuidRequestIdConfig';
const SERVER_HEADER: Readonly<Record<number, ServerHeaderTransformation>> = {
  [ServerHeader.OVERWRITE]: 'overwrite',
  [ServerHeader.APPEND_IF_ABSENT]: 'append-if-absent',
  [ServerHeader.PASS_THROUGH]: 'pass-through',
};
const DEFAULT_SERVER_NAME = 'proxy';
/** What a filter is called of whom the configuration says only where it comes from. */
const UNKNOWN_FILTER = 'discovered';
const DEFAULT_IDLE_TIMEOUT_MS = 3_600_000;
const DEFAULT_STREAM_IDLE_TIMEOUT_MS = 300_000;
const DEFAULT_DRAIN_TIMEOUT_MS = 5000;
const DEFAULT_DELAYED_CLOSE_TIMEOUT_MS = 1000;
const NO_ROUTES: RouteTableSnapshot = { name: '', virtualHosts: [], ignoresPort: false, internalOnlyHeaders: [] };

/** @param at path of the filter's configuration, `…filters[0].typed_config`. */
export function convertHttpConnectionManager(
  message: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): HttpConnectionManagerSettings {
  const common = message.common_http_protocol_options;
  const streamIdleTimeoutMs = durationMsOr(message.stream_idle_timeout, DEFAULT_STREAM_IDLE_TIMEOUT_MS);
  const headLimits = convertHeadLimits(
    message.max_request_headers_kb,
    common?.max_headers_count ?? null,
    { kb: `${at}.max_request_headers_kb`, count: `${at}.common_http_protocol_options.max_headers_count` },
    conversion.faults,
  );
  return {
    kind: 'http-connection-manager',
    statPrefix: message.stat_prefix,
    accessLogs: convertAccessLogs(message.access_log, `${at}.access_log`, conversion),
    ...convertReportedLogs(message.access_log, `${at}.access_log`, conversion),
    furtherLogEntries: convertHttpLogEntries(message, at, conversion.faults),
    ...convertUpstreamLog(message, at, conversion),
    httpFilters: convertHttpFilters(message.http_filters, `${at}.http_filters`, conversion),
    upgrades: convertUpgrades(message, at, conversion),
    routeTable: convertRoutes(message, at, conversion),
    ...convertDiscoveredRoutes(message, at, conversion),
    ...convertScopes(message, at, conversion),
    serverName: message.server_name || DEFAULT_SERVER_NAME,
    serverHeader: SERVER_HEADER[message.server_header_transformation] ?? 'overwrite',
    via: message.via,
    useRemoteAddress: valueOr(message.use_remote_address, false),
    xffNumTrustedHops: message.xff_num_trusted_hops,
    skipXffAppend: message.skip_xff_append,
    generateRequestId: valueOr(message.generate_request_id, true),
    preserveExternalRequestId: message.preserve_external_request_id,
    idleTimeoutMs: durationMsOr(common?.idle_timeout ?? message.idle_timeout, DEFAULT_IDLE_TIMEOUT_MS),
    streamIdleTimeoutMs,
    requestTimeoutMs: durationMsOr(message.request_timeout, 0),
    requestHeadersTimeoutMs: durationMsOr(message.request_headers_timeout, 0),
    maxRequestHeadersBytes: headLimits.maxHeadBytes,
    maxHeadersCount: headLimits.maxFields,
    ...convertEarlyHeaderEdits(message, at, conversion),
    ...convertForwardedClientCert(message, at, conversion),
    ...(message.tracing === null ? {} : { tracing: convertRequestTracing(message, at, conversion) }),
    ...convertReplies(message, at, conversion),
    codec: message.codec_type === CodecType.HTTP1 ? 'http1' : message.codec_type === CodecType.HTTP2 ? 'http2' : 'auto',
    ...convertHttp1Options(
      message.http_protocol_options,
      valueOr(message.stream_error_on_invalid_http_message, false),
      `${at}.http_protocol_options`,
      conversion.faults,
    ),
    http2: convertHttp2(message, at, conversion),
    drainTimeoutMs: durationMsOr(message.drain_timeout, DEFAULT_DRAIN_TIMEOUT_MS),
    ...convertConnectionLife(message),
    maxStreamDurationMs: durationMsOr(common?.max_stream_duration ?? null, 0),
    streamFlushTimeoutMs: durationMsOr(message.stream_flush_timeout, streamIdleTimeoutMs),
    delayedCloseTimeoutMs: durationMsOr(message.delayed_close_timeout, DEFAULT_DELAYED_CLOSE_TIMEOUT_MS),
    ...convertProxyStatus(message, at, conversion),
    ...(message.append_local_overload ? { tellsOfOverload: true } : {}),
    proxiesInterim: message.proxy_100_continue,
    forwarding: convertForwarding(message, at, conversion),
    normalization: convertNormalization(message, at, conversion.faults),
    enableTrailers: message.http_protocol_options?.enable_trailers ?? false,
    suppressProxyHeaders: routerOf(message.http_filters)?.suppress_envoy_headers ?? false,
    respectsExpectedTimeout: routerOf(message.http_filters)?.respect_expected_rq_timeout ?? false,
    strictlyCheckedHeaders: (routerOf(message.http_filters)?.strict_check_headers ?? []).map((name) =>
      name.replace('x-envoy-', 'x-proxy-'),
    ),
  };
}

/** What it says of messages with a fault, the connection manager says for those options that do not. */
function convertHttp2(message: HttpConnectionManager, at: string, { faults }: Conversion): Http2Settings {
  const options = message.http2_protocol_options;
  const http2 = convertHttp2Options(options, `${at}.http2_protocol_options`, faults);
  const own = options?.override_stream_error_on_invalid_http_message;
  if (own || !valueOr(message.stream_error_on_invalid_http_message, false)) return http2;
  return { ...http2, isStreamErrorOnInvalidMessage: true };
}

/** The router may ask for spans of attempts, too. */
function convertRequestTracing(message: HttpConnectionManager, at: string, conversion: Conversion): TracingSettings {
  const tracing = convertTracing(message.tracing!, `${at}.tracing`, conversion);
  const hasUpstreamSpans = tracing.hasUpstreamSpans || (routerOf(message.http_filters)?.start_child_span ?? false);
  return { ...tracing, hasUpstreamSpans, ...convertRequestIds(message) };
}

function convertRequestIds(
  message: HttpConnectionManager,
): Partial<Pick<TracingSettings, 'packsReason' | 'drawsById'>> {
  const opened = openExtension(message.request_id_extension?.typed_config ?? null);
  if (opened?.typeName !== UUID_REQUEST_ID) return {};
  const { pack_trace_reason, use_request_id_for_trace_sampling } = opened.message as UuidRequestIdConfig;
  return { packsReason: valueOr(pack_trace_reason, true), drawsById: valueOr(use_request_id_for_trace_sampling, true) };
}

/** What names this proxy is a part of the header, so there must be something. */
function convertProxyStatus(
  message: HttpConnectionManager,
  at: string,
  { faults, localNode = '' }: Conversion,
): Pick<HttpConnectionManagerSettings, 'proxyStatus'> {
  const config = message.proxy_status_config;
  if (config === null) return {};
  let name = message.server_name || DEFAULT_SERVER_NAME;
  if (config.proxy_name === 'literal_proxy_name' && config.literal_proxy_name !== '') name = config.literal_proxy_name;
  if (config.proxy_name === 'use_node_id' && config.use_node_id) {
    name = localNode;
    if (name === '')
      faults.error(`${at}.proxy_status_config.use_node_id`, 'there is no node.id, and no --service-node, to name');
  }
  return {
    proxyStatus: {
      name,
      hasDetails: !config.remove_details,
      hasFlags: !config.remove_response_flags,
      recommendsStatus: config.set_recommended_response_code,
    },
  };
}

function convertConnectionLife(message: HttpConnectionManager): Pick<HttpConnectionManagerSettings, 'connectionLife'> {
  const common = message.common_http_protocol_options;
  const maxDurationMs = durationMsOr(common?.max_connection_duration ?? null, 0);
  const maxRequests = valueOr(common?.max_requests_per_connection ?? null, 0);
  if (maxDurationMs === 0 && maxRequests === 0) return {};
  return {
    connectionLife: { maxDurationMs, maxRequests, endsHttp1WithResponse: message.http1_safe_max_connection_duration },
  };
}

function convertReplies(
  message: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): Pick<HttpConnectionManagerSettings, 'localReplies'> {
  const config = message.local_reply_config;
  const localReplies =
    config === null ? undefined : convertLocalReplies(config, `${at}.local_reply_config`, conversion);
  return localReplies === undefined ? {} : { localReplies };
}

function convertRoutes(message: HttpConnectionManager, at: string, conversion: Conversion): RouteTableSnapshot {
  if (message.route_config === null) return NO_ROUTES;
  const filters = new RouteFilters(filtersOfAllChains(message), conversion);
  return convertRouteTable(message.route_config, `${at}.route_config`, true, filters, conversion);
}

/** Those of upgrades, too. */
function filtersOfAllChains({ http_filters, upgrade_configs }: HttpConnectionManager): readonly NamedFilter[] {
  return namedFilters([http_filters, ...upgrade_configs.map(({ filters }) => filters)].flat());
}

function convertDiscoveredRoutes(
  message: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): Pick<HttpConnectionManagerSettings, 'discoveredRoutes'> {
  const { rds } = message;
  const { faults, isOutbound = false } = conversion;
  if (rds === null) return {};
  if (rds.route_config_name === '') faults.error(`${at}.rds.route_config_name`, 'is required');
  if (rds.config_source === null) faults.error(`${at}.rds.config_source`, 'is required');
  const source = rds.config_source && convertConfigSource(rds.config_source, `${at}.rds.config_source`, conversion);
  if (!source) return {};
  return {
    discoveredRoutes: { name: rds.route_config_name, source, filters: filtersOfAllChains(message), isOutbound },
  };
}

function convertScopes(
  message: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): Pick<HttpConnectionManagerSettings, 'scopedRoutes'> {
  const { scoped_routes: scoped } = message;
  const scopedRoutes =
    scoped && convertScopedRoutes(scoped, `${at}.scoped_routes`, filtersOfAllChains(message), conversion);
  return scopedRoutes ? { scopedRoutes } : {};
}

function convertUpgrades(
  message: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): readonly UpgradeSettings[] {
  const isSuppressed = routerOf(message.http_filters)?.suppress_envoy_headers ?? false;
  const types = new UpgradeTypes(conversion.faults);
  return message.upgrade_configs.map(({ upgrade_type, enabled, filters }, index): UpgradeSettings => {
    const here = `${at}.upgrade_configs[${index}]`;
    const type = types.claim(upgrade_type, here);
    if (filters.length === 0) return { type, isEnabled: valueOr(enabled, true), httpFilters: null };
    // Requests and responses have one router, whatever filters stand before it.
    if ((routerOf(filters)?.suppress_envoy_headers ?? isSuppressed) !== isSuppressed) {
      conversion.faults.error(`${here}.filters`, 'suppress_envoy_headers must be as in http_filters');
    }
    const httpFilters = convertHttpFilters(filters, `${here}.filters`, conversion);
    return { type, isEnabled: valueOr(enabled, true), httpFilters };
  });
}

/** Where the router stands in the chain is where its log does. */
function convertUpstreamLog(
  { http_filters: filters }: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): Pick<HttpConnectionManagerSettings, 'upstreamLog'> {
  const router = routerOf(filters);
  if (router === undefined || router.upstream_log.length === 0) return {};
  const place = filters.findIndex(({ typed_config }) => openExtension(typed_config)?.typeName === ROUTER);
  const here = `${at}.http_filters[${place}].typed_config.upstream_log`;
  const { upstream_log: logs, upstream_log_options: options } = router;
  return {
    upstreamLog: {
      accessLogs: convertAccessLogs(logs, here, conversion),
      ...convertReportedLogs(logs, here, conversion),
      onConnected: options?.flush_upstream_log_on_upstream_stream ?? false,
      intervalMs: durationMsOr(options?.upstream_log_flush_interval ?? null, 0),
    },
  };
}

/** The settings of the router among the filters; undefined when there is none. */
function routerOf(filters: readonly HttpFilter[]): Router | undefined {
  for (const filter of filters) {
    const opened = openExtension(filter.typed_config);
    if (opened?.typeName === ROUTER) return opened.message as Router;
  }
  return undefined;
}

/** The filters before the router, in their order. */
function convertHttpFilters(
  filters: readonly HttpFilter[],
  at: string,
  conversion: Conversion,
): readonly HttpFilterSettings[] {
  const settings: HttpFilterSettings[] = [];
  const members: ChainMember[] = [];
  for (const [index, { name, typed_config, config_discovery, is_optional, disabled }] of filters.entries()) {
    if (config_discovery !== null) {
      const here = `${at}[${index}].config_discovery`;
      const discovered = convertDiscoveredFilter(name, config_discovery, here, conversion, HTTP_FILTERS);
      const filter = {
        name: UNKNOWN_FILTER,
        settings: null,
        configName: name,
        ...(disabled && { isDisabled: true }),
      };
      if (discovered !== undefined) settings.push({ ...filter, discovered });
      members.push({ name, isTerminal: false });
      continue;
    }
    const opened = openExtension(typed_config);
    const isRouter = opened?.typeName === ROUTER;
    const manifest = opened && conversion.httpFilters?.[opened.typeName];
    const here = `${at}[${index}].typed_config`;
    const converted = manifest?.convert(opened!.message, here, conversion, name, is_optional);
    if (converted !== undefined) {
      settings.push({ ...converted, configName: name, ...(disabled ? { isDisabled: true } : {}) });
    } else if (isRouter && disabled) {
      conversion.faults.error(`${at}[${index}].disabled`, 'the router ends the chain and cannot be disabled');
    }
    // An optional filter that this build lacks is left out: whatever it is, it ends nothing.
    const isKnown = isRouter || manifest !== undefined || is_optional;
    members.push({ name, isTerminal: isKnown ? isRouter : undefined });
  }
  checkTerminalFilter(members, at, 'the router', conversion.faults);
  return settings;
}
