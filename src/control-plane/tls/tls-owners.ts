// Listeners and clusters as owners of TLS contexts, which come and go with them. Main thread.

import type { ReadContext, TlsReader } from '../../config/index.ts';
import type { DownstreamTlsSettings, UpstreamTlsSettings } from '../../snapshot/index.ts';
import { upstreamContextsOf } from '../../snapshot/index.ts';
import type { ClusterManager } from '../cluster-manager/cluster-manager.ts';
import type { ManagedCluster } from '../cluster-manager/managed-cluster.ts';
import type { ActiveListener } from '../listener-manager/active-listener.ts';
import type { ListenerManager } from '../listener-manager/listener-manager.ts';
import { listenerStatPrefix } from '../listener-manager/listener-snapshot.ts';
import type { ChangedContexts } from './changed-contexts.ts';
import type { TlsOwner, TlsReloads } from './tls-reloads.ts';

/** Before they are given any. */
export function followTlsOwners(reloads: TlsReloads, listeners: ListenerManager, clusters: ClusterManager): void {
  listeners.observer = {
    complete: (listener) =>
      reloads.complete(listener, new ListenerTls(listener, listeners), (changed) => listener.secure(changed)),
    add: (listener) => reloads.add(listener, new ListenerTls(listener, listeners)),
    remove: (listener) => reloads.remove(listener),
  };
  clusters.observer = {
    complete: (cluster) =>
      reloads.complete(cluster, new ClusterTls(cluster), (changed) => cluster.secure(changed, () => {})),
    add: (cluster) => reloads.add(cluster, new ClusterTls(cluster)),
    remove: (cluster) => reloads.remove(cluster),
  };
}

/** By filter chain, the default one last. */
export class ListenerTls implements TlsOwner<DownstreamTlsSettings> {
  readonly kind = 'listener';
  readonly #listener: ActiveListener;
  readonly #manager: Pick<ListenerManager, 'secure'>;

  constructor(listener: ActiveListener, manager: Pick<ListenerManager, 'secure'>) {
    this.#listener = listener;
    this.#manager = manager;
  }

  get name(): string {
    return this.#listener.name;
  }

  get statPrefix(): string {
    return `${listenerStatPrefix(this.#listener.settings)}server_ssl_socket_factory.`;
  }

  get contexts(): readonly (DownstreamTlsSettings | undefined)[] {
    const { filterChains, defaultFilterChain: last } = this.#listener.snapshot;
    return [...filterChains, ...(last === null ? [] : [last])].map(({ tls }) => tls?.settings);
  }

  read(reader: TlsReader): readonly (ReadContext<DownstreamTlsSettings> | undefined)[] {
    return reader.readListener(this.#listener.message);
  }

  secure(changed: ChangedContexts<DownstreamTlsSettings>, onApplied: () => void): void {
    this.#manager.secure(this.#listener, changed, onApplied);
  }
}

/** That of the cluster itself, then those of its transport socket matches. */
export class ClusterTls implements TlsOwner<UpstreamTlsSettings> {
  readonly kind = 'cluster';
  readonly #cluster: ManagedCluster;

  constructor(cluster: ManagedCluster) {
    this.#cluster = cluster;
  }

  get name(): string {
    return this.#cluster.settings.name;
  }

  get statPrefix(): string {
    return `cluster.${this.#cluster.settings.statName}.client_ssl_socket_factory.`;
  }

  get contexts(): readonly (UpstreamTlsSettings | undefined)[] {
    return upstreamContextsOf(this.#cluster.cluster.settings);
  }

  read(reader: TlsReader): readonly (ReadContext<UpstreamTlsSettings> | undefined)[] {
    return reader.readCluster(this.#cluster.message);
  }

  secure(changed: ChangedContexts<UpstreamTlsSettings>, onApplied: () => void): void {
    this.#cluster.secure(changed, onApplied);
  }
}
