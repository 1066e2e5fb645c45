// HTTP filters that come by discovery (ECDS): how their configurations are read, published and counted. Where there is none, or none any
// more, the chain's default takes its place, and where that has none its requests are answered with an error. Main thread.

import type { ConfiguredFilter, DiscoveredFilter, PublishedFilter } from '../../snapshot/index.ts';
import { EXTENSION_DISCOVERY_STATS } from '../../stats/index.ts';
import type { ReferringDependencies } from '../discovery/feed.ts';
import { nothingBeside, type PublishedKind, type ResourceEvent } from '../discovery/published-kind.ts';
import { allocateFilterStats } from './filter-stats.ts';

/** Brings configurations to the workers; WorkerPool does. */
export interface FiltersPublisher {
  /** @param onGone called once, when no request uses what was of its id before it. */
  publishFilter(filter: PublishedFilter, onGone: () => void): void;
  removeFilter(id: number, onGone: () => void): void;
}

export interface FilterConfigsDependencies extends ReferringDependencies {
  readonly workers: FiltersPublisher;
}

export interface WantedFilter {
  readonly wanted: DiscoveredFilter;
  /** Of the connection manager, under which the filter counts. */
  readonly statPrefix: string;
}

/** Null for none. */
export type FilterContent = ConfiguredFilter | null;

const COUNTERS = { 'taken-over': 'config_reload', refused: 'config_fail', unfit: 'config_conflict' } as const;

export function httpFilterKind(
  deps: FilterConfigsDependencies,
): PublishedKind<WantedFilter, FilterContent, PublishedFilter> {
  const { workers, discoverable, clusterNames } = deps;
  return {
    name: 'extension configuration',
    target: 'FilterConfigSubscription init',
    field: 'typed_extension_config',
    withoutIt: 'go by its default',
    defaults: {
      of: ({ wanted }) => wanted.byDefault ?? null,
      areFirst: ({ wanted }) => wanted.beginsWithDefault,
    },
    read: (views) => discoverable().httpFilters(views, clusterNames()),
    prepare: (id, { statPrefix }, configured, holdings) => {
      const scope = holdings.scope(`http.${statPrefix}.`);
      const cells = configured === null ? {} : allocateFilterStats([configured.filter], [], scope, holdings);
      return { id, configured, cells };
    },
    publish: (filter, onGone) => workers.publishFilter(filter, onGone),
    remove: (id, onGone) => workers.removeFilter(id, onGone),
    counter: (scope) => {
      const block = scope.allocate(EXTENSION_DISCOVERY_STATS);
      return (event: ResourceEvent) => {
        if (event !== 'absent') block.add(COUNTERS[event]);
      };
    },
    beside: nothingBeside,
  };
}
