// The health checks of a Cluster message → HealthCheckSettings, and those fields of endpoints that concern checks.

import type {
  CheckHeaders,
  CheckIntervals,
  EndpointCheckSettings,
  HealthCheckSettings,
  HttpProbeSettings,
  ProbeSettings,
  ServerCredentials,
  StatusRange,
} from '../../snapshot/index.ts';
import { CodecClientType, RequestMethod } from '../proto/generated/enums.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { quote } from '../source/node.ts';
import { checkLogPath } from './access-log/log-path.ts';
import { convertAddress } from './address.ts';
import type { Conversion } from './conversion.ts';
import { enumName } from './enum-name.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertHeaderEdits } from './header-edits.ts';
import type {
  Cluster,
  CustomHealthCheck,
  Endpoint,
  GrpcHealthCheck,
  HealthCheckEventFileSink,
  HealthCheckMessage,
  HttpHealthCheck,
  Payload,
  TcpHealthCheck,
} from './messages.ts';
import { convertStringMatcher } from './string-match.ts';
import { structToJson } from './struct.ts';
import { durationMsOr, valueOr } from './units.ts';
import { speaksHttp2 } from './upstream-options.ts';
import { isSecured } from './upstream-transport.ts';

const DEFAULT_NO_TRAFFIC_MS = 60_000;
const DEFAULT_RESPONSE_BUFFER_BYTES = 1024;
/** Looked at even when the configuration sets no bound. */
const MAX_RESPONSE_BUFFER_BYTES = 1024 * 1024;
const OK_ONLY: readonly StatusRange[] = [{ start: 200, end: 201 }];
const LOWEST_STATUS = 100;
const STATUSES_END = 600;
const REDIS_CHECKER = 'proxy.extensions.health_checkers.redis.v3.Redis';
const FILE_SINK = 'proxy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink';
/** What would let a name end the line that it is written into. */
const LINE_BREAKERS = /[\r\n\0]/;
/** Of the metadata that transport socket matches go by. */
const MATCH_NAMESPACE = 'envoy.transport_socket_match';
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** @returns undefined for a cluster whose members are not checked, and for one whose checks are refused. */
export function convertHealthCheck(
  cluster: Cluster,
  credentials: ServerCredentials | undefined,
  at: string,
  conversion: Conversion,
): HealthCheckSettings | undefined {
  const { faults } = conversion;
  const [message, second] = cluster.health_checks;
  if (message === undefined) return undefined;
  if (second !== undefined) faults.error(`${at}.health_checks[1]`, 'a cluster can have one health check only');
  const checkAt = `${at}.health_checks[0]`;
  const probe = convertProbe(message, cluster.name, credentials, checkAt, conversion);
  if (probe?.kind === 'grpc' && !speaksHttp2(cluster, at)) {
    faults.error(`${checkAt}.grpc_health_check`, `${cluster.name} cluster must support HTTP/2 for gRPC healthchecking`);
  }
  const isPlain = !isSecured(cluster);
  checkThreshold(message.unhealthy_threshold, `${checkAt}.unhealthy_threshold`, faults);
  checkThreshold(message.healthy_threshold, `${checkAt}.healthy_threshold`, faults);
  // The support table refuses the other kinds of checks, the field rules a check of none.
  if (probe === undefined) return undefined;
  return {
    probe,
    timeoutMs: durationMsOr(message.timeout, 0),
    intervals: convertIntervals(message),
    unhealthyThreshold: Math.max(1, valueOr(message.unhealthy_threshold, 1)),
    healthyThreshold: Math.max(1, valueOr(message.healthy_threshold, 1)),
    reusesConnection: valueOr(message.reuse_connection, true),
    ...convertTransport(message, isPlain, cluster.transport_socket_matches.length === 0, checkAt, faults),
    port: convertPort(message, checkAt, faults),
    eventLogPaths: convertEventLogs(message, checkAt, conversion),
    alwaysLogsFailures: message.always_log_health_check_failures,
    alwaysLogsSuccess: message.always_log_health_check_success,
    excludesNewHosts: cluster.common_lb_config?.ignore_new_hosts_until_first_hc ?? false,
    removesPassingHosts: cluster.ignore_health_on_host_removal,
  };
}

/** How checks are secured where it is not as traffic is. */
function convertTransport(
  { tls_options: tls, transport_socket_match_criteria: criteria }: HealthCheckMessage,
  isPlain: boolean,
  hasNoMatches: boolean,
  at: string,
  faults: FaultSink,
): Pick<HealthCheckSettings, 'alpnProtocols' | 'transportMetadata'> {
  if (tls !== null && isPlain) faults.warning(`${at}.tls_options`, 'no connection of this cluster is secured');
  if (criteria !== null && hasNoMatches) {
    faults.warning(`${at}.transport_socket_match_criteria`, 'there are no transport_socket_matches to choose from');
  }
  return {
    ...(tls !== null && tls.alpn_protocols.length > 0 && { alpnProtocols: tls.alpn_protocols }),
    ...(criteria && { transportMetadata: { [MATCH_NAMESPACE]: structToJson(criteria) } }),
  };
}

