// Aggregate clusters among those that serve: has each know how its requests are shared out among the hosts of others, which
// come, go and change at any time. Main thread.

import { cycleThrough } from '../../base/cycle.ts';
import { WeirError } from '../../base/errors.ts';
import { type AggregateShares, type ClusterSettings, givesNoHosts, namesMembers } from '../../snapshot/index.ts';
import type { ActiveCluster } from './active-cluster.ts';
import { aggregateShares } from './host-lists/aggregate-shares.ts';

/** One that serves. */
interface AggregateCluster {
  readonly cluster: ActiveCluster;
  /** Workers that know it are told as well. */
  shareOut(shares: AggregateShares): void;
}

export class AggregateClusters<Managed extends AggregateCluster> {
  readonly #find: (name: string) => ActiveCluster | undefined;
  readonly #aggregates = new Map<string, Managed>();
  /** By the name of a cluster, aggregate or not: those whose requests it has a say in. */
  #dependents = new Map<string, Set<Managed>>();
  readonly #warn: (text: string) => void;
  /** By aggregate: those of its clusters that have been warned of. */
  readonly #warned = new WeakMap<Managed, Set<string>>();

  /** @param find one that serves. @param warn told once of each cluster that has no hosts to give. */
  constructor(find: (name: string) => ActiveCluster | undefined, warn: (text: string) => void) {
    this.#find = find;
    this.#warn = warn;
  }

  /** @throws WeirError WEIR_CONFIG_INVALID for a cluster that would be among its own. */
  check({ name, aggregate }: Pick<ClusterSettings, 'name' | 'aggregate'>): void {
    if (aggregate === undefined) return;
    const lists = new Map([...this.#aggregates].map(([each, managed]) => [each, listOf(managed)] as const));
    lists.set(name, aggregate);
    const cycle = cycleThrough(name, lists);
    if (cycle === undefined) return;
    throw new WeirError('WEIR_CONFIG_INVALID', `the aggregate cluster would be among its own: ${cycle.join(', ')}`, {
      source: 'config',
    });
  }

  /** It serves from now on under the name, in place of any other; undefined for none. No worker knows it yet. */
  serve(name: string, managed: Managed | undefined): void {
    const isAggregate = managed?.cluster.settings.aggregate !== undefined;
    if (!isAggregate && !this.#aggregates.delete(name)) return;
    if (isAggregate) this.#aggregates.set(name, managed!);
    this.#index();
    if (isAggregate) managed!.cluster.shareOut(this.#sharesOf(managed!));
  }

  /** Hosts of the cluster, or their health, are others; or it has come or gone. */
  changed(name: string): void {
    for (const managed of this.#dependents.get(name) ?? []) managed.shareOut(this.#sharesOf(managed));
  }

  /** Values of the runtime have changed, among them perhaps when there is panic. */
  runtimeChanged(): void {
    for (const managed of this.#aggregates.values()) managed.shareOut(this.#sharesOf(managed));
  }

  #index(): void {
    this.#dependents = new Map();
    for (const managed of this.#aggregates.values()) {
      for (const name of this.#below(managed)) {
        const dependents = this.#dependents.get(name) ?? new Set();
        this.#dependents.set(name, dependents.add(managed));
      }
    }
  }

  /** Names of all clusters under it, each where it comes first. */
  #below(managed: Managed): ReadonlySet<string> {
    const names = new Set<string>();
    const add = (list: readonly string[]): void => {
      for (const name of list) {
        if (names.has(name)) continue;
        names.add(name);
        const aggregate = this.#aggregates.get(name);
        if (aggregate !== undefined) add(listOf(aggregate));
      }
    };
    add(listOf(managed));
    return names;
  }

  #sharesOf(managed: Managed): AggregateShares {
    const members = [...this.#below(managed)].flatMap((name) => {
      const cluster = this.#find(name);
      if (cluster === undefined) return [];
      if (namesMembers(cluster.settings)) {
        this.#warnOf(managed, cluster);
        return [];
      }
      return [{ name, settings: cluster.settings, hosts: cluster.members() }];
    });
    return aggregateShares(members, managed.cluster.panicThreshold);
  }

  /** Nobody can be sent to hosts that requests have to name. */
  #warnOf(managed: Managed, member: ActiveCluster): void {
    const warned = this.#warned.get(managed) ?? new Set();
    this.#warned.set(managed, warned);
    const { name } = member.settings;
    if (warned.has(name) || areOfBootstrap(managed.cluster, member)) return;
    warned.add(name);
    this.#warn(`aggregate cluster ${managed.cluster.settings.name}: ${givesNoHosts(name)}`);
  }
}

/** Of the bootstrap alone it has been warned when that was read. */
function areOfBootstrap(...clusters: readonly ActiveCluster[]): boolean {
  return clusters.every(({ addedViaApi }) => !addedViaApi);
}

function listOf({ cluster }: AggregateCluster): readonly string[] {
  return cluster.settings.aggregate ?? [];
}
