// What must hold between the fields of one Cluster message (spec 2.8). Ranges and required fields are rules
// of the schema and not repeated here. Each check reports at the field that an operator would change.

import { Cluster_LbPolicy } from '../proto/generated/enums.ts';
import type { Conversion } from './conversion.ts';
import { AGGREGATE_TYPE, discoveryTypeOf, dnsSettingsOf, FORWARD_PROXY_TYPE, REDIS_TYPE } from './discovery-type.ts';
import { enumName } from './enum-name.ts';
import type { FaultSink } from './fault-sink.ts';
import { checkMaglevSize, checkRingSizes } from './hash-table-checks.ts';
import type { Cluster } from './messages.ts';
import { checkSubsetConfig } from './subset-checks.ts';
import { durationMs } from './units.ts';

type ClusterCheck = (cluster: Cluster, at: string, faults: FaultSink) => void;

const CHECKS: readonly ClusterCheck[] = [
  checkBalancerConfig,
  checkTables,
  checkPolicyConfig,
  checkEdsConfig,
  checkOriginalDst,
  checkZoneAwareness,
  checkLogicalDns,
  checkRefreshRate,
  checkHttpVersion,
  checkSubsets,
];

export function checkCluster(
  cluster: Cluster,
  at: string,
  conversion: Pick<Conversion, 'faults' | 'isDiscovered'>,
): void {
  const { faults, isDiscovered = false } = conversion;
  for (const check of CHECKS) check(cluster, at, faults);
  checkMembers(cluster, at, isDiscovered, faults);
}

/** The v2 name ORIGINAL_DST_LB means CLUSTER_PROVIDED. */
export function lbPolicyName(cluster: Cluster): string {
  if (cluster.lb_policy === Cluster_LbPolicy.ORIGINAL_DST_LB) return 'CLUSTER_PROVIDED';
  return enumName(Cluster_LbPolicy, cluster.lb_policy);
}

/** Balancer options and the one policy that reads them. */
const POLICY_OF_CONFIG = [
  ['ring_hash_lb_config', 'RING_HASH'],
  ['maglev_lb_config', 'MAGLEV'],
  ['least_request_lb_config', 'LEAST_REQUEST'],
  ['round_robin_lb_config', 'ROUND_ROBIN'],
] as const satisfies readonly (readonly [keyof Cluster, string])[];

function checkBalancerConfig(cluster: Cluster, at: string, faults: FaultSink): void {
  for (const [field, needed] of POLICY_OF_CONFIG) {
    if (cluster[field] === null || lbPolicyName(cluster) === needed) continue;
    faults.error(`${at}.${field}`, `needs lb_policy ${needed}, not ${lbPolicyName(cluster)}`);
  }
}

function checkTables({ ring_hash_lb_config, maglev_lb_config }: Cluster, at: string, faults: FaultSink): void {
  checkRingSizes(ring_hash_lb_config, `${at}.ring_hash_lb_config`, faults);
  checkMaglevSize(maglev_lb_config, `${at}.maglev_lb_config`, faults);
}

function checkSubsets({ lb_subset_config, common_lb_config }: Cluster, at: string, faults: FaultSink): void {
  const weighsLocalities = (common_lb_config?.locality_weighted_lb_config ?? null) !== null;
  checkSubsetConfig(lb_subset_config, weighsLocalities, `${at}.lb_subset_config`, faults);
}

function checkPolicyConfig(cluster: Cluster, at: string, faults: FaultSink): void {
  const policy = lbPolicyName(cluster);
  if (policy === 'LOAD_BALANCING_POLICY_CONFIG' && cluster.load_balancing_policy === null) {
    faults.error(`${at}.lb_policy`, `${policy} needs load_balancing_policy`);
  }
}

function checkEdsConfig(cluster: Cluster, at: string, faults: FaultSink): void {
  const type = discoveryTypeOf(cluster);
  const isEds = type === 'EDS';
  const hasConfig = cluster.eds_cluster_config !== null;
  if (isEds && !hasConfig) faults.error(`${at}.type`, 'EDS needs eds_cluster_config');
  if (isEds && (cluster.load_assignment !== null || cluster.hosts.length > 0)) {
    const field = cluster.load_assignment === null ? 'hosts' : 'load_assignment';
    faults.warning(`${at}.${field}`, 'ignored with type EDS: the endpoints come by discovery');
  }
  if (hasConfig && !isEds) faults.error(`${at}.eds_cluster_config`, `needs type EDS, not ${type ?? 'another'}`);
}

function checkOriginalDst(cluster: Cluster, at: string, faults: FaultSink): void {
  const { cleanup_interval, original_dst_lb_config, load_assignment, hosts } = cluster;
  if (discoveryTypeOf(cluster) === 'ORIGINAL_DST') {
    const reason = 'type ORIGINAL_DST takes its members from the connections';
    if (load_assignment !== null) faults.error(`${at}.load_assignment`, reason);
    if (hosts.length > 0) faults.error(`${at}.hosts`, reason);
    if (original_dst_lb_config?.http_header_name && !original_dst_lb_config.use_http_header) {
      faults.error(`${at}.original_dst_lb_config.http_header_name`, 'needs use_http_header: true');
    }
    return;
  }
  if (original_dst_lb_config !== null) faults.error(`${at}.original_dst_lb_config`, 'needs type ORIGINAL_DST');
  if (cleanup_interval !== null) faults.warning(`${at}.cleanup_interval`, 'ignored without type ORIGINAL_DST');
}

