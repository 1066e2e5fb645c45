// Network filters that come by discovery: how their configurations are read, and what they count. Without one, and without a default,
// connections of the chain are closed. Main thread.

import type { ConfiguredNetworkFilter, PublishedNetworkFilter } from '../../snapshot/index.ts';
import type { PublishedKind } from '../discovery/published-kind.ts';
import { type FilterConfigsDependencies, filterKind, type Wanted } from './filter-kind.ts';
import { makeNetworkFilter } from './network-filter-cells.ts';

type WantedNetworkFilter = Wanted<ConfiguredNetworkFilter>;

export function networkFilterKind(
  deps: FilterConfigsDependencies,
): PublishedKind<WantedNetworkFilter, ConfiguredNetworkFilter | null, PublishedNetworkFilter> {
  const { discoverable, clusterNames } = deps;
  return filterKind<WantedNetworkFilter, ConfiguredNetworkFilter, PublishedNetworkFilter>(deps, {
    read: (views) => discoverable().networkFilters(views, clusterNames()),
    prepare: (place, _wanted, configured, holdings) => {
      if (configured === null) return { ...place, configured: null };
      const { filter } = configured;
      return { ...place, configured: { filter: filter === null ? null : makeNetworkFilter(filter, holdings) } };
    },
  });
}
