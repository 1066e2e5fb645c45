// Cluster message → ClusterSettings: defaults, units, the forms of both generations. Field rules have been
// checked before. A message with faults is converted as far as it goes, so that all of them are found; the
// caller throws the result away.
// Source: spec 2.8 and 8.

import type {
  AssignmentPolicy,
  ClusterSettings,
  DnsDiscoverySettings,
  LoadBalancingPolicy,
} from '../../snapshot/index.ts';
import { convertAggregate } from './aggregate-cluster.ts';
import { withBalancingPolicy } from './balancing-policy.ts';
import { convertCircuitBreakers } from './circuit-breakers.ts';
import { checkCluster, checkProvidedBalancer, lbPolicyName } from './cluster-checks.ts';
import type { Conversion } from './conversion.ts';
import { discoveryTypeOf, FORWARD_PROXY_TYPE, REDIS_TYPE } from './discovery-type.ts';
import { convertDnsDiscovery } from './dns-discovery.ts';
import { convertEdsDiscovery } from './eds-discovery.ts';
import { convertHosts, convertLoadAssignment, DnsTargets, type MemberCollector, StaticMembers } from './endpoint.ts';
import { convertFamilyOrder } from './family-order.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertForwardProxy, convertForwardProxyCache } from './forward-proxy.ts';
import { convertHealthCheck } from './health-check.ts';
import { convertSubsets, subsetKeys } from './lb-subsets.ts';
import { convertAssignmentPolicy } from './load-assignment.ts';
import { convertLoadBalancing } from './load-balancing.ts';
import type { Cluster } from './messages.ts';
import { convertMetadata } from './metadata.ts';
import { convertOriginalDst, convertOriginalDstDiscovery } from './original-dst.ts';
import { convertOutlierDetection } from './outlier-detection.ts';
import { convertPreconnect } from './preconnect.ts';
import { convertRedisDiscovery } from './redis-cluster.ts';
import { convertServerCredentials } from './redis-options.ts';
import { convertRequestServerName } from './request-server-name.ts';
import { convertTransportSocketMatches } from './transport-socket-matches.ts';
import { durationMsOr, valueOr } from './units.ts';
import { convertUpstreamOptions } from './upstream-options.ts';
import { convertUpstreamSocket } from './upstream-socket.ts';
import { convertUpstreamTransport } from './upstream-transport.ts';

const DEFAULT_CONNECT_TIMEOUT_MS = 5000;
const DEFAULT_MERGE_WINDOW_MS = 1000;
const DEFAULT_BUFFER_LIMIT_BYTES = 1024 * 1024;

/** @param at path of the message, `static_resources.clusters[3]`. */
export function convertCluster(message: Cluster, at: string, conversion: Conversion): ClusterSettings {
  checkCluster(message, at, conversion);
  const balanced = withBalancingPolicy(message, at, conversion.faults);
  checkProvidedBalancer(balanced, at, conversion.faults);
  const transport = convertUpstreamTransport(message, at, conversion);
  // A connection that names its client is of no use to another one.
  const credentials = convertServerCredentials(message, at, conversion);
  const poolsPerClient = message.connection_pool_per_downstream_connection || transport.proxyHeader !== undefined;
  const observabilityName = message.alt_stat_name || message.name;
  const isRedis = discoveryTypeOf(message) === REDIS_TYPE;
  return {
    name: message.name,
    statName: observabilityName.replaceAll(':', '_'),
    observabilityName,
    ...convertMetadata(message.metadata),
    connectTimeoutMs: durationMsOr(message.connect_timeout, DEFAULT_CONNECT_TIMEOUT_MS),
    bufferLimitBytes: valueOr(message.per_connection_buffer_limit_bytes, DEFAULT_BUFFER_LIMIT_BYTES),
    // Who does not go by keys takes any server.
    lbPolicy: isRedis ? 'RANDOM' : (lbPolicyName(balanced) as LoadBalancingPolicy),
    originalDst: convertOriginalDst(message),
    ...convertForwardProxy(message, at, conversion.faults),
    ...convertAggregate(message, at, conversion),
    ...convertLoadBalancing(balanced, at, conversion.faults),
    subsets: convertSubsets(balanced),
    ...convertUpstreamSocket(message, at, conversion),
    ...convertUpstreamOptions(message, at, conversion),
    ...convertTransportSocketMatches(message, at, conversion),
    ...convertRequestServerName(message, at, conversion.faults),
    ...transport,
    ...(credentials && { credentials }),
    poolsPerClient,
    ...convertPreconnect(balanced, at, conversion.faults),
    ...convertPolicy(message, at, conversion.faults),
    circuitBreakers: convertCircuitBreakers(message.circuit_breakers, `${at}.circuit_breakers`, conversion.faults),
    closeConnectionsOnHostHealthFailure: message.close_connections_on_host_health_failure,
    updateMergeWindowMs: durationMsOr(message.common_lb_config?.update_merge_window ?? null, DEFAULT_MERGE_WINDOW_MS),
    waitForWarmOnInit: valueOr(message.wait_for_warm_on_init, true),
    tracksTimeoutBudgets: message.track_timeout_budgets || (message.track_cluster_stats?.timeout_budgets ?? false),
    tracksMessageSizes: message.track_cluster_stats?.request_response_sizes ?? false,
    ...(message.track_cluster_stats?.per_endpoint_stats ? { tracksHosts: true } : {}),
    healthCheck: convertHealthCheck(message, credentials, at, conversion),
    outlierDetection: convertOutlierDetection(message.outlier_detection, `${at}.outlier_detection`, conversion.faults),
    ...convertMembers(balanced, at, conversion),
  };
}

