// What a Cluster message says of members that its connections and requests name → settings of both planes.

import type { OriginalDstDiscoverySettings, OriginalDstSettings } from '../../snapshot/index.ts';
import { discoveryTypeOf } from './discovery-type.ts';
import type { Cluster } from './messages.ts';
import { durationMsOr, valueOr } from './units.ts';

const DEFAULT_CLEANUP_INTERVAL_MS = 5000;
const DEFAULT_HEADER = 'x-proxy-original-dst-host';

export function convertOriginalDstDiscovery({ cleanup_interval }: Cluster): OriginalDstDiscoverySettings {
  return { kind: 'original-dst', cleanupIntervalMs: durationMsOr(cleanup_interval, DEFAULT_CLEANUP_INTERVAL_MS) };
}

/** @returns null for clusters of other types. */
export function convertOriginalDst(message: Cluster): OriginalDstSettings | null {
  if (discoveryTypeOf(message) !== 'ORIGINAL_DST') return null;
  const config = message.original_dst_lb_config;
  const name = config?.http_header_name.toLowerCase() || DEFAULT_HEADER;
  const key = config?.metadata_key ?? null;
  return {
    header: config?.use_http_header ? name : null,
    port: valueOr(config?.upstream_port_override, 0),
    ...(key === null ? {} : { metadata: { namespace: key.key, path: key.path.map((segment) => segment.key) } }),
  };
}
