// What must hold inside lb_subset_config (spec 2.8, LbSubsetSelector).

import { Cluster_LbSubsetConfig_LbSubsetSelector_LbSubsetSelectorFallbackPolicy as FallbackPolicy } from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';
import type { LbSubsetConfig, LbSubsetSelector } from './messages.ts';

/** @param weighsLocalities whether the cluster does. */
export function checkSubsetConfig(
  config: LbSubsetConfig | null,
  weighsLocalities: boolean,
  at: string,
  faults: FaultSink,
): void {
  if (config === null) return;
  const { locality_weight_aware: isAware, scale_locality_weight: scales } = config;
  if (isAware && !weighsLocalities) {
    faults.error(`${at}.locality_weight_aware`, 'needs common_lb_config.locality_weighted_lb_config');
  }
  if (scales && !isAware) faults.warning(`${at}.scale_locality_weight`, 'ignored without locality_weight_aware');
  for (const [index, selector] of config.subset_selectors.entries()) {
    const selectorAt = `${at}.subset_selectors[${index}]`;
    checkFallbackKeys(selector, `${selectorAt}.fallback_keys_subset`, faults);
    checkSingleHost(selector, `${selectorAt}.single_host_per_subset`, faults);
    if (selector.keys.length === 0) faults.warning(`${selectorAt}.keys`, 'empty: the selector makes no subset');
  }
}

/** The value of one key is meant to name a host; the peers keep one host of each combination, too. */
function checkSingleHost({ keys, single_host_per_subset }: LbSubsetSelector, at: string, faults: FaultSink): void {
  if (!single_host_per_subset || keys.length <= 1) return;
  faults.warning(at, `meant for one key; with ${keys.length}, each combination of values keeps one host`);
}

function checkFallbackKeys(selector: LbSubsetSelector, at: string, faults: FaultSink): void {
  const { keys, fallback_keys_subset: fallback } = selector;
  const takesKeys = selector.fallback_policy === FallbackPolicy.KEYS_SUBSET;
  if (takesKeys && fallback.length === 0) faults.error(at, 'fallback_policy KEYS_SUBSET needs at least one key');
  if (!takesKeys && fallback.length > 0) faults.error(at, 'needs fallback_policy KEYS_SUBSET');
  for (const key of fallback) {
    if (!keys.includes(key)) faults.error(at, `${quote(key)} is not one of keys`);
  }
  if (takesKeys && new Set(fallback).size >= new Set(keys).size && fallback.length > 0) {
    faults.error(at, 'must hold fewer keys than keys');
  }
}