/** @returns undefined when the endpoint wants nothing of its own. */
export function convertEndpointCheck(
  { health_check_config: message }: Endpoint,
  at: string,
  faults: FaultSink,
): EndpointCheckSettings | undefined {
  if (message === null) return undefined;
  const address =
    message.address === null
      ? undefined
      : convertAddress(message.address, `${at}.health_check_config.address`, 'health-check', faults);
  const { port_value: port, hostname, disable_active_health_check: isDisabled } = message;
  return { address, port, hostname, isDisabled };
}

function convertIntervals(message: HealthCheckMessage): CheckIntervals {
  const healthyMs = durationMsOr(message.interval, 0);
  const unhealthyMs = durationMsOr(message.unhealthy_interval, healthyMs);
  const noTrafficMs = durationMsOr(message.no_traffic_interval, DEFAULT_NO_TRAFFIC_MS);
  return {
    initialJitterMs: durationMsOr(message.initial_jitter, 0),
    healthyMs,
    healthyEdgeMs: durationMsOr(message.healthy_edge_interval, healthyMs),
    unhealthyMs,
    unhealthyEdgeMs: durationMsOr(message.unhealthy_edge_interval, unhealthyMs),
    noTrafficMs,
    noTrafficHealthyMs: durationMsOr(message.no_traffic_healthy_interval, noTrafficMs),
    jitterMs: durationMsOr(message.interval_jitter, 0),
    jitterPercent: message.interval_jitter_percent,
  };
}

function convertEventLogs(message: HealthCheckMessage, at: string, conversion: Conversion): readonly string[] {
  const paths = new Set<string>();
  const add = (path: string, pathAt: string): void => {
    checkLogPath(path, pathAt, conversion, conversion.faults);
    if (path !== '') paths.add(path);
  };
  add(message.event_log_path, `${at}.event_log_path`);
  for (const [index, { typed_config }] of message.event_logger.entries()) {
    const opened = openExtension(typed_config);
    // The support table refuses other types.
    if (opened?.typeName !== FILE_SINK) continue;
    const { event_log_path } = opened.message as HealthCheckEventFileSink;
    add(event_log_path, `${at}.event_logger[${index}].typed_config.event_log_path`);
  }
  return [...paths];
}

const MAX_PORT = 65_535;

function convertPort(message: HealthCheckMessage, at: string, faults: FaultSink): number {
  const port = valueOr(message.alt_port, 0);
  if (port > MAX_PORT) faults.error(`${at}.alt_port`, `${port} exceeds the limit ${MAX_PORT}`);
  return port;
}

function checkThreshold(threshold: { readonly value: number } | null, at: string, faults: FaultSink): void {
  if (threshold?.value === 0) faults.error(at, 'must be at least 1');
}

function convertProbe(
  message: HealthCheckMessage,
  clusterName: string,
  credentials: ServerCredentials | undefined,
  at: string,
  conversion: Conversion,
): ProbeSettings | undefined {
  const { http_health_check: http, tcp_health_check: tcp, grpc_health_check: grpc } = message;
  if (message.custom_health_check !== null) return convertCustom(message.custom_health_check, credentials);
  if (grpc !== null) return convertGrpc(grpc, clusterName, `${at}.grpc_health_check`, conversion);
  if (tcp !== null) return convertTcp(tcp, `${at}.tcp_health_check`, conversion.faults);
  return http === null ? undefined : convertHttp(http, clusterName, `${at}.http_health_check`, conversion);
}

/** The support table refuses other checkers. */
function convertCustom(
  { typed_config }: CustomHealthCheck,
  credentials: ServerCredentials | undefined,
): ProbeSettings | undefined {
  const opened = openExtension(typed_config);
  if (opened?.typeName !== REDIS_CHECKER) return undefined;
  const { key } = opened.message as MessageTypes[typeof REDIS_CHECKER];
  return { kind: 'redis', key, ...(credentials && { credentials }) };
}

function convertTcp(message: TcpHealthCheck, at: string, faults: FaultSink): ProbeSettings {
  return {
    kind: 'tcp',
    send: message.send === null ? Buffer.alloc(0) : convertPayload(message.send, `${at}.send`, faults),
    receive: convertPayloads(message.receive, `${at}.receive`, faults),
  };
}

function convertGrpc(
  { service_name: serviceName, authority, initial_metadata }: GrpcHealthCheck,
  clusterName: string,
  at: string,
  conversion: Conversion,
): ProbeSettings {
  checkAuthority(authority, clusterName, `${at}.authority`, conversion.faults);
  const edits = { request_headers_to_add: initial_metadata, request_headers_to_remove: [] };
  return {
    kind: 'grpc',
    serviceName,
    authority: authority || clusterName,
    ...convertHeaders(edits, at, 'initial_metadata', conversion),
  };
}

/** A field rule speaks of the field; names of clusters may be anything. */
function checkAuthority(authority: string, clusterName: string, at: string, faults: FaultSink): void {
  if (authority !== '' || !LINE_BREAKERS.test(clusterName)) return;
  faults.error(at, `is needed: ${quote(clusterName)}, the name of the cluster, cannot be a Host header`);
}

