// LbSubsetConfig message → SubsetSettings. What must hold in it is in subset-checks.ts.

import type { SubsetFallback, SubsetSelector, SubsetSettings } from '../../snapshot/index.ts';
import {
  Cluster_LbSubsetConfig_LbSubsetFallbackPolicy as FallbackPolicy,
  Cluster_LbSubsetConfig_LbSubsetMetadataFallbackPolicy as MetadataFallback,
  Cluster_LbSubsetConfig_LbSubsetSelector_LbSubsetSelectorFallbackPolicy as SelectorFallbackPolicy,
} from '../proto/generated/enums.ts';
import { structPairs } from './balancer-metadata.ts';
import type { BalancedCluster } from './balancing-policy.ts';
import type { Cluster, LbSubsetSelector } from './messages.ts';

const FALLBACKS: ReadonlyMap<number, SubsetFallback> = new Map([
  [FallbackPolicy.NO_FALLBACK, 'none'],
  [FallbackPolicy.ANY_ENDPOINT, 'any-host'],
  [FallbackPolicy.DEFAULT_SUBSET, 'default-subset'],
]);

const SELECTOR_FALLBACKS: ReadonlyMap<number, SubsetSelector['fallback']> = new Map([
  [SelectorFallbackPolicy.NOT_DEFINED, 'cluster'],
  [SelectorFallbackPolicy.NO_FALLBACK, 'none'],
  [SelectorFallbackPolicy.ANY_ENDPOINT, 'any-host'],
  [SelectorFallbackPolicy.DEFAULT_SUBSET, 'default-subset'],
  [SelectorFallbackPolicy.KEYS_SUBSET, 'fewer-keys'],
]);

/** @returns null when the cluster has no subsets: without selectors there are none. */
export function convertSubsets({
  lb_subset_config: message,
  allows_redundant_keys,
}: BalancedCluster): SubsetSettings | null {
  if (message === null || message.subset_selectors.length === 0) return null;
  return {
    selectors: message.subset_selectors.map(convertSelector),
    fallback: FALLBACKS.get(message.fallback_policy) ?? 'none',
    defaultSubset: structPairs(message.default_subset),
    weighsLocalities: message.locality_weight_aware,
    scalesLocalityWeights: message.scale_locality_weight,
    panicModeAny: message.panic_mode_any,
    listAsAny: message.list_as_any,
    takesAlternatives: message.metadata_fallback_policy === MetadataFallback.FALLBACK_LIST,
    allowsRedundantKeys: allows_redundant_keys,
  };
}

function convertSelector(message: LbSubsetSelector): SubsetSelector {
  return {
    keys: ascending(message.keys),
    fallback: SELECTOR_FALLBACKS.get(message.fallback_policy) ?? 'cluster',
    fallbackKeys: ascending(message.fallback_keys_subset),
    isSingleHost: message.single_host_per_subset,
  };
}

function ascending(keys: readonly string[]): readonly string[] {
  return [...new Set(keys)].sort();
}

/** All keys that some subset goes by. */
export function subsetKeys({ lb_subset_config: message }: Cluster): ReadonlySet<string> {
  if (message === null) return new Set();
  const { subset_selectors: selectors, default_subset } = message;
  return new Set([...selectors.flatMap(({ keys }) => keys), ...Object.keys(default_subset?.fields ?? {})]);
}
