// The members of one cluster by address or name, kept over updates: who stays keeps its places in shared memory, and with them
// its stats and, in the workers, its connections. Main thread.

import { memberKey } from '../../base/address.ts';
import type { HostSettings } from '../../snapshot/index.ts';
import type { ClusterPlaces } from './active-cluster.ts';
import { ActiveHost } from './active-host.ts';

export interface HostSetChange {
  readonly added: ReadonlySet<ActiveHost>;
  /** Out of the set, and to be retired once the workers have been told. */
  readonly removed: readonly ActiveHost[];
  /** Puts everything back, for a change that no worker has been told of; retires what was added. */
  undo(): void;
}

export class HostSet {
  readonly #places: ClusterPlaces;
  readonly #unchecked: number;
  readonly #isWatched: boolean;
  /** In the order of the last update. */
  #hosts = new Map<string, ActiveHost>();
  /** The same; undefined when one has come or gone since it was made. */
  #list: readonly ActiveHost[] | undefined;
  /** Whose flags have changed; perhaps some that have left. */
  readonly #news = new Set<ActiveHost>();

  /**
   * @param unchecked flags of new hosts that will be checked.
   * @param isWatched an outlier detector wants to know of them.
   */
  constructor(places: ClusterPlaces, unchecked: number, isWatched: boolean) {
    this.#places = places;
    this.#unchecked = unchecked;
    this.#isWatched = isWatched;
  }

  /** In the order of the last update. The same list as long as the members and their settings are the same. */
  get hosts(): readonly ActiveHost[] {
    this.#list ??= [...this.#hosts.values()];
    return this.#list;
  }

  /** Hosts whose flags have changed since this was asked last. */
  takeHealthNews(): readonly ActiveHost[] {
    const news = [...this.#news];
    this.#news.clear();
    return news;
  }

  get size(): number {
    return this.#hosts.size;
  }

  /** By its address or name. */
  get(key: string): ActiveHost | undefined {
    return this.#hosts.get(key);
  }

  /** Adds a member that is not there. @throws WeirError WEIR_SHARED_MEMORY_FULL; the set is as before then. */
  add(member: HostSettings): ActiveHost {
    const host = this.#make(member);
    this.#hosts.set(memberKey(member), host);
    this.#list = undefined;
    return host;
  }

  /** Takes members out; they are to be retired once the workers have been told. */
  remove(hosts: readonly ActiveHost[]): void {
    for (const { snapshot } of hosts) this.#hosts.delete(memberKey(snapshot));
    this.#list = undefined;
  }

  /**
   * Takes over the members; each comes once.
   * @returns undefined when nothing has changed.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; the set is as before then.
   */
  update(members: readonly HostSettings[]): HostSetChange | undefined {
    const hosts = new Map<string, ActiveHost>();
    const added = this.#makeNew(members, hosts);
    const updated = new Map<ActiveHost, HostSettings>();
    for (const [at, host] of [...hosts.values()].entries()) {
      const { snapshot } = host;
      if (!added.has(host) && host.update(members[at]!)) updated.set(host, snapshot);
    }
    const former = this.#hosts;
    const removed = [...former].filter(([key, host]) => hosts.get(key) !== host).map(([, host]) => host);
    if (added.size === 0 && updated.size === 0 && removed.length === 0) return undefined;
    this.#hosts = hosts;
    this.#list = undefined;
    const undo = (): void => {
      this.#hosts = former;
      this.#list = undefined;
      for (const [host, settings] of updated) host.update(settings);
      for (const host of added) host.retire();
    };
    return { added, removed, undo };
  }

  #make(member: HostSettings): ActiveHost {
    return new ActiveHost(member, this.#places, this.#unchecked, this.#isWatched, this.#news);
  }

  /** Puts all members into `hosts`, making those that are new; all of them are made or none. */
  #makeNew(members: readonly HostSettings[], hosts: Map<string, ActiveHost>): ReadonlySet<ActiveHost> {
    const added = new Set<ActiveHost>();
    try {
      for (const member of members) {
        const key = memberKey(member);
        const known = this.#hosts.get(key);
        if (known?.isSame(member)) {
          hosts.set(key, known);
          continue;
        }
        const host = this.#make(member);
        added.add(host);
        hosts.set(key, host);
      }
    } catch (error) {
      // No worker has seen them.
      this.#places.memory.reclaimer.collect(() => {
        for (const host of added) host.retire();
      })();
      throw error;
    }
    return added;
  }
}
