// One listener on the main thread: its settings, its snapshot, and all that it was given in shared memory. Owns the stats and
// records of the listener, its filter chains and their filters, until it is closed.

import { type Address, formatAddress } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import type {
  DownstreamTlsSettings,
  FilterChainSnapshot,
  ListenerSettings,
  ListenerSnapshot,
  SecuredChain,
} from '../../snapshot/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { areSameSettings } from '../same-settings.ts';
import { type ListenerSnapshotDependencies, makeListenerSnapshot, withOtherTls } from './listener-snapshot.ts';

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
  readonly #holdings: Holdings;
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
    this.#holdings = new Holdings(deps);
    try {
      this.#snapshot = makeListenerSnapshot(id, settings, { ...deps, holdings: this.#holdings });
    } catch (error) {
      this.#holdings.close();
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
  secure(changed: ReadonlyMap<number, DownstreamTlsSettings>): readonly SecuredChain[] {
    const { filterChains, defaultFilterChain } = this.#snapshot;
    const secured: SecuredChain[] = [];
    const withTls = <Chain extends FilterChainSnapshot>(chain: Chain, index: number): Chain => {
      const settings = changed.get(index);
      if (settings === undefined || chain.tls === undefined) return chain;
      const tls = withOtherTls(chain.tls, settings);
      secured.push({ index, tls });
      return { ...chain, settings: { ...chain.settings, tls: settings }, tls };
    };
    const chains = filterChains.map(withTls);
    const last = defaultFilterChain && withTls(defaultFilterChain, filterChains.length);
    this.#settings = {
      ...this.#settings,
      filterChains: chains.map(({ settings }) => settings),
      defaultFilterChain: last?.settings ?? null,
    };
    this.#snapshot = Object.freeze({
      ...this.#snapshot,
      settings: this.#settings,
      filterChains: chains,
      defaultFilterChain: last,
    });
    return secured;
  }

  isSame(settings: ListenerSettings): boolean {
    return areSameSettings(settings, this.settings);
  }

  has(address: Address): boolean {
    const wanted = formatAddress(address);
    return this.addresses.some((own) => formatAddress(own) === wanted);
  }

  /** Gives everything back: no worker has a connection of it any more. */
  close(): void {
    this.#holdings.close();
  }
}