function convertHttp(
  message: HttpHealthCheck,
  clusterName: string,
  at: string,
  conversion: Conversion,
): HttpProbeSettings {
  const { faults } = conversion;
  const named = RequestMethod.METHOD_UNSPECIFIED === message.method ? 'GET' : enumName(RequestMethod, message.method);
  const method = named as HttpProbeSettings['method'];
  // A field rule speaks of an empty one.
  if (!/^[!-~]*$/.test(message.path)) faults.error(`${at}.path`, `${quote(message.path)} cannot be a request target`);
  checkAuthority(message.host, clusterName, `${at}.host`, faults);
  if (message.send !== null && !METHODS_WITH_BODY.has(method)) {
    faults.error(`${at}.send`, `a ${method} request has no body`);
  }
  const bufferBytes = int64ToNumber(message.response_buffer_size?.value ?? DEFAULT_RESPONSE_BUFFER_BYTES);
  const expected = convertStatuses(message.expected_statuses, `${at}.expected_statuses`, faults);
  return {
    kind: 'http',
    ...((message.use_http2 || message.codec_client_type === CodecClientType.HTTP2) && { speaksHttp2: true }),
    method,
    path: message.path,
    authority: message.host || clusterName,
    body: message.send === null ? Buffer.alloc(0) : convertPayload(message.send, `${at}.send`, faults),
    ...convertHeaders(message, at, 'request_headers_to_add', conversion),
    expectedStatuses: expected.length === 0 ? OK_ONLY : expected,
    retriableStatuses: convertStatuses(message.retriable_statuses, `${at}.retriable_statuses`, faults),
    receive: convertPayloads(message.receive, `${at}.receive`, faults),
    responseBufferBytes:
      bufferBytes === 0 ? MAX_RESPONSE_BUFFER_BYTES : Math.min(bufferBytes, MAX_RESPONSE_BUFFER_BYTES),
    serviceName: convertServiceName(message, at, faults),
  };
}

function convertServiceName(message: HttpHealthCheck, at: string, faults: FaultSink): HttpProbeSettings['serviceName'] {
  if (message.service_name_matcher !== null) {
    if (message.service_name !== '') faults.warning(`${at}.service_name`, 'ignored beside service_name_matcher');
    return convertStringMatcher(message.service_name_matcher, `${at}.service_name_matcher`, faults);
  }
  if (message.service_name === '') return undefined;
  return { kind: 'prefix', value: message.service_name, ignoresCase: false };
}

/** @param field that the first of them stand in. */
function convertHeaders(
  message: Pick<HttpHealthCheck, 'request_headers_to_add' | 'request_headers_to_remove'>,
  at: string,
  field: 'request_headers_to_add' | 'initial_metadata',
  conversion: Conversion,
): CheckHeaders {
  const { request_headers_to_add, request_headers_to_remove } = message;
  const none = { response_headers_to_add: [], response_headers_to_remove: [] };
  const { request } = convertHeaderEdits(
    { request_headers_to_add, request_headers_to_remove, ...none },
    at,
    conversion,
  );
  const headersToAdd = (request?.add ?? []).map(({ name, value, action }) => {
    if (value.some((segment) => typeof segment !== 'string')) {
      conversion.faults.error(`${at}.${field}`, `${quote(name)} cannot hold commands: a check has no client`);
    }
    return { name, value: value.join(''), appends: action === 'append' };
  });
  return { headersToAdd, headersToRemove: request?.remove ?? [] };
}

function convertStatuses(
  ranges: HttpHealthCheck['expected_statuses'],
  at: string,
  faults: FaultSink,
): readonly StatusRange[] {
  return ranges.map((range, index) => {
    const [start, end] = [int64ToNumber(range.start), int64ToNumber(range.end)];
    const text = `[${start}, ${end})`;
    if (start >= end) faults.error(`${at}[${index}]`, `${text} is empty: the end does not belong to the range`);
    else if (start < LOWEST_STATUS || end > STATUSES_END) {
      faults.error(`${at}[${index}]`, `${text} leaves the range of statuses, [${LOWEST_STATUS}, ${STATUSES_END})`);
    }
    return { start, end };
  });
}

function convertPayloads(payloads: readonly Payload[], at: string, faults: FaultSink): readonly Buffer[] {
  return payloads.map((payload, index) => convertPayload(payload, `${at}[${index}]`, faults));
}

/** `text` is hexadecimal, `binary` the bytes themselves. */
function convertPayload(payload: Payload, at: string, faults: FaultSink): Buffer {
  if (payload.payload !== 'text') return Buffer.from(payload.binary);
  const { text } = payload;
  if (/^([0-9a-f]{2})+$/i.test(text)) return Buffer.from(text, 'hex');
  // An empty text has broken a field rule.
  if (text !== '') faults.error(`${at}.text`, `invalid hex string ${quote(text)}`);
  return Buffer.alloc(0);
}
