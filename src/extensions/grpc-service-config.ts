// GrpcService messages of filters.

import { clusterAuthority, isAuthority } from '../base/authority.ts';
import { type Conversion, convertOwnRetries, type GrpcService, initialMetadata } from '../config/index.ts';
import type { GrpcTarget } from './filters.http/grpc/target.ts';
import { GRPC_RETRIES } from './own-retries-config.ts';

/**
 * A service that filters ask, which has to be that of a cluster. @param timeoutMs of a call, in ms.
 * @returns undefined where it is none; a fault says so.
 */
export function convertGrpcTarget(
  service: GrpcService,
  at: string,
  timeoutMs: number,
  conversion: Conversion,
): GrpcTarget | undefined {
  const { envoy_grpc: target } = service;
  if (target === null) {
    conversion.faults.error(`${at}.google_grpc`, 'is for stat sinks; name a cluster in envoy_grpc');
    return undefined;
  }
  conversion.clusters.checkReference(target.cluster_name, `${at}.envoy_grpc.cluster_name`, conversion.faults);
  const { authority } = target;
  if (authority !== '' && !isAuthority(authority)) {
    conversion.faults.error(
      `${at}.envoy_grpc.authority`,
      `${JSON.stringify(authority)} is no host that a request can name`,
    );
  }
  const place = `${at}.envoy_grpc.retry_policy`;
  const retry = convertOwnRetries(target.retry_policy, GRPC_RETRIES, place, conversion.faults);
  return {
    ...(retry === null ? {} : { retry }),
    cluster: target.cluster_name,
    authority: authority || clusterAuthority(target.cluster_name),
    timeoutMs,
    metadata: initialMetadata(service, at, conversion.faults).map(({ key, value }) => [key, value] as const),
  };
}
