// HTTP options towards an upstream: the fields of Cluster itself, or the v3 message that replaces them
// under typed_extension_protocol_options.

import type {
  Http2Settings,
  MirrorPolicy,
  RequestForm,
  ResponseHeadLimits,
  RetrySettings,
  UpstreamHttp2,
} from '../../snapshot/index.ts';
import { Cluster_ClusterProtocolSelection as ClusterProtocolSelection } from '../proto/generated/enums.ts';
import { entryPath, fieldPath } from '../source/field-path.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertHeadLimits } from './head-limits.ts';
import { convertHttp2Options } from './http2-options.ts';
import type {
  Cluster,
  Http1ProtocolOptions,
  Http2ProtocolOptions,
  HttpProtocolOptions,
  UpstreamHttpOptions,
  UpstreamHttpProtocolOptions,
} from './messages.ts';
import { convertMirrorPolicies } from './mirror-policy.ts';
import { convertRetryPolicy } from './retry-policy.ts';
import { durationMsOr, valueOr } from './units.ts';
import { isSecuredThroughout } from './upstream-transport.ts';

const HTTP_OPTIONS_TYPE = 'proxy.extensions.upstreams.http.v3.HttpProtocolOptions';
const DEFAULT_BUFFER_LIMIT_BYTES = 1024 * 1024;
const LEAST_WINDOW_BYTES = 65_535;
/** Its number among HTTP/2's settings. */
const INITIAL_WINDOW_SIZE = 4;
const DEFAULT_IDLE_TIMEOUT_MS = 3_600_000;

/** Fields of Cluster that the message replaces; both at once would leave open which one counts. */
const REPLACED_FIELDS = [
  'http_protocol_options',
  'http2_protocol_options',
  'common_http_protocol_options',
  'upstream_http_protocol_options',
] as const satisfies readonly (keyof Cluster)[];

export interface UpstreamOptions {
  readonly idleTimeoutMs: number;
  /** 0 for no limit. */
  readonly maxConnectionDurationMs: number;
  readonly maxStreamDurationMs?: number;
  /** 0 for no limit. */
  readonly maxRequestsPerConnection: number;
  readonly enableTrailers: boolean;
  readonly http2?: UpstreamHttp2;
  readonly requestForm?: RequestForm;
  readonly responseHeadLimits?: ResponseHeadLimits;
  readonly retry: RetrySettings | null;
  readonly mirrors: readonly MirrorPolicy[] | null;
}

export function convertUpstreamOptions(cluster: Cluster, at: string, conversion: Conversion): UpstreamOptions {
  const found = findHttpOptions(cluster, at);
  const extension = found?.message;
  if (extension !== undefined) checkReplacedFields(cluster, at, conversion.faults);
  const common = extension?.common_http_protocol_options ?? cluster.common_http_protocol_options;
  const commonAt = `${extension?.common_http_protocol_options ? found!.at : at}.common_http_protocol_options`;
  const protocol = protocolsOf(cluster, at);
  const { http1 } = protocol;
  const limit = common?.max_requests_per_connection ?? null;
  if (limit !== null && cluster.max_requests_per_connection !== null) {
    const message = 'is set here and in the HTTP protocol options; only one of them may be';
    conversion.faults.error(`${at}.max_requests_per_connection`, message);
  }
  return {
    idleTimeoutMs: durationMsOr(common?.idle_timeout ?? null, DEFAULT_IDLE_TIMEOUT_MS),
    maxConnectionDurationMs: durationMsOr(common?.max_connection_duration ?? null, 0),
    ...maxStreamDuration(common),
    maxRequestsPerConnection: valueOr(cluster.max_requests_per_connection ?? limit, 0),
    enableTrailers: http1?.enable_trailers ?? false,
    ...http2Options(protocol, cluster, conversion.faults),
    ...requestForm(http1),
    ...responseHeadLimits(common, http1, commonAt, conversion.faults),
    retry: convertRetryPolicy(extension?.retry_policy ?? null, `${found?.at}.retry_policy`, conversion.faults),
    mirrors: convertMirrors(found, conversion),
  };
}

/** What holds of TLS to the cluster, and where it stands. */
export function upstreamHttpOptions(
  cluster: Cluster,
  at: string,
): { readonly message: UpstreamHttpProtocolOptions; readonly at: string } | undefined {
  const found = findHttpOptions(cluster, at);
  const own = found?.message.upstream_http_protocol_options ?? null;
  const message = own ?? cluster.upstream_http_protocol_options;
  return message === null
    ? undefined
    : { message, at: `${own === null ? at : found!.at}.upstream_http_protocol_options` };
}

/** Which protocols are spoken, with the options of each; null for their defaults. */
interface Protocols {
  readonly http1: Http1ProtocolOptions | null;
  /** Null where HTTP/2 is not spoken. */
  readonly use: UpstreamHttp2['use'] | null;
  readonly http2: Http2ProtocolOptions | null;
  /** Path of the options of HTTP/2. */
  readonly at: string;
}

/** Its hosts are spoken to in HTTP/2, at times at least. */
export function speaksHttp2(cluster: Cluster, at: string): boolean {
  return protocolsOf(cluster, at).use !== null;
}

function protocolsOf(cluster: Cluster, at: string): Protocols {
  const found = findHttpOptions(cluster, at);
  return found === undefined ? ofCluster(cluster, at) : ofExtension(found.message, found.at);
}

function ofCluster(cluster: Cluster, at: string): Protocols {
  const { http_protocol_options: http1, http2_protocol_options: http2 } = cluster;
  const followsClients = cluster.protocol_selection === ClusterProtocolSelection.USE_DOWNSTREAM_PROTOCOL;
  const use = followsClients ? 'like-client' : http2 === null ? null : 'always';
  return { http1, use, http2, at: `${at}.http2_protocol_options` };
}

