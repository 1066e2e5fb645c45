// Where the status of an upstream's response is counted.

import { CLUSTER_STATS, HOST_STATS } from '../../stats/index.ts';
import { HEADER_ID } from '../../wasm/http1.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';
import type { WorkerContext } from '../worker-context.ts';

const { upstream_rq_completed } = CLUSTER_STATS.index;
const { rq_error, rq_success } = HOST_STATS.index;
const UPSTREAM_CANARY = HEADER_ID['x-proxy-upstream-canary'];

/** Its head lies in the codec. @param isInternal the request's origin. */
export function countResponse(
  context: WorkerContext,
  cluster: Cluster,
  host: Host,
  status: number,
  isInternal: boolean,
): void {
  const { values } = context.stats;
  values[cluster.statBase + upstream_rq_completed]! += 1;
  values[host.statBase + (status >= 500 ? rq_error : rq_success)]! += 1;
  const codes = cluster.responseCodes;
  codes.all.count(status);
  if (isInternal) codes.internal.count(status);
  else codes.external.count(status);
  if (host.canary || context.codec.response.header(UPSTREAM_CANARY) === 'true') codes.canary.count(status);
}
