// The connections of one host that were made for the name of a server each, in clusters where requests say that name: what was
// agreed on for one name carries no request for another. A name that nobody uses is forgotten with its last connection.

import type { ClusterPriority } from '../../../wasm/shared-records.ts';
import type { ServerNames } from '../request-server-name.ts';
import type { DrainablePool, HostPools, PoolGroup } from './host-pools.ts';

/** Clients choose the names. */
export const MAX_NAMES = 256;

export class NamedPools<Pool extends DrainablePool> implements PoolGroup {
  readonly #make: (names: ServerNames) => HostPools<Pool>;
  readonly #byName = new Map<string, HostPools<Pool>>();
  /** The host has left: what is made from now on drains at once. */
  #isDraining = false;

  constructor(make: (names: ServerNames) => HostPools<Pool>) {
    this.#make = make;
  }

  get size(): number {
    return this.#byName.size;
  }

  get isUsed(): boolean {
    return this.#all().some((pools) => pools.isUsed);
  }

  /** @returns null when as many names as may be are in use. */
  of(names: ServerNames): HostPools<Pool> | null {
    const name = `${names.sentName} ${names.verifiedName}`;
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    // Of those of a client, nobody tells when one is done with.
    this.forgetUnused();
    if (this.#byName.size >= MAX_NAMES) this.#closeUnusedName();
    if (this.#byName.size >= MAX_NAMES) return null;
    const pools = this.#make(names);
    if (this.#isDraining) pools.drain();
    this.#byName.set(name, pools);
    return pools;
  }

  forgetUnused(): void {
    for (const [name, pools] of this.#byName) if (!pools.isUsed) this.#byName.delete(name);
  }

  closeUnused(priority: ClusterPriority): boolean {
    return this.#all().some((pools) => pools.closeUnused(priority));
  }

  renew(): void {
    for (const pools of this.#all()) pools.renew();
  }

  drain(): void {
    this.#isDraining = true;
    for (const pools of this.#all()) pools.drain();
  }

  close(): void {
    for (const pools of this.#all()) pools.close();
  }

  /** The longest known one that carries nothing. */
  #closeUnusedName(): void {
    for (const pools of this.#all()) {
      pools.closeIdle();
      if (!pools.isUsed) break;
    }
    this.forgetUnused();
  }

  #all(): HostPools<Pool>[] {
    return [...this.#byName.values()];
  }
}
