// GrpcService messages, wherever an extension has one: which of their fields there are, and what is said with each call.

import type { Conversion, FaultSink, GrpcService } from '../config/index.ts';
import type { GrpcTarget } from './filters.http/grpc/target.ts';

/** Of main, which stat sinks speak through. */
/** As HTTP/2 has names of fields; those of gRPC itself are the library's. */
const METADATA_KEY = /^(?!grpc-)[0-9a-z_.-]+$/;
const METADATA_VALUE = /^[\x20-\x7e]*$/;

/** What is said with each call; names are in lower case. @param at path of the service. */
export function initialMetadata(
  service: GrpcService,
  at: string,
  faults: FaultSink,
): readonly { readonly key: string; readonly value: string }[] {
  return service.initial_metadata.map(({ key, value }, index) => {
    const name = key.toLowerCase();
    const place = `${at}.initial_metadata[${index}]`;
    if (!METADATA_KEY.test(name)) faults.error(`${place}.key`, `"${key}" is no name of metadata that can be set`);
    if (!METADATA_VALUE.test(value)) faults.error(`${place}.value`, 'has characters beyond printable ASCII');
    return { key: name, value };
  });
}

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
  return {
    cluster: target.cluster_name,
    authority: target.authority || target.cluster_name,
    timeoutMs,
    metadata: initialMetadata(service, at, conversion.faults).map(({ key, value }) => [key, value] as const),
  };
}
