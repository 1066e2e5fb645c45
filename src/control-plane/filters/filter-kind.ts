// What is the same of all filters that come by discovery (ECDS), whatever they filter: where there is none, or none any more, the chain's
// default takes its place. Main thread.

import type { DiscoveredFilter, PublishedExtension, PublishedPlace } from '../../snapshot/index.ts';
import { EXTENSION_DISCOVERY_STATS } from '../../stats/index.ts';
import type { ReferringDependencies } from '../discovery/feed.ts';
import { nothingBeside, type PublishedKind, type ResourceEvent } from '../discovery/published-kind.ts';
import type { Holdings } from '../holdings.ts';

/** Brings configurations to the workers; WorkerPool does. */
export interface FiltersPublisher {
  /** @param onGone called once, when nothing uses what was of its id before it. */
  publishFilter(filter: PublishedExtension, onGone: () => void): void;
  removeFilter(id: number, onGone: () => void): void;
}

export interface FilterConfigsDependencies extends ReferringDependencies {
  readonly workers: FiltersPublisher;
}

export interface Wanted<Configured> {
  readonly wanted: DiscoveredFilter<Configured>;
}

const COUNTERS = { 'taken-over': 'config_reload', refused: 'config_fail', unfit: 'config_conflict' } as const;

let lastEdition = 0;

interface OwnParts<Want extends Wanted<Configured>, Configured, Published extends PublishedExtension>
  extends Pick<PublishedKind<Want, Configured | null, Published>, 'read'> {
  /** As of PublishedKind. @param place that of what is made. */
  prepare(place: PublishedPlace, wanted: Want, configured: Configured | null, holdings: Holdings): Published;
}

/** All but how such filters are read and made. */
export function filterKind<Want extends Wanted<Configured>, Configured, Published extends PublishedExtension>(
  { workers }: Pick<FilterConfigsDependencies, 'workers'>,
  own: OwnParts<Want, Configured, Published>,
): PublishedKind<Want, Configured | null, Published> {
  return {
    name: 'extension configuration',
    target: 'FilterConfigSubscription init',
    field: 'typed_extension_config',
    withoutIt: 'go by its default',
    defaults: {
      of: ({ wanted }) => wanted.byDefault ?? null,
      areFirst: ({ wanted }) => wanted.beginsWithDefault,
    },
    read: own.read,
    prepare: (id, ...rest) => own.prepare({ id, edition: ++lastEdition }, ...rest),
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
