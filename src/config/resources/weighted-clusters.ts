// WeightedCluster message → WeightedClusters: the shares of one route's clusters, and the headers each of them adds.

import type { WeightedCluster, WeightedClusters } from '../../snapshot/index.ts';
import { criteriaOf } from './balancer-metadata.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertHeaderEdits } from './header-edits.ts';
import type { ClusterWeight, Metadata, WeightedClusterMessage } from './messages.ts';
import { valueOr } from './units.ts';

const MAX_TOTAL_WEIGHT = 0xffff_ffff;

/** @param routeMetadata what the route asks of hosts, to which a cluster may add. */
export function convertWeightedClusters(
  message: WeightedClusterMessage,
  at: string,
  validateClusters: boolean,
  routeMetadata: Metadata | null,
  conversion: Conversion,
): WeightedClusters {
  const entries = message.clusters.map((cluster, index) =>
    convertEntry(cluster, `${at}.clusters[${index}]`, validateClusters, routeMetadata, conversion),
  );
  const totalWeight = entries.reduce((sum, { weight }) => sum + weight, 0);
  checkTotal(message, totalWeight, at, conversion);
  return { entries, totalWeight, runtimeKeyPrefix: message.runtime_key_prefix };
}

function convertEntry(
  message: ClusterWeight,
  at: string,
  validateClusters: boolean,
  routeMetadata: Metadata | null,
  conversion: Conversion,
): WeightedCluster {
  const { clusters, faults } = conversion;
  if (message.name === '') faults.error(`${at}.name`, 'is empty');
  else if (validateClusters) clusters.checkReference(message.name, `${at}.name`, faults);
  const edits = convertHeaderEdits(message, at, conversion);
  return {
    cluster: message.name,
    weight: valueOr(message.weight, 0),
    requestEdits: edits.request,
    responseEdits: edits.response,
    hostRewrite: message.host_rewrite_literal,
    criteria: criteriaOf(routeMetadata, message.metadata_match),
  };
}

export function checkWeightSum(sum: number, at: string, faults: FaultSink): void {
  if (sum > MAX_TOTAL_WEIGHT) faults.error(at, `weights sum up to ${sum}, the limit is ${MAX_TOTAL_WEIGHT}`);
}

function checkTotal(message: WeightedClusterMessage, sum: number, at: string, { faults }: Conversion): void {
  // Without members a field rule has been broken already.
  if (message.clusters.length === 0) return;
  if (sum === 0) faults.error(`${at}.clusters`, 'all weights are 0; no cluster could ever be chosen');
  checkWeightSum(sum, `${at}.clusters`, faults);
  const expected = message.total_weight?.value;
  if (expected !== undefined && expected !== sum) {
    faults.error(`${at}.total_weight`, `is ${expected}, but the weights sum up to ${sum}`);
  }
}
