// The route tables, scopes, filters' configurations and secrets that a listener waits for before it opens. It holds them until its
// filter chains do. Main thread.

import type { ListenerSettings } from '../../snapshot/index.ts';
import type { ResourceLease } from '../discovery/resource-lease.ts';
import type { FilterLeases } from '../filters/filter-configs.ts';
import type { RouteLeases } from '../routes/route-tables.ts';
import { SecretNeeds } from '../secrets/secret-needs.ts';
import type { SecretLeases } from '../secrets/secrets.ts';
import { httpFiltersOf } from './listener-snapshot.ts';

export interface ListenerNeedsSources {
  readonly routes: RouteLeases;
  readonly filters: FilterLeases;
  readonly secrets: SecretLeases;
}

export class ListenerNeeds {
  readonly #leases: readonly ResourceLease[];

  /** @returns undefined for a listener all of which stands in its configuration. */
  static of(settings: ListenerSettings, { routes, filters, secrets }: ListenerNeedsSources): ListenerNeeds | undefined {
    const { filterChains, defaultFilterChain } = settings;
    const chains = defaultFilterChain === null ? filterChains : [...filterChains, defaultFilterChain];
    const ofRoutes = chains.flatMap(({ filter }) => {
      if (filter.kind !== 'http-connection-manager') return [];
      const { discoveredRoutes, scopedRoutes, statPrefix } = filter;
      if (scopedRoutes !== undefined) return routes.leaseScopes(scopedRoutes, statPrefix);
      return discoveredRoutes === undefined ? [] : routes.lease(discoveredRoutes, statPrefix);
    });
    const ofFilters = chains.flatMap(({ filter }) => {
      if (filter.kind !== 'http-connection-manager') return [];
      return httpFiltersOf(filter).flatMap(({ name, configName = name, discovered }) =>
        discovered === undefined ? [] : filters.lease(configName, discovered, filter.statPrefix),
      );
    });
    const ofNetworkFilters = chains.flatMap(({ networkFilters }) =>
      networkFilters.flatMap(({ name, discovered }) =>
        discovered === undefined ? [] : filters.leaseNetwork(name, discovered),
      ),
    );
    const contexts = chains.map(({ tls }) => tls);
    const leases = [
      ...ofRoutes,
      ...ofFilters,
      ...ofNetworkFilters,
      ...(SecretNeeds.of(contexts, secrets)?.leases ?? []),
    ];
    return leases.length === 0 ? undefined : new ListenerNeeds(leases);
  }

  private constructor(leases: readonly ResourceLease[]) {
    this.#leases = leases;
  }

  /** Those that have not come, as listings name them. */
  get targets(): readonly string[] {
    return [...new Set(this.#leases.flatMap(({ target, isReady }) => (isReady ? [] : target)))];
  }

  /** Resolves when none is missing, or waited for any longer; perhaps never behind `release`. */
  async whenMet(): Promise<void> {
    for (const { whenReady } of this.#leases) await whenReady;
  }

  /** Idempotent. */
  release(): void {
    for (const lease of this.#leases) lease.release();
  }
}
