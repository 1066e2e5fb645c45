// The head of a stream of messages to a gRPC service, as a request to a cluster.

import type { StreamRequest } from '../../../data-plane/index.ts';
import type { GrpcTarget } from './target.ts';

/** Of each request of gRPC. */
export const GRPC_FIELDS: readonly (readonly [name: string, value: string])[] = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
];

/** @param path of the method, with its slash. The stream has no time limit. */
export function streamRequest({ cluster, authority, metadata }: GrpcTarget, path: string): StreamRequest {
  return { cluster, path, host: authority, fields: [...GRPC_FIELDS, ...metadata] };
}
