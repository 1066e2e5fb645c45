// What the balancers of a cluster read: options of the policies, panic threshold, zones.

import type {
  ClusterSettings,
  HashFunction,
  HashingSettings,
  LeastRequestSettings,
  SlowStartSettings,
  ZoneRoutingSettings,
} from '../../snapshot/index.ts';
import { Cluster_RingHashLbConfig_HashFunction as HashFunctions } from '../proto/generated/enums.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { BalancedCluster } from './balancing-policy.ts';
import { configuredHealth } from './endpoint.ts';
import { enumName } from './enum-name.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertHashPolicies } from './hash-policy.ts';
import { durationMsOr, valueOr } from './units.ts';
import { clusterHashPolicies } from './upstream-options.ts';

const DEFAULT_CHOICE_COUNT = 2;
export const DEFAULT_MINIMUM_RING_SIZE = 1024;
export const DEFAULT_MAXIMUM_RING_SIZE = 8 * 1024 * 1024;
const DEFAULT_MAGLEV_SIZE = 65_537;
const DEFAULT_PANIC_THRESHOLD = 50;
const DEFAULT_ROUTING_PERCENT = 100;
const DEFAULT_MIN_CLUSTER_SIZE = 6;
const DEFAULT_AGGRESSION = 1;
const DEFAULT_MIN_WEIGHT_PERCENT = 10;

type StatusSet = NonNullable<NonNullable<BalancedCluster['common_lb_config']>['override_host_status']>;

export type LoadBalancingSettings = Pick<
  ClusterSettings,
  | 'leastRequest'
  | 'slowStart'
  | 'hashing'
  | 'healthyPanicThreshold'
  | 'failsTrafficOnPanic'
  | 'weighsLocalities'
  | 'zoneRouting'
  | 'overrideHealth'
  | 'closeConnectionsOnHostSetChange'
>;

/** @param at path of the cluster. */
export function convertLoadBalancing(message: BalancedCluster, at: string, faults: FaultSink): LoadBalancingSettings {
  const common = message.common_lb_config;
  return {
    leastRequest: convertLeastRequest(message),
    slowStart: convertSlowStart(message, faults),
    hashing: convertHashing(message, at, faults),
    healthyPanicThreshold: Math.trunc(valueOr(common?.healthy_panic_threshold, DEFAULT_PANIC_THRESHOLD)),
    failsTrafficOnPanic: common?.zone_aware_lb_config?.fail_traffic_on_panic ?? false,
    weighsLocalities: (common?.locality_weighted_lb_config ?? null) !== null,
    zoneRouting: convertZoneRouting(message),
    ...overrideHealthOf(common?.override_host_status ?? null),
    closeConnectionsOnHostSetChange: common?.close_connections_on_host_set_change ?? false,
  };
}

function overrideHealthOf(message: StatusSet | null): Pick<LoadBalancingSettings, 'overrideHealth'> {
  return message === null ? {} : { overrideHealth: [...new Set(message.statuses.map(configuredHealth))] };
}

function convertHashing(message: BalancedCluster, at: string, faults: FaultSink): HashingSettings {
  const ofBalancer = { messages: message.hash_policy, at: message.hash_policy_at };
  const hashPolicies = message.hash_policy.length > 0 ? ofBalancer : clusterHashPolicies(message, at);
  const { ring_hash_lb_config: ring, maglev_lb_config: maglev } = message;
  const consistent = message.common_lb_config?.consistent_hashing_lb_config;
  return {
    // A ring of no entries would have no host for anybody.
    minimumRingSize: Math.max(1, int64ToNumber(valueOr(ring?.minimum_ring_size, DEFAULT_MINIMUM_RING_SIZE))),
    maximumRingSize: Math.max(1, int64ToNumber(valueOr(ring?.maximum_ring_size, DEFAULT_MAXIMUM_RING_SIZE))),
    hashFunction: enumName(HashFunctions, ring?.hash_function ?? HashFunctions.XX_HASH) as HashFunction,
    maglevTableSize: int64ToNumber(valueOr(maglev?.table_size, DEFAULT_MAGLEV_SIZE)),
    usesHostname: consistent?.use_hostname_for_hashing ?? false,
    balancePercent: valueOr(consistent?.hash_balance_factor, 0),
    policies: convertHashPolicies(hashPolicies.messages, hashPolicies.at, faults),
  };
}

function convertLeastRequest({ least_request_lb_config: config, compares_all }: BalancedCluster): LeastRequestSettings {
  return {
    comparesAll: compares_all,
    choiceCount: valueOr(config?.choice_count, DEFAULT_CHOICE_COUNT),
    activeRequestBias: config?.active_request_bias?.default_value,
    activeRequestBiasKey: config?.active_request_bias?.runtime_key ?? '',
  };
}

/** Nothing has to be said of it: a local cluster turns it on. */
function convertZoneRouting({
  common_lb_config,
  forced_from,
  goes_by_weight,
}: BalancedCluster): ZoneRoutingSettings | null {
  if ((common_lb_config?.locality_weighted_lb_config ?? null) !== null) return null;
  const zones = common_lb_config?.zone_aware_lb_config;
  return {
    enabledPercent: Math.trunc(valueOr(zones?.routing_enabled, DEFAULT_ROUTING_PERCENT)),
    minClusterSize: int64ToNumber(valueOr(zones?.min_cluster_size, DEFAULT_MIN_CLUSTER_SIZE)),
    forcedFrom: forced_from,
    goesByWeight: goes_by_weight,
  };
}

function convertSlowStart(
  { slow_start: message, slow_start_at: at }: BalancedCluster,
  faults: FaultSink,
): SlowStartSettings | null {
  const windowMs = durationMsOr(message?.slow_start_window ?? null, 0);
  const aggression = message?.aggression?.default_value ?? DEFAULT_AGGRESSION;
  // Also says no to NaN.
  if (!(aggression > 0)) faults.error(`${at}.aggression.default_value`, `${aggression} is not above 0`);
  if (message === null || windowMs <= 0) return null;
  return {
    windowMs,
    aggression: { key: message.aggression?.runtime_key ?? '', default: aggression },
    minWeightPercent: message.min_weight_percent?.value ?? DEFAULT_MIN_WEIGHT_PERCENT,
  };
}
