// The clusters of this worker by name. Snapshots are swapped in here; what they replace drains. A cluster becomes an object
// with its first request, so that one without traffic costs a worker next to nothing.

import { type ClusterSnapshot, type PackedCluster, unpackCluster } from '../../snapshot/index.ts';
import type { WorkerContext } from '../worker-context.ts';
import { Cluster } from './cluster.ts';
import { RetiredHosts } from './retired-hosts.ts';

/** To open a cluster takes some microseconds a host. Larger ones are opened with their update: no request waits for them. */
const MAX_HOSTS_PER_REQUEST = 64;

export class ClusterMap {
  readonly #context: WorkerContext;
  readonly #clusters = new Map<string, Cluster>();
  /** Those that nobody has asked for. */
  readonly #unopened = new Map<string, PackedCluster>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  get(name: string): Cluster | undefined {
    return this.#clusters.get(name) ?? this.#openFirst(name);
  }

  /** @param onApplied called once, when nothing refers any more to hosts that the update has removed. */
  update(updated: readonly PackedCluster[], removed: readonly string[], onApplied: () => void): void {
    const retired = new RetiredHosts(onApplied);
    for (const cluster of updated) this.#put(cluster, retired);
    for (const name of removed) {
      this.#unopened.delete(name);
      this.#clusters.get(name)?.retire(retired);
      this.#clusters.delete(name);
    }
    retired.seal();
  }

  /** Ends every upstream connection now. */
  close(): void {
    for (const cluster of this.#clusters.values()) cluster.close();
  }

  #put(packed: PackedCluster, retired: RetiredHosts): void {
    const known = this.#clusters.get(packed.name);
    if (known === undefined && packed.hostCount <= MAX_HOSTS_PER_REQUEST) this.#unopened.set(packed.name, packed);
    else this.#swap(known, unpackCluster(packed), retired);
  }

  #openFirst(name: string): Cluster | undefined {
    const packed = this.#unopened.get(name);
    return packed && this.#open(unpackCluster(packed));
  }

  #swap(known: Cluster | undefined, snapshot: ClusterSnapshot, retired: RetiredHosts): void {
    if (known?.hasSameSettings(snapshot)) {
      known.updateHosts(snapshot, retired);
      return;
    }
    this.#open(snapshot);
    known?.retire(retired);
  }

  #open(snapshot: ClusterSnapshot): Cluster {
    const cluster = new Cluster(this.#context, snapshot);
    cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
    this.#clusters.set(cluster.name, cluster);
    this.#unopened.delete(cluster.name);
    return cluster;
  }
}
