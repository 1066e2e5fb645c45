// Which hosts make which subset of a cluster, by what their metadata says. Worked out when members change. Pure.

import { type MetadataPair, subsetKey } from '../../../base/subset-key.ts';
import type { HostSettings, SubsetSelector, SubsetSettings, SubsetValue } from '../../../snapshot/index.ts';

type Member = Pick<HostSettings, 'subsetValues'>;

export interface Subsets {
  /** Indexes of hosts, by the name of the subset; none is empty. */
  readonly members: ReadonlyMap<string, readonly number[]>;
  /** Hosts left out because their subset takes only one. */
  readonly duplicates: number;
}

export function subsetsOf(hosts: readonly Member[], { selectors, listAsAny }: SubsetSettings): Subsets {
  const members = new Map<string, number[]>();
  let duplicates = 0;
  for (const { keys, isSingleHost } of firstOfEach(selectors)) {
    for (const [index, { subsetValues }] of hosts.entries()) {
      for (const pairs of combinations(subsetValues, keys, listAsAny)) {
        const name = subsetKey(pairs);
        const known = members.get(name);
        if (known === undefined) members.set(name, [index]);
        else if (isSingleHost) duplicates += 1;
        // A list may name a value twice.
        else if (known.at(-1) !== index) known.push(index);
      }
    }
  }
  return { members, duplicates };
}

/** Of selectors with the same keys, the first one counts. */
function firstOfEach(selectors: readonly SubsetSelector[]): Iterable<SubsetSelector> {
  const byKeys = new Map<string, SubsetSelector>();
  for (const selector of selectors) {
    const name = selector.keys.join('\0');
    if (!byKeys.has(name)) byKeys.set(name, selector);
  }
  return byKeys.values();
}

/** What a host says under all of the keys: more than one combination when lists stand for their elements. */
function combinations(values: readonly SubsetValue[], keys: readonly string[], listAsAny: boolean): MetadataPair[][] {
  let result: MetadataPair[][] = [[]];
  for (const key of keys) {
    const value = values.find((each) => each.key === key);
    if (value === undefined) return [];
    const choices = listAsAny && value.elements !== null ? value.elements : [value.value];
    result = result.flatMap((pairs) => choices.map((choice): MetadataPair[] => [...pairs, [key, choice]]));
  }
  return result;
}

/** Indexes of the hosts that have all of this. */
export function hostsHaving(hosts: readonly Member[], wanted: readonly MetadataPair[], listAsAny: boolean): number[] {
  const matches = ({ subsetValues }: Member): boolean =>
    wanted.every(([key, value]) => {
      const found = subsetValues.find((each) => each.key === key);
      return found?.value === value || (listAsAny && (found?.elements?.includes(value) ?? false));
    });
  return hosts.flatMap((host, index) => (matches(host) ? [index] : []));
}
