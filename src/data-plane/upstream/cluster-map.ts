// The clusters of this worker by name. Snapshots are swapped in here; what they replace drains. A cluster becomes an object
// with its first request, so that one without traffic costs a worker next to nothing.

import {
  type ClusterSnapshot,
  type HostRefusal,
  type HostSnapshot,
  type HostsAmendment,
  type HostsUpdate,
  type PackedCluster,
  type SecuredTransport,
  type UpstreamTlsSettings,
  unpackCluster,
  unpackTls,
  withUpstreamContexts,
} from '../../snapshot/index.ts';
import type { WorkerContext } from '../worker-context.ts';
import { Cluster } from './cluster.ts';
import { type CreatePool, createPool } from './pool/create-pool.ts';
import { RetiredHosts } from './retired-hosts.ts';

/** To open a cluster takes some microseconds a host. Larger ones are opened with their update: no request waits for them. */
const MAX_HOSTS_PER_REQUEST = 64;

export class ClusterMap {
  readonly #context: WorkerContext;
  readonly #createPool: CreatePool;
  readonly #clusters = new Map<string, Cluster>();
  /** Those that nobody has asked for, with what has changed about them since. */
  readonly #unopened = new Map<string, UnopenedCluster>();

  /** @param create makes the pools of hosts. */
  constructor(context: WorkerContext, create: CreatePool = createPool) {
    this.#context = context;
    this.#createPool = create;
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
      const known = this.#clusters.get(name);
      if (known !== undefined) retired.add(known);
      this.#clusters.delete(name);
    }
    retired.seal();
  }

  /** Takes over what has changed about the members of a cluster, which may have gone. @param onApplied as for update. */
  updateHosts(update: HostsUpdate, onApplied: () => void): void {
    const retired = new RetiredHosts(onApplied);
    const unopened = this.#unopened.get(update.cluster);
    unopened?.add(update);
    if (unopened === undefined) this.#clusters.get(update.cluster)?.applyUpdate(update, retired);
    else if (unopened.hostCount > MAX_HOSTS_PER_REQUEST) this.#open(unopened.snapshot());
    retired.seal();
  }

  /** Has connections of a cluster, which may have gone, be secured by other settings. */
  secure(name: string, transports: readonly SecuredTransport[]): void {
    const changed = new Map(transports.map(({ index, tls }) => [index, unpackTls(tls)]));
    this.#unopened.get(name)?.secure(changed);
    this.#clusters.get(name)?.secure(changed);
  }

  /** There is no host of this address, or name, as text. */
  refuseHost(cluster: string, address: string, reason: HostRefusal): void {
    this.#clusters.get(cluster)?.destinations?.refuse(address, reason);
  }

  /** Ends every upstream connection now. */
  close(): void {
    for (const cluster of this.#clusters.values()) cluster.close();
  }

  #put(packed: PackedCluster, retired: RetiredHosts): void {
    const known = this.#clusters.get(packed.name);
    if (known === undefined && packed.hostCount <= MAX_HOSTS_PER_REQUEST)
      this.#unopened.set(packed.name, new UnopenedCluster(packed));
    else this.#swap(known, unpackCluster(packed), retired);
  }

  #openFirst(name: string): Cluster | undefined {
    const unopened = this.#unopened.get(name);
    return unopened && this.#open(unopened.snapshot());
  }

  #swap(known: Cluster | undefined, snapshot: ClusterSnapshot, retired: RetiredHosts): void {
    if (known?.hasSameSettings(snapshot)) {
      known.updateHosts(snapshot, retired);
      return;
    }
    this.#open(snapshot);
    if (known !== undefined) retired.add(known);
  }

  #open(snapshot: ClusterSnapshot): Cluster {
    const cluster = new Cluster(this.#context, snapshot, this.#createPool, (name) => this.get(name));
    cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
    this.#clusters.set(cluster.name, cluster);
    this.#unopened.delete(cluster.name);
    return cluster;
  }
}

/** As large as its members of now and of then, whatever happens to them meanwhile. */
class UnopenedCluster {
  readonly #packed: PackedCluster;
  #hostLists: number | null = null;
  /** Records; null while they are as they were packed. */
  #order: readonly number[] | null = null;
  /** New and changed ones by record; null while there are none. */
  #hosts: Map<number, HostSnapshot> | null = null;
  /** Undefined while it is as it was packed. */
  #dropShare: HostsUpdate['dropShare'];
  /** Undefined while they are as they were packed. */
  #aggregate: HostsUpdate['aggregate'];
  /** By place; null while they are as they were packed. */
  #tls: Map<number, UpstreamTlsSettings> | null = null;

  constructor(packed: PackedCluster) {
    this.#packed = packed;
  }

  get hostCount(): number {
    return this.#order?.length ?? this.#packed.hostCount;
  }

  add({ hostLists, order: told, hosts, amendment, dropShare, aggregate }: HostsUpdate): void {
    this.#hostLists = hostLists;
    if (dropShare !== undefined) this.#dropShare = dropShare;
    if (aggregate !== undefined) this.#aggregate = aggregate;
    const changed = this.#hosts ?? new Map<number, HostSnapshot>();
    const order = amendment === null ? told : this.#amended(amendment);
    for (const host of hosts) changed.set(host.recordAddress, host);
    for (const host of amendment?.joined ?? []) changed.set(host.recordAddress, host);
    if (order !== null) {
      this.#order = order;
      const members = new Set(order);
      for (const record of changed.keys()) if (!members.has(record)) changed.delete(record);
    }
    this.#hosts = changed.size === 0 ? null : changed;
  }

  secure(changed: ReadonlyMap<number, UpstreamTlsSettings>): void {
    this.#tls = new Map([...(this.#tls ?? []), ...changed]);
  }

  #amended({ joined, gone }: HostsAmendment): readonly number[] {
    const records = new Set(this.#order ?? unpackCluster(this.#packed).hosts.map(({ recordAddress }) => recordAddress));
    for (const record of gone) records.delete(record);
    for (const { recordAddress } of joined) records.add(recordAddress);
    return [...records];
  }

  /** As it is now. */
  snapshot(): ClusterSnapshot {
    const packed = this.#unpacked();
    if (this.#hostLists === null) return packed;
    const hosts = new Map(packed.hosts.map((host) => [host.recordAddress, host]));
    for (const [record, host] of this.#hosts ?? []) hosts.set(record, host);
    const order = this.#order ?? packed.hosts.map(({ recordAddress }) => recordAddress);
    return {
      ...packed,
      hostLists: this.#hostLists,
      hosts: order.map((record) => hosts.get(record)!),
      ...(this.#aggregate && { aggregate: this.#aggregate }),
    };
  }

  #unpacked(): ClusterSnapshot {
    const packed = unpackCluster(this.#packed);
    if (this.#tls === null && this.#dropShare === undefined) return packed;
    const settings = this.#tls === null ? packed.settings : withUpstreamContexts(packed.settings, this.#tls);
    return {
      ...packed,
      settings: this.#dropShare === undefined ? settings : { ...settings, dropShare: this.#dropShare },
    };
  }
}
