// Whose connections to a host a client's requests go over: those of all clients, those of all that speak HTTP/2, or the client's
// own, as the cluster wants it. What each of these has is a group: pools by routing priority, or by the name of a server, too.

import type { ClusterPriority } from '../../../wasm/shared-records.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import { ClientPools } from './client-pools.ts';
import type { PoolGroup } from './host-pools.ts';

export interface PoolSharing {
  /** Each client has connections of its own. */
  readonly isPerClient: boolean;
  /** Requests go on in the protocol that they came in. */
  readonly isLikeClient: boolean;
}

export class PoolChoice<Group extends PoolGroup> implements PoolGroup {
  /** Of all clients without another one. */
  readonly shared: Group;
  /** Of clients that speak HTTP/2, where that decides; null where they have no others. */
  readonly #http2: Group | null;
  /** Null where clients share connections. */
  readonly #clients: ClientPools<Group> | null;
  readonly #all: readonly PoolGroup[];

  /** @param make of a client, or of nobody in particular. */
  constructor(
    { isPerClient, isLikeClient }: PoolSharing,
    make: (downstream: DownstreamConnection | null, isHttp2: boolean) => Group,
  ) {
    this.shared = make(null, false);
    this.#http2 = isLikeClient ? make(null, true) : null;
    this.#clients = isPerClient ? new ClientPools((downstream) => make(downstream, downstream.isHttp2)) : null;
    this.#all = [this.shared, this.#http2, this.#clients].filter((group) => group !== null);
  }

  /** @param downstream whom a request is sent for; null for nobody. */
  of(downstream: DownstreamConnection | null): Group {
    if (this.#clients === null || downstream === null || downstream.isClosed) {
      return downstream?.isHttp2 === true ? (this.#http2 ?? this.shared) : this.shared;
    }
    return this.#clients.of(downstream);
  }

  get isUsed(): boolean {
    return this.#all.some((group) => group.isUsed);
  }

  closeUnused(priority: ClusterPriority): boolean {
    return this.#all.some((group) => group.closeUnused(priority));
  }

  forgetUnused(): void {
    for (const group of this.#all) group.forgetUnused();
  }

  renew(): void {
    for (const group of this.#all) group.renew();
  }

  drain(): void {
    for (const group of this.#all) group.drain();
  }

  close(): void {
    for (const group of this.#all) group.close();
  }
}