interface OptionsOfBoth {
  readonly http_protocol_options: Http1ProtocolOptions | null;
  readonly http2_protocol_options: Http2ProtocolOptions | null;
}

function ofExtension(
  { explicit_http_config: explicit, use_downstream_protocol_config: like, auto_config: auto }: UpstreamHttpOptions,
  at: string,
): Protocols {
  const of = (options: OptionsOfBoth | null, use: Protocols['use'], field: keyof UpstreamHttpOptions): Protocols => ({
    http1: options?.http_protocol_options ?? null,
    use,
    http2: options?.http2_protocol_options ?? null,
    at: `${at}.${field}.http2_protocol_options`,
  });
  if (auto !== null) return of(auto, 'by-alpn', 'auto_config');
  if (like !== null) return of(like, 'like-client', 'use_downstream_protocol_config');
  return of(explicit, (explicit?.http2_protocol_options ?? null) === null ? null : 'always', 'explicit_http_config');
}

function http2Options(
  { use, http2, at }: Protocols,
  cluster: Cluster,
  faults: FaultSink,
): Pick<UpstreamOptions, 'http2'> {
  if (use === null) return {};
  if (use === 'by-alpn' && !isSecuredThroughout(cluster)) {
    const message = 'needs TLS, by which hosts choose their protocol, in each transport socket of the cluster';
    faults.error(at.slice(0, at.lastIndexOf('.')), message);
  }
  const settings = convertHttp2Options(http2, at, faults);
  const isWindowSaid = http2 !== null && saysWindow(http2);
  return { http2: { settings: isWindowSaid ? settings : withWindow(settings, cluster), use } };
}

function saysWindow(http2: Http2ProtocolOptions): boolean {
  const isCustom = http2.custom_settings_parameters.some(({ identifier }) => identifier?.value === INITIAL_WINDOW_SIZE);
  return isCustom || http2.initial_stream_window_size !== null;
}

/** What a slow client leaves unread waits here: no more of it than may wait otherwise, unless somebody asks for more. */
function withWindow(settings: Http2Settings, cluster: Cluster): Http2Settings {
  const limitBytes = valueOr(cluster.per_connection_buffer_limit_bytes, DEFAULT_BUFFER_LIMIT_BYTES);
  const streamWindowBytes = Math.min(settings.streamWindowBytes, Math.max(LEAST_WINDOW_BYTES, limitBytes));
  return { ...settings, streamWindowBytes };
}

function maxStreamDuration(common: HttpProtocolOptions | null): Pick<UpstreamOptions, 'maxStreamDurationMs'> {
  const maxStreamDurationMs = durationMsOr(common?.max_stream_duration ?? null, 0);
  return maxStreamDurationMs === 0 ? {} : { maxStreamDurationMs };
}

function requestForm(http1: Http1ProtocolOptions | null | undefined): Pick<UpstreamOptions, 'requestForm'> {
  const hasFullUrl = http1?.send_fully_qualified_url ?? false;
  const hasProperCase = (http1?.header_key_format?.proper_case_words ?? null) !== null;
  return hasFullUrl || hasProperCase ? { requestForm: { hasFullUrl, hasProperCase } } : {};
}

function responseHeadLimits(
  common: HttpProtocolOptions | null,
  http1: Http1ProtocolOptions | null | undefined,
  at: string,
  faults: FaultSink,
): Pick<UpstreamOptions, 'responseHeadLimits'> {
  const maxKb = common?.max_response_headers_kb ?? null;
  const maxCount = common?.max_headers_count ?? null;
  const takesChunkedLength = http1?.allow_chunked_length ?? false;
  if (maxKb === null && maxCount === null && !takesChunkedLength) return {};
  const paths = { kb: `${at}.max_response_headers_kb`, count: `${at}.max_headers_count` };
  const limits = convertHeadLimits(maxKb, maxCount, paths, faults);
  return { responseHeadLimits: takesChunkedLength ? { ...limits, takesChunkedLength } : limits };
}

/** @returns null where routes have their own. */
function convertMirrors(found: FoundOptions | undefined, conversion: Conversion): UpstreamOptions['mirrors'] {
  if (found === undefined || found.message.request_mirror_policies.length === 0) return null;
  const { at, message } = found;
  return convertMirrorPolicies(message.request_mirror_policies, `${at}.request_mirror_policies`, true, conversion);
}

interface FoundOptions {
  readonly message: UpstreamHttpOptions;
  readonly at: string;
}

function findHttpOptions(cluster: Cluster, at: string): FoundOptions | undefined {
  const byName = cluster.typed_extension_protocol_options;
  for (const name in byName) {
    const opened = openExtension(byName[name]!);
    if (opened?.typeName !== HTTP_OPTIONS_TYPE) continue;
    return {
      message: opened.message as UpstreamHttpOptions,
      at: entryPath(fieldPath(at, 'typed_extension_protocol_options'), name),
    };
  }
  return undefined;
}

/** What requests to the cluster are hashed by, whatever their routes and its policy say of it. */
export function clusterHashPolicies(
  cluster: Cluster,
  at: string,
): {
  readonly messages: UpstreamHttpOptions['hash_policy'];
  readonly at: string;
} {
  const found = findHttpOptions(cluster, at);
  return { messages: found?.message.hash_policy ?? [], at: `${found?.at}.hash_policy` };
}

function checkReplacedFields(cluster: Cluster, at: string, faults: FaultSink): void {
  for (const field of REPLACED_FIELDS) {
    if (cluster[field] === null) continue;
    faults.error(`${at}.${field}`, `has no place beside HttpProtocolOptions in typed_extension_protocol_options`);
  }
}
