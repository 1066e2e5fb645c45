// GrpcService messages → how main reaches the service.

import { type Conversion, durationMsOr, type GrpcService, initialMetadata } from '../../config/index.ts';
import type { GrpcServiceSettings } from './grpc/service-channel.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
/** @returns undefined where a fault says why. */
export function convertGrpcService(
  message: GrpcService | null,
  at: string,
  { clusters, faults }: Conversion,
): GrpcServiceSettings | undefined {
  // Without any, or without its target, the field rules have a fault.
  if (message === null) return undefined;
  const metadata = initialMetadata(message, at, faults);
  const common = { metadata, timeoutMs: durationMsOr(message.timeout, 0) || DEFAULT_TIMEOUT_MS };
  const { envoy_grpc: inCluster, google_grpc: byUri } = message;
  if (inCluster !== null) {
    clusters.checkReference(inCluster.cluster_name, `${at}.envoy_grpc.cluster_name`, faults);
    clusters.checkCleartext(inCluster.cluster_name, `${at}.envoy_grpc.cluster_name`, faults);
    const authority = inCluster.authority || inCluster.cluster_name;
    return { ...common, target: { kind: 'cluster', cluster: inCluster.cluster_name, authority } };
  }
  if (byUri === null) return undefined;
  const target = `${at}.google_grpc`;
  if ((byUri.channel_credentials?.ssl_credentials ?? null) !== null)
    faults.error(`${target}.channel_credentials.ssl_credentials`, 'stat sinks speak cleartext to gRPC services');
  if (byUri.call_credentials.length > 0) faults.error(`${target}.call_credentials`, 'stat sinks send no tokens');
  if (byUri.channel_args !== null) faults.warning(`${target}.channel_args`, 'does nothing in stat sinks');
  return { ...common, target: { kind: 'uri', uri: byUri.target_uri } };
}
