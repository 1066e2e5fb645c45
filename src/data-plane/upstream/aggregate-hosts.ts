// The hosts of an aggregate cluster, which are those of other clusters. Main says what share of the requests each priority of
// theirs takes; the cluster that has it chooses among its hosts. Step 4 of the request flow.

import type { Random } from '../../base/random.ts';
import type { AggregateShare, AggregateShares } from '../../snapshot/index.ts';
import type { Cluster } from './cluster.ts';
import type { Host } from './host.ts';
import type { HostSelection } from './host-selection.ts';
import { contextOf, type DrawContext, type PickContext, type PickPlace } from './load-balancer/pick-context.ts';
import { randomPercent, SharesPicker } from './load-balancer/shares-picker.ts';
import { NO_HOST } from './load-balancer/source-picker.ts';
import type { OverrideHost } from './override-hosts.ts';

const NOTHING_KNOWN = contextOf(null);

/** What one share asks of its cluster; made once. */
class SharedPlace implements DrawContext {
  readonly cluster: string;
  readonly place: PickPlace;
  /** Spent are priorities of the aggregate. */
  readonly spentPriorities = new Set<number>();
  draw = 0;

  constructor({ cluster, ownPriority: priority, isDegraded }: AggregateShare) {
    this.cluster = cluster;
    this.place = { priority, isDegraded };
  }
}

type AggregateMember = Pick<Host, 'priority'> & { readonly cluster: Pick<Host['cluster'], 'name'> };

/** A cluster whose hosts the aggregate has, as it needs it. */
type SharedCluster = Pick<Cluster, 'hostAt' | 'overriddenHost'>;

export class AggregateHosts {
  readonly #random: Random;
  readonly #find: (name: string) => SharedCluster | undefined;
  /** Those whose hosts these are, in the order of their first priorities. */
  #clusters!: readonly string[];
  /** By cluster and its own priority: the first one here. */
  #priorities!: ReadonlyMap<string, readonly number[]>;
  #picker!: SharesPicker;
  #places!: readonly SharedPlace[];

  /** @param find clusters of this worker. */
  constructor(random: Random, find: (name: string) => SharedCluster | undefined, shares: AggregateShares) {
    this.#random = random;
    this.#find = find;
    this.update(shares);
  }

  update(shares: AggregateShares): void {
    this.#priorities = prioritiesByCluster(shares);
    this.#clusters = [...this.#priorities.keys()];
    this.#places = shares.shares.map((share) => new SharedPlace(share));
    const picked = shares.shares.map((share, index) => ({ ...share, isPanic: false, picker: { pick: () => index } }));
    // Panic is for those to count who have the hosts.
    this.#picker = new SharesPicker(picked, randomPercent(this.#random), () => {});
  }

  /** As Cluster.chooseHost. Hot. */
  choose(request: PickContext | null, selection: HostSelection | null): Host | null {
    if (selection === null) return this.#pick(request, null);
    for (selection.draw = 0; ; selection.draw += 1) {
      const host = this.#pick(request, selection);
      if (host === null) return null;
      if (selection.draw + 1 >= selection.maxDraws || selection.accepts(host)) return host;
    }
  }

  /** As Cluster.overriddenHost: any of these hosts may be named. Hot. */
  overridden(asked: OverrideHost): Host | null | undefined {
    const { address, isStrict } = asked;
    // Another of them may have it.
    const ofOne = isStrict ? { address, isStrict: false } : asked;
    for (const name of this.#clusters) {
      const host = this.#find(name)?.overriddenHost(ofOne);
      if (host !== undefined) return host;
    }
    return isStrict ? null : undefined;
  }

  /** Among the priorities of all clusters behind one another; -1 for a host of none of them. Hot. */
  priorityOf({ cluster, priority }: AggregateMember): number {
    return this.#priorities.get(cluster.name)?.[priority] ?? -1;
  }

  #pick(request: PickContext | null, selection: HostSelection | null): Host | null {
    const index = this.#picker.pick(request ?? NOTHING_KNOWN, selection);
    if (index === NO_HOST) return null;
    const place = this.#places[index]!;
    place.draw = selection === null ? 0 : selection.draw;
    return this.#find(place.cluster)?.hostAt(request, place) ?? null;
  }
}

function prioritiesByCluster({ priorities }: AggregateShares): ReadonlyMap<string, readonly number[]> {
  const byCluster = new Map<string, number[]>();
  for (const [priority, { cluster, ownPriority }] of priorities.entries()) {
    const own = byCluster.get(cluster) ?? [];
    own[ownPriority] ??= priority;
    byCluster.set(cluster, own);
  }
  return byCluster;
}
