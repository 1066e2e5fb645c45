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
  return byUri === null ? undefined : { ...common, target: { kind: 'uri', uri: byUri.target_uri } };
}
