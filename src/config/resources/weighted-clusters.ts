// WeightedCluster message → WeightedClusters: the shares of one route's clusters, and the headers each of them adds.

import type { FiltersOfRoute, WeightedCluster, WeightedClusters } from '../../snapshot/index.ts';
import { criteriaOf } from './balancer-metadata.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertHeaderEdits } from './header-edits.ts';
import type { ClusterWeight, Metadata, WeightedClusterMessage } from './messages.ts';
import { valueOr } from './units.ts';

const MAX_TOTAL_WEIGHT = 0xffff_ffff;

/** What a route says that its clusters add to. */
export interface AroundClusters {
  readonly validateClusters: boolean;
  /** What it asks of hosts. */
  readonly metadata: Metadata | null;
  readonly hasHashPolicy: boolean;
  /** What it and the levels around say to filters, with what a cluster adds. */
  filters(entries: ClusterWeight['typed_per_filter_config'], at: string): FiltersOfRoute | null;
}

export function convertWeightedClusters(
  message: WeightedClusterMessage,
  at: string,
  route: AroundClusters,
  conversion: Conversion,
): WeightedClusters {
  const entries = message.clusters.map((cluster, index) =>
    convertEntry(cluster, `${at}.clusters[${index}]`, route, conversion),
  );
  const totalWeight = entries.reduce((sum, { weight }) => sum + weight, 0);
  checkTotal(message, totalWeight, at, conversion);
  const decidedBy = convertDecision(message, at, route, conversion.faults);
  return {
    entries,
    totalWeight,
    runtimeKeyPrefix: message.runtime_key_prefix,
    ...(decidedBy === undefined ? {} : { decidedBy }),
  };
}

function convertDecision(
  { header_name: name, use_hash_policy }: WeightedClusterMessage,
  at: string,
  { hasHashPolicy }: AroundClusters,
  faults: FaultSink,
): WeightedClusters['decidedBy'] {
  if (name !== '') return { kind: 'header', name: name.toLowerCase() };
  if (!valueOr(use_hash_policy, false)) return undefined;
  if (hasHashPolicy) return { kind: 'hash' };
  faults.warning(`${at}.use_hash_policy`, 'the route has no hash_policy; chance decides');
  return undefined;
}

function convertEntry(
  message: ClusterWeight,
  at: string,
  route: AroundClusters,
  conversion: Conversion,
): WeightedCluster {
  const { clusters, faults } = conversion;
  const clusterHeader = message.cluster_header.toLowerCase();
  if ((message.name === '') === (clusterHeader === '')) {
    faults.error(
      `${at}.name`,
      clusterHeader === '' ? 'is empty, and so is cluster_header' : 'is given beside cluster_header',
    );
  } else if (route.validateClusters && clusterHeader === '') {
    clusters.checkPresence(message.name, `${at}.name`, faults);
  }
  const edits = convertHeaderEdits(message, at, conversion);
  const filters = hasEntries(message.typed_per_filter_config)
    ? route.filters(message.typed_per_filter_config, `${at}.typed_per_filter_config`)
    : null;
  return {
    cluster: message.name,
    ...(clusterHeader === '' ? {} : { clusterHeader }),
    ...(filters === null ? {} : { filters }),
    weight: valueOr(message.weight, 0),
    requestEdits: edits.request,
    responseEdits: edits.response,
    hostRewrite: message.host_rewrite_literal,
    criteria: criteriaOf(route.metadata, message.metadata_match),
  };
}

function hasEntries(map: object): boolean {
  return Object.keys(map).length > 0;
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
