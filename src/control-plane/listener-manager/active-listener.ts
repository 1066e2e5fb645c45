// One listener on the main thread: its settings, its snapshot, and all that it was given in shared memory. Owns the stats and
// records of the listener, its filter chains and their filters, until it is closed.

import { type Address, formatAddress } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import type { ListenerSettings, ListenerSnapshot } from '../../snapshot/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
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
  readonly settings: ListenerSettings;
  readonly addedViaApi: boolean;
  readonly snapshot: ListenerSnapshot;
  message: Uint8Array;
  version: string;
  updatedMs: number;
  /** With the port in use where the configuration said 0, once it is open. */
  addresses: readonly Address[];
  /** Not after an operator has had it drain, or stop. */
  accepting: 'yes' | 'draining' | 'stopped' = 'yes';
  readonly #holdings: Holdings;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has been allocated then. */
  constructor(id: number, { settings, message, version, addedViaApi }: PutListener, deps: ActiveListenerDependencies) {
    this.name = settings.name;
    this.settings = settings;
    this.message = message;
    this.version = version;
    this.addedViaApi = addedViaApi;
    this.updatedMs = deps.clock.wallMs();
    this.addresses = settings.addresses;
    this.#holdings = new Holdings(deps);
    try {
      this.snapshot = makeListenerSnapshot(id, settings, { ...deps, holdings: this.#holdings });
    } catch (error) {
      this.#holdings.close();
      throw error;
    }
  }

  isSame(settings: ListenerSettings): boolean {
    return JSON.stringify(settings) === JSON.stringify(this.settings);
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
