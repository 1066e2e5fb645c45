// The time that a gRPC request gives itself, on routes that respect it: `grpc-timeout: 250m`.

import type { GrpcTimeoutSettings } from '../../snapshot/index.ts';
import { HEADER_ID, type RequestHead } from '../../wasm/http1.ts';

const GRPC_TIMEOUT = HEADER_ID['grpc-timeout'];

const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
/** More digits there may not be. */
const MAX_VALUE = 99_999_999;

/** The request gives itself some time. */
export function namesGrpcTimeout(head: RequestHead): boolean {
  return head.has(GRPC_TIMEOUT) && TIMEOUT.test(head.header(GRPC_TIMEOUT)!);
}

/** For the whole response; 0 for any time. */
export function grpcTimeoutMs(head: RequestHead, { maxMs, offsetMs }: GrpcTimeoutSettings): number {
  const ownMs = readTimeout(head.header(GRPC_TIMEOUT));
  // What is left must be some time, since 0 would be any.
  const ms = offsetMs < ownMs ? ownMs - offsetMs : ownMs;
  if (maxMs === 0) return ms;
  return ms === 0 ? maxMs : Math.min(ms, maxMs);
}

/**
 * For the whole stream of a request that names a time, 1 or more. Other than with a limit of the response, the bound counts
 * first, and where the offset leaves nothing the stream is over at once.
 */
export function grpcStreamDurationMs(head: RequestHead, { maxMs, offsetMs }: GrpcTimeoutSettings): number {
  const ownMs = readTimeout(head.header(GRPC_TIMEOUT));
  const boundedMs = maxMs === 0 ? ownMs : Math.min(ownMs, maxMs);
  return Math.max(1, boundedMs - offsetMs);
}

/** Tells the upstream of no time. */
export function dropGrpcTimeout(head: RequestHead): void {
  head.dropKnown(GRPC_TIMEOUT);
}

/** Tells the upstream how long it may take, in the request's own words. */
export function writeGrpcTimeout(head: RequestHead, ms: number): void {
  dropGrpcTimeout(head);
  head.append('grpc-timeout', grpcTimeoutText(ms));
}

/** As the header has it: to the second where milliseconds had too many digits. */
export function grpcTimeoutText(ms: number): string {
  return ms <= MAX_VALUE ? `${ms}m` : `${Math.min(MAX_VALUE, Math.trunc(ms / 1000))}S`;
}

/** Whole milliseconds, 1 or more; 0 for none. */
function readTimeout(text: string | undefined): number {
  const match = text === undefined ? null : TIMEOUT.exec(text);
  return match === null ? 0 : Math.ceil(Number(match[1]) * UNIT_MS[match[2]!]!);
}
