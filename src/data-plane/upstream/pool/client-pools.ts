// The connections of one host that belong to one client each, in clusters that want that: nobody else's request ever goes
// out on them, and they end with the connection of the client.
//
//   OPEN ──client gone──► ENDING: idle connections close, the others with what they carry ──last one gone──► forgotten

import type { ClusterPriority } from '../../../wasm/shared-records.ts';
import type { DownstreamConnection, DownstreamWatcher } from '../../network/downstream-connection.ts';
import type { PoolGroup } from './host-pools.ts';

export class ClientPools<Group extends PoolGroup> implements PoolGroup, DownstreamWatcher {
  readonly #make: (downstream: DownstreamConnection) => Group;
  readonly #open = new Map<DownstreamConnection, Group>();
  readonly #ending = new Set<Group>();
  /** The host has left: what is made from now on drains at once. */
  #isDraining = false;

  constructor(make: (downstream: DownstreamConnection) => Group) {
    this.#make = make;
  }

  /** Clients with connections of their own, also those that have left some behind. */
  get size(): number {
    return this.#open.size + this.#ending.size;
  }

  get isUsed(): boolean {
    for (const pools of this.#open.values()) if (pools.isUsed) return true;
    return this.#ending.size > 0;
  }

  of(downstream: DownstreamConnection): Group {
    let pools = this.#open.get(downstream);
    if (pools === undefined) {
      pools = this.#make(downstream);
      if (this.#isDraining) pools.drain();
      this.#open.set(downstream, pools);
      downstream.watch(this);
    }
    return pools;
  }

  onDownstreamClosed(downstream: DownstreamConnection): void {
    const pools = this.#open.get(downstream)!;
    this.#open.delete(downstream);
    this.#ending.add(pools);
    pools.drain();
    this.forgetUnused();
  }

  /** What a client that is here does not use any more goes with it. */
  forgetUnused(): void {
    for (const pools of this.#ending) if (!pools.isUsed) this.#ending.delete(pools);
  }

  /** One that carries nothing, whose client may be there. */
  closeUnused(priority: ClusterPriority): boolean {
    for (const pools of this.#open.values()) if (pools.closeUnused(priority)) return true;
    return false;
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

  #all(): Group[] {
    return [...this.#open.values(), ...this.#ending];
  }
}
