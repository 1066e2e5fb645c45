// HTTP options towards an upstream: the fields of Cluster itself, or the v3 message that replaces them
// under typed_extension_protocol_options.

import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Cluster, UpstreamHttpOptions } from './messages.ts';
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
  /** 0 for no limit. */
  readonly maxRequestsPerConnection: number;
  readonly enableTrailers: boolean;
}

export function convertUpstreamOptions(cluster: Cluster, at: string, conversion: Conversion): UpstreamOptions {
  const extension = findHttpOptions(cluster);
  if (extension !== undefined) checkReplacedFields(cluster, at, conversion.faults);
  const common = extension?.common_http_protocol_options ?? cluster.common_http_protocol_options;
  const http1 = extension?.explicit_http_config?.http_protocol_options ?? cluster.http_protocol_options;
  const limit = common?.max_requests_per_connection ?? null;
  if (limit !== null && cluster.max_requests_per_connection !== null) {
    const message = 'is set here and in the HTTP protocol options; only one of them may be';
    conversion.faults.error(`${at}.max_requests_per_connection`, message);
  }
  return {
    idleTimeoutMs: durationMsOr(common?.idle_timeout ?? null, DEFAULT_IDLE_TIMEOUT_MS),
    maxConnectionDurationMs: durationMsOr(common?.max_connection_duration ?? null, 0),
    maxRequestsPerConnection: valueOr(cluster.max_requests_per_connection ?? limit, 0),
    enableTrailers: http1?.enable_trailers ?? false,
  };
}

function findHttpOptions(cluster: Cluster): UpstreamHttpOptions | undefined {
  const byName = cluster.typed_extension_protocol_options;
  for (const name in byName) {
    const opened = openExtension(byName[name]!);
    if (opened?.typeName === HTTP_OPTIONS_TYPE) return opened.message as UpstreamHttpOptions;
  }
  return undefined;
}

function checkReplacedFields(cluster: Cluster, at: string, faults: FaultSink): void {
  for (const field of REPLACED_FIELDS) {
    if (cluster[field] === null) continue;
    faults.error(`${at}.${field}`, `has no place beside HttpProtocolOptions in typed_extension_protocol_options`);
  }
}
