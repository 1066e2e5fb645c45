// One listener on the main thread: its settings, its snapshot, and all that it was given in shared memory. Owns the stats and
// records of the listener, until it is closed; those of its filter chains are in filter-chains.ts.

import { type Address, formatAddress } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import type { DownstreamTlsSettings, ListenerSettings, ListenerSnapshot, SecuredChain } from '../../snapshot/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { areSameSettings } from '../same-settings.ts';
import type { ChangedContexts } from '../tls/changed-contexts.ts';
import { FilterChains, type FormerChains } from './filter-chains.ts';
import { type ListenerSnapshotDependencies, makeListenerSnapshot } from './listener-snapshot.ts';

export interface ActiveListenerDependencies extends Omit<ListenerSnapshotDependencies, 'holdings'>, HoldingsSource {
  readonly clock: Clock;
}

/** A listener as it comes to its manager. */
export interface PutListener {
  readonly settings: ListenerSettings;
  /** What the settings were made of. */
  readonly message: Uint8Array;
  readonly version: string;
  readonly addedViaApi: boolean;
}

export class ActiveListener {
  readonly name: string;
  readonly addedViaApi: boolean;
  message: Uint8Array;
  version: string;
  updatedMs: number;
  /** With the port in use where the configuration said 0, once it is open. */
  addresses: readonly Address[];
  /** Not after an operator has had it drain, or stop. */
  accepting: 'yes' | 'draining' | 'stopped' = 'yes';
  readonly #clock: Clock;
  readonly #holdings: Holdings;
  readonly #chains: FilterChains;
  #settings: ListenerSettings;
  #snapshot: ListenerSnapshot;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has been allocated then. */
  constructor(id: number, { settings, message, version, addedViaApi }: PutListener, deps: ActiveListenerDependencies) {
    this.name = settings.name;
    this.#settings = settings;
    this.message = message;
    this.version = version;
    this.addedViaApi = addedViaApi;
    this.updatedMs = deps.clock.wallMs();
    this.addresses = settings.addresses;
    this.#clock = deps.clock;
    this.#holdings = new Holdings(deps);
    this.#chains = new FilterChains(deps);
    try {
      this.#chains.replace(settings);
      const ownDeps = { ...deps, holdings: this.#holdings };
      this.#snapshot = makeListenerSnapshot(id, settings, this.#chains.current, ownDeps);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  get settings(): ListenerSettings {
    return this.#settings;
  }

  get snapshot(): ListenerSnapshot {
    return this.#snapshot;
  }

  /** @param changed by filter chain, the default one last. @returns what workers are told of it. */
  secure(changed: ChangedContexts<DownstreamTlsSettings>): readonly SecuredChain[] {
    const secured = this.#chains.secure(changed);
    const { filterChains, defaultFilterChain } = this.#chains.current;
    this.#useChains({
      ...this.#settings,
      filterChains: filterChains.map(({ settings }) => settings),
      defaultFilterChain: defaultFilterChain?.settings ?? null,
    });
    return secured;
  }

  /**
   * Takes in a configuration that differs in filter chains at most, and in what chooses among them. @returns those that are not any more.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then.
   */
  replaceChains({ settings, message, version }: PutListener): FormerChains {
    const former = this.#chains.replace(settings);
    this.#useChains(settings);
    this.message = message;
    this.version = version;
    this.updatedMs = this.#clock.wallMs();
    return former;
  }

  #useChains(settings: ListenerSettings): void {
    this.#settings = settings;
    this.#snapshot = Object.freeze({ ...this.#snapshot, settings, ...this.#chains.current });
  }

  isSame(settings: ListenerSettings): boolean {
    return areSameSettings(settings, this.settings);
  }

  /** But for the filter chains, of which both have some, and what chooses among them. */
  isSameApartFromChains(settings: ListenerSettings): boolean {
    return areSameSettings(withoutChains(settings), withoutChains(this.settings));
  }

  has(address: Address): boolean {
    const wanted = formatAddress(address);
    return this.addresses.some((own) => formatAddress(own) === wanted);
  }

  /** Gives everything back: no worker has a connection of it any more. */
  close(): void {
    this.#chains.close();
    this.#holdings.close();
  }
}

function withoutChains(settings: ListenerSettings): object {
  const { filterChainMatcher: _, ...others } = settings;
  return { ...others, filterChains: [], defaultFilterChain: null };
}
