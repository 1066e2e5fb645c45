// GrpcService messages of filters, access logs and tracers. Workers ask through clusters, as they do for requests.

import { clusterAuthority, isAuthority } from '../base/authority.ts';
import { type Conversion, convertOwnRetries, type GrpcService, initialMetadata } from '../config/index.ts';
import type { GrpcTarget } from './filters.http/grpc/target.ts';
import { GRPC_RETRIES } from './own-retries-config.ts';

type GoogleGrpc = NonNullable<GrpcService['google_grpc']>;

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
  const { envoy_grpc: target, google_grpc: outside } = service;
  if (target === null) {
    // Without any the field rules have a fault.
    if (outside !== null) conversion.faults.error(`${at}.google_grpc`, inCluster(outside));
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

/** Says what to write in its place. */
function inCluster({ target_uri: uri, channel_credentials: credentials }: GoogleGrpc): string {
  const isSecured = (credentials?.ssl_credentials ?? null) !== null;
  const speaks = isSecured ? 'HTTP/2 and TLS' : 'HTTP/2';
  return `is not supported here: say envoy_grpc with the cluster_name of a cluster with ${speaks} whose host is ${JSON.stringify(uri)}`;
}