/** Policies that choose without looking at zones, and never fail traffic on purpose. */
const POLICIES_WITHOUT_ZONES: ReadonlySet<string> = new Set(['RING_HASH', 'MAGLEV', 'CLUSTER_PROVIDED']);

function checkZoneAwareness(cluster: Cluster, at: string, faults: FaultSink): void {
  const zones = cluster.common_lb_config?.zone_aware_lb_config ?? null;
  const policy = lbPolicyName(cluster);
  if (zones === null || !POLICIES_WITHOUT_ZONES.has(policy)) return;
  const zonesAt = `${at}.common_lb_config.zone_aware_lb_config`;
  const field = zones.fail_traffic_on_panic ? `${zonesAt}.fail_traffic_on_panic` : zonesAt;
  faults.warning(field, `has no effect with lb_policy ${policy}`);
}

/** Their members are named by requests and connections, or those of other clusters, or they say which keys are theirs. */
const TYPES_WITHOUT_BALANCER: ReadonlySet<string> = new Set([
  'ORIGINAL_DST',
  FORWARD_PROXY_TYPE,
  AGGREGATE_TYPE,
  REDIS_TYPE,
]);

/**
 * A cluster either chooses its hosts itself or has a balancer do it.
 * @param balanced the cluster, with what its load_balancing_policy says.
 */
export function checkProvidedBalancer(balanced: Cluster, at: string, faults: FaultSink): void {
  const policy = lbPolicyName(balanced);
  const policyAt = `${at}.${balanced.load_balancing_policy === null ? 'lb_policy' : 'load_balancing_policy'}`;
  const isProvided = policy === 'CLUSTER_PROVIDED';
  const type = discoveryTypeOf(balanced);
  const hasNone = type !== undefined && TYPES_WITHOUT_BALANCER.has(type);
  if (hasNone && !isProvided) {
    faults.error(policyAt, `type ${type} needs CLUSTER_PROVIDED, not ${policy}`);
  }
  if (type !== undefined && !hasNone && isProvided) {
    faults.error(policyAt, `CLUSTER_PROVIDED needs type ORIGINAL_DST, not ${type}`);
  }
  if (!isProvided || balanced.lb_subset_config === null) return;
  if (balanced.load_balancing_policy === null) {
    faults.error(`${at}.lb_subset_config`, `cannot be combined with lb_policy ${policy}`);
  } else faults.error(policyAt, `subsets cannot be combined with ${policy}`);
}

const TYPES_WITH_MEMBERS: ReadonlySet<string> = new Set(['STATIC', 'STRICT_DNS', 'LOGICAL_DNS']);

/** Meshes send a black hole, where requests are to end, as a cluster without members. Who writes one by hand has forgotten them (spec 2.8). */
function checkMembers(cluster: Cluster, at: string, isDiscovered: boolean, faults: FaultSink): void {
  const type = discoveryTypeOf(cluster);
  if (type === undefined || !TYPES_WITH_MEMBERS.has(type)) return;
  const hasNone = cluster.load_assignment === null && cluster.hosts.length === 0;
  if (hasNone && !isDiscovered) faults.error(at, `a cluster of type ${type} needs load_assignment`);
  if (cluster.load_assignment !== null && cluster.hosts.length > 0) {
    faults.warning(`${at}.hosts`, 'ignored, because load_assignment supersedes it');
  }
}

function checkLogicalDns(cluster: Cluster, at: string, faults: FaultSink): void {
  if (discoveryTypeOf(cluster) !== 'LOGICAL_DNS') return;
  const localities = cluster.load_assignment?.endpoints ?? [];
  const [locality] = localities;
  const endpoints = locality?.load_balancer_endpoints?.lb_endpoints ?? locality?.lb_endpoints ?? [];
  const members = cluster.load_assignment === null ? cluster.hosts.length : endpoints.length;
  if (members === 1 && localities.length <= 1) return;
  faults.error(at, 'a cluster of type LOGICAL_DNS needs exactly one member in one locality');
}

function checkRefreshRate(cluster: Cluster, at: string, faults: FaultSink): void {
  const newer = dnsSettingsOf(cluster);
  const rate = (newer ?? cluster).dns_failure_refresh_rate;
  const rateAt = `${at}.${newer ? 'cluster_type.typed_config.' : ''}dns_failure_refresh_rate`;
  if (rate === null || rate.base_interval === null || rate.max_interval === null) return;
  if (durationMs(rate.max_interval) >= durationMs(rate.base_interval)) return;
  faults.error(`${rateAt}.max_interval`, 'must not be less than base_interval');
}

function checkHttpVersion(cluster: Cluster, at: string, faults: FaultSink): void {
  if (cluster.http_protocol_options === null || cluster.http2_protocol_options === null) return;
  if (cluster.protocol_selection !== 0) return;
  const message = 'beside http_protocol_options needs protocol_selection USE_DOWNSTREAM_PROTOCOL';
  faults.error(`${at}.http2_protocol_options`, message);
}
