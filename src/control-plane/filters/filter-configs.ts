// The configurations of HTTP filters that come by discovery: one for each name and source, whoever wants it, for as long as anybody
// does. Main thread.

import type { DiscoveredFilter, PublishedFilter } from '../../snapshot/index.ts';
import { cleanStatName } from '../../stats/index.ts';
import { PublishedResources } from '../discovery/published-resources.ts';
import type { PublishedLease } from '../discovery/resource-lease.ts';
import {
  type FilterConfigsDependencies,
  type FilterContent,
  httpFilterKind,
  type WantedFilter,
} from './http-filter-kind.ts';

export interface FilterLeases {
  /** @param name of the filter in its chain. @param statPrefix of the connection manager, under which the filter counts. */
  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): PublishedLease;
}

export class FilterConfigs
  extends PublishedResources<WantedFilter, FilterContent, PublishedFilter>
  implements FilterLeases
{
  constructor(deps: FilterConfigsDependencies) {
    let lastId = 0;
    super(httpFilterKind(deps), deps, () => ++lastId);
  }

  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): PublishedLease {
    const ownPrefix = `extension_config_discovery.http_filter.${cleanStatName(name)}.`;
    return this.leaseOne({ name, source: wanted.source, statPrefix: ownPrefix }, { wanted, statPrefix });
  }
}