/** Until its first assignment comes, a cluster that discovers its members is as one of whom none says anything. */
function convertPolicy(message: Cluster, at: string, faults: FaultSink): AssignmentPolicy {
  const assignment = discoveryTypeOf(message) === 'EDS' ? null : message.load_assignment;
  return convertAssignmentPolicy(assignment?.policy ?? null, `${at}.load_assignment.policy`, faults);
}

type Membership = Pick<ClusterSettings, 'hosts' | 'discovery'>;

const STATIC = { kind: 'static' } as const;
const NO_MEMBERS: Membership = { discovery: STATIC, hosts: [] };

const DNS_KINDS: ReadonlyMap<string, DnsDiscoverySettings['kind']> = new Map([
  ['STRICT_DNS', 'strict-dns'],
  ['LOGICAL_DNS', 'logical-dns'],
]);

function convertMembers(message: Cluster, at: string, conversion: Conversion): Membership {
  const { faults } = conversion;
  const type = discoveryTypeOf(message);
  if (type === 'STATIC') {
    const members = new StaticMembers(convertFamilyOrder(message));
    collectMembers(message, at, members, faults);
    return { discovery: STATIC, hosts: members.hosts };
  }
  if (type === 'ORIGINAL_DST') return { discovery: convertOriginalDstDiscovery(message), hosts: [] };
  if (type === FORWARD_PROXY_TYPE) {
    const cache = convertForwardProxyCache(message, at, conversion);
    return cache === undefined ? NO_MEMBERS : { discovery: { kind: 'forward-proxy', cache }, hosts: [] };
  }
  if (type === 'EDS') {
    const discovery = convertEdsDiscovery(message, at, conversion);
    return discovery === undefined ? NO_MEMBERS : { discovery, hosts: [] };
  }
  const isRedis = type === REDIS_TYPE;
  const kind = isRedis ? 'strict-dns' : DNS_KINDS.get(type ?? '');
  // The support table refuses the other types.
  if (kind === undefined) return NO_MEMBERS;
  const members = new DnsTargets();
  collectMembers(message, at, members, faults);
  if (isRedis) return { discovery: convertRedisDiscovery(message, members.targets, at, conversion), hosts: [] };
  return { discovery: convertDnsDiscovery(kind, message, members.targets, at, conversion), hosts: [] };
}

function collectMembers(message: Cluster, at: string, members: MemberCollector, faults: FaultSink): void {
  if (message.load_assignment === null) convertHosts(message.hosts, `${at}.hosts`, members, faults);
  else convertLoadAssignment(message.load_assignment, `${at}.load_assignment`, subsetKeys(message), members, faults);
}
