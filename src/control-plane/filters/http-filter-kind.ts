// HTTP filters that come by discovery: how their configurations are read, and what they count. Without one, and without a default,
// requests of the chain are answered with an error. Main thread.

import type { ConfiguredFilter, PublishedFilter } from '../../snapshot/index.ts';
import type { PublishedKind } from '../discovery/published-kind.ts';
import { type FilterConfigsDependencies, filterKind, type Wanted } from './filter-kind.ts';
import { allocateFilterStats } from './filter-stats.ts';

export interface WantedFilter extends Wanted<ConfiguredFilter> {
  /** Of the connection manager, under which the filter counts. */
  readonly statPrefix: string;
}

export function httpFilterKind(
  deps: FilterConfigsDependencies,
): PublishedKind<WantedFilter, ConfiguredFilter | null, PublishedFilter> {
  const { discoverable, clusterNames } = deps;
  return filterKind<WantedFilter, ConfiguredFilter, PublishedFilter>(deps, {
    read: (views) => discoverable().httpFilters(views, clusterNames()),
    prepare: (place, { statPrefix }, configured, holdings) => {
      const scope = holdings.scope(`http.${statPrefix}.`);
      const cells = configured === null ? {} : allocateFilterStats([configured.filter], [], scope, holdings);
      return { ...place, configured, cells };
    },
  });
}
