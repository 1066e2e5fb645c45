// What metadata tells balancers: the entries of their namespace, and values in a form that can be compared.

import { comparable, type MetadataPair } from '../../base/subset-key.ts';
import type { SubsetCriteria, SubsetValue } from '../../snapshot/index.ts';
import type { Metadata, Struct, Value } from './messages.ts';
import { valueToJson } from './struct.ts';

/** Metadata namespaces that the load balancer reads, the canonical one first. */
const BALANCER_NAMESPACES = ['proxy.lb', 'envoy.lb'] as const;

export type BalancerMetadata = ReadonlyMap<string, Value>;

const NOTHING: BalancerMetadata = new Map();
const NO_VALUES: readonly SubsetValue[] = [];

/** The first namespace that is there counts alone. */
export function balancerMetadata(metadata: Metadata | null): BalancerMetadata {
  if (metadata === null) return NOTHING;
  const byNamespace = metadata.filter_metadata;
  const namespace = BALANCER_NAMESPACES.find((name) => Object.hasOwn(byNamespace, name));
  return namespace === undefined ? NOTHING : new Map(Object.entries(byNamespace[namespace]!.fields));
}

/** Ascending by key. */
export function metadataPairs(fields: BalancerMetadata): readonly MetadataPair[] {
  return [...fields].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => [key, comparable(valueToJson(value))]);
}

export function structPairs(struct: Struct | null): readonly MetadataPair[] {
  return struct === null ? [] : metadataPairs(new Map(Object.entries(struct.fields)));
}

/** @returns null when nothing is asked. */
export function criteriaOf(...levels: readonly (Metadata | null)[]): SubsetCriteria | null {
  const pairs = metadataPairs(new Map(levels.flatMap((metadata) => [...balancerMetadata(metadata)])));
  return pairs.length === 0 ? null : pairs;
}

/** Those of an endpoint's values that subsets go by. */
export function subsetValues(fields: BalancerMetadata, keys: ReadonlySet<string>): readonly SubsetValue[] {
  if (keys.size === 0) return NO_VALUES;
  return [...keys].flatMap((key) => {
    const value = fields.get(key);
    if (value === undefined) return [];
    const json = valueToJson(value);
    return [{ key, value: comparable(json), elements: Array.isArray(json) ? json.map(comparable) : null }];
  });
}
