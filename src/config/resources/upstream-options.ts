// HTTP options towards an upstream: the fields of Cluster itself, or the v3 message that replaces them
// under typed_extension_protocol_options.

import type { MirrorPolicy, RequestForm, ResponseHeadLimits, RetrySettings } from '../../snapshot/index.ts';
import { entryPath, fieldPath } from '../source/field-path.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertHeadLimits } from './head-limits.ts';
import type {
  Cluster,
  Http1ProtocolOptions,
  HttpProtocolOptions,
  UpstreamHttpOptions,
  UpstreamHttpProtocolOptions,
} from './messages.ts';
import { convertMirrorPolicies } from './mirror-policy.ts';
import { convertRetryPolicy } from './retry-policy.ts';
import { durationMsOr, valueOr } from './units.ts';

const HTTP_OPTIONS_TYPE = 'proxy.extensions.upstreams.http.v3.HttpProtocolOptions';
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
  const http1 = extension?.explicit_http_config?.http_protocol_options ?? cluster.http_protocol_options;
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
