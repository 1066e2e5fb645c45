// The route tables, scopes, filters' configurations and secrets that a listener waits for before it opens. It holds them until its
// filter chains do. Main thread.

import type { ListenerSettings } from '../../snapshot/index.ts';
import { type ResourceLease, releaseAll, whenAllReady } from '../discovery/resource-lease.ts';
import { terminalNeeds } from '../filters/terminal-needs.ts';
import type { TerminalSources } from '../filters/terminal-parts.ts';
import { SecretNeeds } from '../secrets/secret-needs.ts';
import type { SecretLeases } from '../secrets/secrets.ts';
import { listenerStatPrefix } from './listener-snapshot.ts';

export interface ListenerNeedsSources extends TerminalSources {
  readonly secrets: SecretLeases;
}

export class ListenerNeeds {
  readonly #leases: readonly ResourceLease[];

  /** @returns undefined for a listener all of which stands in its configuration. */
  static of(settings: ListenerSettings, sources: ListenerNeedsSources): ListenerNeeds | undefined {
    const { filters, secrets } = sources;
    const { filterChains, defaultFilterChain, listenerFilters } = settings;
    const chains = defaultFilterChain === null ? filterChains : [...filterChains, defaultFilterChain];
    const ofTerminals = chains.flatMap(({ filter }) => terminalNeeds(filter, listenerStatPrefix(settings), sources));
    const ofNetworkFilters = chains.flatMap(({ networkFilters }) =>
      networkFilters.flatMap(({ name, discovered }) =>
        discovered === undefined ? [] : filters.leaseNetwork(name, discovered),
      ),
    );
    const ofListenerFilters = listenerFilters.flatMap((filter) =>
      filter.kind === 'discovered' ? filters.leaseListener(filter.name, filter.discovered) : [],
    );
    const contexts = chains.map(({ tls }) => tls);
    const leases = [
      ...ofTerminals,
      ...ofNetworkFilters,
      ...ofListenerFilters,
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
  whenMet(): Promise<void> {
    return whenAllReady(this.#leases);
  }

  /** Idempotent. */
  release(): void {
    releaseAll(this.#leases);
  }
}
