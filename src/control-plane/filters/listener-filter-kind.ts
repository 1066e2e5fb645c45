// Listener filters that come by discovery: how their configurations are read, and what they count. Without one, and without a default,
// connections of the listener are closed. Main thread.

import type { ConfiguredListenerFilter, PublishedListenerFilter } from '../../snapshot/index.ts';
import type { PublishedKind } from '../discovery/published-kind.ts';
import { type FilterConfigsDependencies, filterKind, type Wanted } from './filter-kind.ts';
import { makeListenerFilter } from './listener-filter-cells.ts';

type WantedListenerFilter = Wanted<ConfiguredListenerFilter>;

export function listenerFilterKind(
  deps: FilterConfigsDependencies,
): PublishedKind<WantedListenerFilter, ConfiguredListenerFilter | null, PublishedListenerFilter> {
  const { discoverable, clusterNames } = deps;
  return filterKind<WantedListenerFilter, ConfiguredListenerFilter, PublishedListenerFilter>(deps, {
    read: (views) => discoverable().listenerFilters(views, clusterNames()),
    prepare: (place, _wanted, configured, holdings) => ({
      ...place,
      configured: configured && makeListenerFilter(configured.filter, holdings),
    }),
  });
}
