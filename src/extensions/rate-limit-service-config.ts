// RateLimitServiceConfig messages → how the service is reached that filters of requests and of connections ask.

import { clusterAuthority } from '../base/authority.ts';
import { type Conversion, durationMsOr, type MessageTypes } from '../config/index.ts';
import type { GrpcTarget, VersionedTarget } from './filters.http/grpc/target.ts';
import { convertGrpcTarget } from './grpc-service-config.ts';

const SERVICE = 'proxy.config.ratelimit.v3.RateLimitServiceConfig';
const DEFAULT_TIMEOUT_MS = 20;
/** Number of ApiVersion; a field rule refuses others. */
const V2 = 1;

type ServiceMessage = MessageTypes[typeof SERVICE];

interface AskingMessage {
  readonly rate_limit_service: ServiceMessage | null;
  readonly timeout: Parameters<typeof durationMsOr>[0];
}

/** That of the filter, else that of the bootstrap. @returns undefined where there is none, or it has faults, which say why. */
export function convertRateLimitService(
  { rate_limit_service: own, timeout }: AskingMessage,
  at: string,
  conversion: Conversion,
): VersionedTarget | undefined {
  const service = own ?? conversion.rateLimitService ?? null;
  const place = own === null ? 'rate_limit_service' : `${at}.rate_limit_service`;
  const timeoutMs = durationMsOr(timeout, DEFAULT_TIMEOUT_MS);
  const target = service === null ? undefined : targetOf(service, place, timeoutMs, conversion);
  if (target === undefined) {
    const isNamed = service !== null && (service.grpc_service !== null || service.cluster_name !== '');
    if (!isNamed) conversion.faults.error(`${at}.rate_limit_service`, 'names no service, and the bootstrap names none');
    return undefined;
  }
  return { ...target, generation: service!.transport_api_version === V2 ? 'v2' : 'v3' };
}

/** @returns undefined for one that is not named, or has faults. */
function targetOf(
  { grpc_service: service, cluster_name: cluster }: ServiceMessage,
  at: string,
  timeoutMs: number,
  conversion: Conversion,
): GrpcTarget | undefined {
  if (service !== null) return convertGrpcTarget(service, `${at}.grpc_service`, timeoutMs, conversion);
  if (cluster === '') return undefined;
  conversion.clusters.checkReference(cluster, `${at}.cluster_name`, conversion.faults);
  return { cluster, authority: clusterAuthority(cluster), timeoutMs, metadata: [] };
}
