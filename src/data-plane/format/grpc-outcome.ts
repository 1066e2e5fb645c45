// How a request ended in the terms of gRPC: what its trailers say, else its head, else what the status of HTTP stands for.

import { grpcStatusOfHttp, readGrpcStatus } from '../../base/grpc-status.ts';
import type { FormatFacts } from './facts.ts';

/** @returns undefined while there is no response; INVALID_GRPC_STATUS for a status that is none. */
export function grpcOutcome(facts: FormatFacts): number | undefined {
  const told = facts.grpcTrailer ?? facts.responseHeader('grpc-status');
  if (told !== undefined && told !== '') return readGrpcStatus(told);
  return facts.status === 0 ? undefined : grpcStatusOfHttp(facts.status);
}
