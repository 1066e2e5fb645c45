// The route tables that a listener waits for before it opens. It holds them until its filter chains do. Main thread.

import type { ListenerSettings } from '../../snapshot/index.ts';
import type { RouteLease, RouteLeases } from '../routes/route-tables.ts';

export class RouteNeeds {
  readonly #leases: readonly RouteLease[];

  /** @returns undefined for a listener whose routes all stand in its configuration. */
  static of(settings: ListenerSettings, routes: RouteLeases): RouteNeeds | undefined {
    const { filterChains, defaultFilterChain } = settings;
    const chains = defaultFilterChain === null ? filterChains : [...filterChains, defaultFilterChain];
    const leases = chains.flatMap(({ filter }) => {
      if (filter.kind !== 'http-connection-manager') return [];
      const { discoveredRoutes, scopedRoutes, statPrefix } = filter;
      if (scopedRoutes !== undefined) return routes.leaseScopes(scopedRoutes, statPrefix);
      return discoveredRoutes === undefined ? [] : routes.lease(discoveredRoutes, statPrefix);
    });
    return leases.length === 0 ? undefined : new RouteNeeds(leases);
  }

  private constructor(leases: readonly RouteLease[]) {
    this.#leases = leases;
  }

  /** Names of tables and scopes that have not come. */
  get missing(): readonly string[] {
    return [...new Set(this.#leases.flatMap(({ name, isReady }) => (isReady ? [] : name)))];
  }

  /** The same as listings name them. */
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
