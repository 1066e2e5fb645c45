// What the hosts of a cluster are hashed by, and the order of that, which hash tables are built in. To sort ten thousand keys
// takes longer than to build a table: it is done when members have changed, and not with each change of a host's health.

import { formatAddress } from '../../../base/address.ts';
import { type HashedHost, orderByKey } from '../../../wasm/lb.ts';
import type { ListedHost } from './priority-members.ts';

export class HashKeys {
  readonly #usesHostname: boolean;
  #hosts: readonly ListedHost[] = [];
  #keyed: readonly HashedHost[] = [];
  /** Where each host stands in the order of all keys. */
  #ranks: Uint32Array = new Uint32Array();

  constructor(usesHostname: boolean) {
    this.#usesHostname = usesHostname;
  }

  /** @param hosts of the cluster; the same list as long as they and their settings are the same. */
  of(hosts: readonly ListedHost[]): this {
    if (hosts === this.#hosts) return this;
    this.#hosts = hosts;
    this.#keyed = hosts.map((host) => ({ key: this.#keyOf(host) }));
    this.#ranks = new Uint32Array(hosts.length);
    for (const [rank, index] of orderByKey(this.#keyed).entries()) this.#ranks[index] = rank;
    return this;
  }

  /** @param indexes of some of the hosts, each once. */
  keyed(indexes: readonly number[]): readonly HashedHost[] {
    return indexes.map((index) => this.#keyed[index]!);
  }

  /** Positions among `indexes`, by the keys of the hosts there. */
  order(indexes: readonly number[]): Uint32Array {
    const positions = new Int32Array(this.#ranks.length).fill(-1);
    for (const [at, index] of indexes.entries()) positions[this.#ranks[index]!] = at;
    return Uint32Array.from(positions.filter((at) => at !== -1));
  }

  #keyOf({ hashKey, hostname, address }: ListedHost): string {
    return hashKey || (this.#usesHostname && hostname) || formatAddress(address);
  }
}
