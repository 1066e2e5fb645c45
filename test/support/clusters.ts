// Settings of clusters and their members as a configuration without particulars would have them.

import type { Address } from '../../src/base/address.ts';
import type { BalancingSettings } from '../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import { LocalCluster } from '../../src/control-plane/cluster-manager/local-cluster.ts';
import type { CircuitBreakerThresholds, ClusterSnapshot, HostSettings } from '../../src/snapshot/index.ts';
import { DEFAULT_HASHING } from './lb.ts';

export const NO_LIMITS: CircuitBreakerThresholds = {
  maxConnections: 1024,
  maxPendingRequests: 1024,
  maxRequests: 1024,
  maxRetries: 3,
};
export const BALANCING: BalancingSettings = {
  lbPolicy: 'ROUND_ROBIN',
  leastRequest: { choiceCount: 2, activeRequestBias: undefined, activeRequestBiasKey: '', comparesAll: false },
  hashing: DEFAULT_HASHING,
  subsets: null,
  healthyPanicThreshold: 50,
  overprovisioningFactor: 140,
  weightedPriorityHealth: false,
  failsTrafficOnPanic: false,
  weighsLocalities: false,
  zoneRouting: null,
};
export const NO_LOCALITY = { region: '', zone: '', subZone: '' };

export const NO_LOCAL_CLUSTER = new LocalCluster('', NO_LOCALITY);

/** @param overrides replace what is given here. */
export function clusterSettings(
  name: string,
  overrides: Partial<ClusterSnapshot['settings']> = {},
): ClusterSnapshot['settings'] {
  return {
    name,
    statName: name,
    observabilityName: name,
    connectTimeoutMs: 5000,
    bufferLimitBytes: 1024 * 1024,
    ...BALANCING,
    originalDst: null,
    slowStart: null,
    dropShare: null,
    closeConnectionsOnHostSetChange: false,
    sourceAddress: undefined,
    tcpKeepalive: undefined,
    maxConnectionDurationMs: 0,
    closeConnectionsOnHostHealthFailure: false,
    tracksTimeoutBudgets: false,
    tracksMessageSizes: false,
    updateMergeWindowMs: 1000,
    waitForWarmOnInit: true,
    maxRequestsPerConnection: 0,
    enableTrailers: false,
    poolsPerClient: false,
    retry: null,
    mirrors: null,
    idleTimeoutMs: 3_600_000,
    outlierDetection: undefined,
    circuitBreakers: { default: NO_LIMITS, high: NO_LIMITS },
    ...overrides,
  };
}

/** @param overrides replace what is given here. */
export function hostSettings(address: Address, overrides: Partial<HostSettings> = {}): HostSettings {
  return {
    address,
    hostname: '',
    weight: 1,
    locality: NO_LOCALITY,
    localityWeight: 0,
    priority: 0,
    canary: false,
    health: 'healthy',
    hashKey: '',
    subsetValues: [],
    ...overrides,
  };
}
