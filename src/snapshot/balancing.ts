// How a host is chosen among those of a cluster, as the configuration has it: balancers, localities, slow start, subsets.

import type { RuntimeSetting } from '../base/runtime.ts';
import type { MetadataPair } from '../base/subset-key.ts';
import type { HashPolicy } from './route-table.ts';

export type LoadBalancingPolicy =
  | 'ROUND_ROBIN'
  | 'LEAST_REQUEST'
  | 'RING_HASH'
  | 'RANDOM'
  | 'MAGLEV'
  | 'CLUSTER_PROVIDED';

export interface LeastRequestSettings {
  /** Random hosts to compare, 2 or more. */
  readonly choiceCount: number;
  /** Exponent of the active requests in a host's weight; undefined when not configured, which means 1. */
  readonly activeRequestBias: number | undefined;
  /** Under which the runtime may have another; empty for none. */
  readonly activeRequestBiasKey: string;
  /** The least busy of all hosts, where they weigh the same. */
  readonly comparesAll: boolean;
}

/** A new host gets a share of its weight, which grows. */
export interface SlowStartSettings {
  /** Until it has its whole weight, above 0. */
  readonly windowMs: number;
  /** Above 0; 1 grows evenly, more starts faster. */
  readonly aggression: RuntimeSetting<number>;
  /** Least share, 0 to 100. */
  readonly minWeightPercent: number;
}

/** Requests prefer hosts in the locality of this proxy, where a local cluster says how many proxies are where. */
export interface ZoneRoutingSettings {
  /** Of requests, unless the runtime says otherwise; whole percent. */
  readonly enabledPercent: number;
  /** With fewer healthy hosts all are alike, unless the runtime says otherwise. */
  readonly minClusterSize: number;
  /** From so many healthy hosts on, the own locality gets all requests; null for no such rule. */
  readonly forcedFrom: number | null;
  /** What localities can take goes by the weights of their hosts instead of their number. */
  readonly goesByWeight: boolean;
}

/** How an entry of a ring is placed; requests are always hashed by XX_HASH. */
export type HashFunction = 'XX_HASH' | 'MURMUR_HASH_2';

/** Options of the balancers that send equal hashes to the same host. */
export interface HashingSettings {
  /** Entries, 1 to 8388608. */
  readonly minimumRingSize: number;
  readonly maximumRingSize: number;
  readonly hashFunction: HashFunction;
  /** A prime. */
  readonly maglevTableSize: number;
  /** Hosts are placed by their names instead of their addresses. */
  readonly usesHostname: boolean;
  /** How much of its share of the requests in flight a host may have, 100 or more; 0 for no bound. */
  readonly balancePercent: number;
  /** What requests are hashed by, whatever their routes say of it; empty for what those say. */
  readonly policies: readonly HashPolicy[];
}

/** What a request asks of its host's metadata, ascending by key; one or more. */
export type SubsetCriteria = readonly MetadataPair[];

/** What a host's metadata says under a key that subsets go by. */
export interface SubsetValue {
  readonly key: string;
  /** As in MetadataPair. */
  readonly value: string;
  /** Of a list: each of its values; null for anything else. */
  readonly elements: readonly string[] | null;
}

/** Where requests go whose subset does not exist. */
export type SubsetFallback = 'none' | 'any-host' | 'default-subset';

/** Hosts that have all of the keys make a subset for each combination of their values. */
export interface SubsetSelector {
  /** Ascending, one or more. */
  readonly keys: readonly string[];
  /** `fewer-keys`: tries again with `fallbackKeys` alone; `cluster`: as the cluster has it. */
  readonly fallback: SubsetFallback | 'fewer-keys' | 'cluster';
  /** Ascending. */
  readonly fallbackKeys: readonly string[];
  /** Each subset has one host, the first. */
  readonly isSingleHost: boolean;
}

export interface SubsetSettings {
  /** One or more. */
  readonly selectors: readonly SubsetSelector[];
  readonly fallback: SubsetFallback;
  /** Hosts of the default subset have all of this; those are all hosts when it is empty. */
  readonly defaultSubset: readonly MetadataPair[];
  /** Localities are weighed within subsets, too. */
  readonly weighsLocalities: boolean;
  /** The weight of a locality shrinks with the share of its hosts that is in the subset. */
  readonly scalesLocalityWeights: boolean;
  /** When the fallback has no host to give, any host is picked. */
  readonly panicModeAny: boolean;
  /** A host with a list is in the subsets of all its elements. */
  readonly listAsAny: boolean;
  /** Requests may name a list of what they ask, of which the first that finds a host counts. */
  readonly takesAlternatives: boolean;
  /** Of what a request asks, keys that no selector has beside the others do not count. */
  readonly allowsRedundantKeys: boolean;
}
