// The clusters of this worker by name. Snapshots are swapped in here; what they replace drains.

import type { ClusterSnapshot } from '../../snapshot/index.ts';
import type { WorkerContext } from '../worker-context.ts';
import { Cluster } from './cluster.ts';
import { RetiredHosts } from './retired-hosts.ts';

export class ClusterMap {
  readonly #context: WorkerContext;
  readonly #clusters = new Map<string, Cluster>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  get(name: string): Cluster | undefined {
    return this.#clusters.get(name);
  }

  /** @param onApplied called once, when nothing refers any more to hosts that the update has removed. */
  update(updated: readonly ClusterSnapshot[], removed: readonly string[], onApplied: () => void): void {
    const retired = new RetiredHosts(onApplied);
    for (const snapshot of updated) this.#put(snapshot, retired);
    for (const name of removed) {
      this.#clusters.get(name)?.retire(retired);
      this.#clusters.delete(name);
    }
    retired.seal();
  }

  /** Ends every upstream connection now. */
  close(): void {
    for (const cluster of this.#clusters.values()) cluster.close();
  }

  #put(snapshot: ClusterSnapshot, retired: RetiredHosts): void {
    const known = this.#clusters.get(snapshot.settings.name);
    if (known?.hasSameSettings(snapshot)) {
      known.updateHosts(snapshot, retired);
      return;
    }
    const cluster = new Cluster(this.#context, snapshot);
    cluster.updateHosts(snapshot, retired);
    this.#clusters.set(snapshot.settings.name, cluster);
    known?.retire(retired);
  }
}
