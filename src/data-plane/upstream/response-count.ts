// Where the status of an upstream's response is counted.

import { httpStatusOfGrpc, readGrpcStatus } from '../../base/grpc-status.ts';
import { CLUSTER_STATS, HOST_STATS, HOST_TIME_STATS } from '../../stats/index.ts';
import { HEADER_ID, type ResponseHead } from '../../wasm/http1.ts';
import type { Trailers } from '../http/trailers.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { Cluster } from './cluster.ts';
import type { Host } from './host.ts';

const { upstream_rq_completed, upstream_rq_time } = CLUSTER_STATS.index;
const { rq_error, rq_success } = HOST_STATS.index;
const GRPC_STATUS = HEADER_ID['grpc-status'];
const UPSTREAM_CANARY = HEADER_ID['x-proxy-upstream-canary'];

/** Whose response it is. */
export interface CountedRequest {
  /** Its origin. */
  readonly isInternal: boolean;
  /** Where it is counted beside its cluster; null for nowhere. */
  readonly tally: { countStatus(status: number): void; recordTime(elapsedMs: number): void } | null;
}

/** What the head says of the host in HTTP's terms, where a gRPC status stands in it; undefined where none does. */
export function grpcHeadStatus(head: ResponseHead): number | undefined {
  const status = head.header(GRPC_STATUS);
  return status === undefined ? undefined : httpStatusOfGrpc(readGrpcStatus(status));
}

/** A response of gRPC has ended whose head left open what came of it; one without a status is broken. */
export function countGrpcEnd(context: WorkerContext, host: Host, trailers: Trailers | null): void {
  const status = readGrpcStatus(trailers?.get('grpc-status') ?? '');
  const stat = httpStatusOfGrpc(status) >= 500 ? rq_error : rq_success;
  context.stats.values[host.statBase + stat]! += 1;
}

/**
 * Its head lies in the codec.
 * @param judged the status that the host is judged by; null while that is open, and its success with it.
 * @returns whether it counts as the response of a canary.
 */
export function countResponse(
  context: WorkerContext,
  cluster: Cluster,
  host: Host,
  status: number,
  judged: number | null,
  request: CountedRequest,
): boolean {
  if (judged !== null) context.stats.values[host.statBase + (judged >= 500 ? rq_error : rq_success)]! += 1;
  host.outlier?.answered(judged ?? status);
  const isCanary = host.canary || context.codec.response.header(UPSTREAM_CANARY) === 'true';
  countStatus(context, cluster, host, status, request, isCanary);
  return isCanary;
}

/** Of a response, or of what the client is told in its place. @param host null when there is none. */
export function countStatus(
  context: WorkerContext,
  cluster: Cluster,
  host: Host | null,
  status: number,
  { isInternal, tally }: CountedRequest,
  isCanary: boolean,
): void {
  context.stats.values[cluster.statBase + upstream_rq_completed]! += 1;
  const codes = cluster.responseCodes;
  codes.all.count(status);
  if (isInternal) codes.internal.count(status);
  else codes.external.count(status);
  host?.zoneCodes?.count(status);
  if (isCanary) codes.canary.count(status);
  if (tally !== null) tally.countStatus(status);
}

/** The response has ended. @param isCanary as countResponse said. */
export function recordResponseTime(
  context: WorkerContext,
  cluster: Cluster,
  host: Host,
  elapsedMs: number,
  { isInternal, tally }: CountedRequest,
  isCanary: boolean,
): void {
  context.stats.record(cluster.statBase + upstream_rq_time, elapsedMs);
  // Only of hosts that somebody looks at (src/control-plane/history/host-times.ts).
  const times = context.records.hostTimes(host.record);
  if (times !== 0) context.stats.record(context.stats.base(times) + HOST_TIME_STATS.index.rq_time, elapsedMs);
  const codes = cluster.responseCodes;
  if (isInternal) codes.internal.recordTime(elapsedMs);
  else codes.external.recordTime(elapsedMs);
  host.zoneCodes?.recordTime(elapsedMs);
  if (isCanary) codes.canary.recordTime(elapsedMs);
  if (tally !== null) tally.recordTime(elapsedMs);
}
