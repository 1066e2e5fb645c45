// The configuration in use for whoever wants to see it: the bootstrap, what managers tell of their resources, and the members of
// clusters as they are now. Main thread.

import type { BootstrapConfig, DiscoverableResources } from '../../config/index.ts';
import { HealthMask } from '../../wasm/shared-memory.ts';
import type { ActiveHost } from '../cluster-manager/active-host.ts';
import type { ClusterManager } from '../cluster-manager/cluster-manager.ts';
import type { ManagedCluster } from '../cluster-manager/managed-cluster.ts';
import type { DumpedResource } from '../discovery/named-resource.ts';
import type { FilterConfigs } from '../filters/filter-configs.ts';
import type { ListenerManager } from '../listener-manager/listener-manager.ts';
import type { ResourceRecord } from '../resource-record.ts';
import type { DumpedScopes } from '../routes/discovered-scopes.ts';
import type { RouteTables } from '../routes/route-tables.ts';
import type { ScopeSets } from '../routes/scope-sets.ts';
import type { DumpedSecret } from '../secrets/discovered-secret.ts';
import type { Secrets } from '../secrets/secrets.ts';

interface Resources {
  readonly version: string;
  readonly resources: readonly ResourceRecord[];
}

type LoadedParts = Pick<BootstrapConfig, 'messages' | 'discoverable'>;

interface Managers {
  readonly clusterManager: ClusterManager;
  readonly listenerManager: ListenerManager;
  readonly routeTables: RouteTables;
  readonly scopeSets: ScopeSets;
  readonly secrets: Secrets;
  readonly filterConfigs: FilterConfigs;
}

interface LoadedBootstrap {
  /** How resources are read that discovery brings beside it. */
  readonly discoverable: DiscoverableResources;
  readonly message: Uint8Array;
  readonly secrets: readonly Uint8Array[];
  readonly updatedMs: number;
}

export class LoadedConfig {
  #bootstrap: LoadedBootstrap;
  readonly #clusters: ClusterManager;
  readonly #listeners: ListenerManager;
  readonly #routes: RouteTables;
  readonly #scopes: ScopeSets;
  readonly #secrets: Secrets;
  readonly #filters: FilterConfigs;

  constructor(bootstrap: LoadedParts, loadedMs: number, managers: Managers) {
    const { clusterManager, listenerManager, routeTables, scopeSets, filterConfigs, secrets } = managers;
    this.#bootstrap = loadedBootstrap(bootstrap, loadedMs);
    this.#clusters = clusterManager;
    this.#listeners = listenerManager;
    this.#routes = routeTables;
    this.#scopes = scopeSets;
    this.#secrets = secrets;
    this.#filters = filterConfigs;
  }

  get bootstrap(): LoadedBootstrap {
    return this.#bootstrap;
  }

  /** Another has taken its place. */
  replaceBootstrap(bootstrap: LoadedParts, loadedMs: number): void {
    this.#bootstrap = loadedBootstrap(bootstrap, loadedMs);
  }

  clusters(): Resources {
    return { version: this.#clusters.version, resources: this.#clusters.dump() };
  }

  listeners(): Resources {
    return { version: this.#listeners.version, resources: this.#listeners.dump() };
  }

  /** Those that come by discovery, or could not. */
  routes(): readonly DumpedResource[] {
    return this.#routes.dump();
  }

  /** The same of scopes. */
  scopes(): readonly DumpedScopes[] {
    return this.#scopes.dump();
  }

  /** Those that come by discovery, or are to come. */
  secrets(): readonly DumpedSecret[] {
    return this.#secrets.dump();
  }

  /** The same of filters' configurations. */
  filters(): readonly DumpedResource[] {
    return this.#filters.dump();
  }

  *endpoints() {
    for (const managed of this.#clusters.managed()) yield membersOf(managed);
  }
}

function loadedBootstrap({ messages, discoverable }: LoadedParts, updatedMs: number): LoadedBootstrap {
  return { discoverable, message: messages.bootstrap, secrets: messages.secrets, updatedMs };
}

function membersOf({ cluster, message, assignment }: ManagedCluster) {
  return {
    name: cluster.edsServiceName || cluster.name,
    addedViaApi: cluster.addedViaApi,
    overprovisioningFactor: cluster.settings.overprovisioningFactor,
    message,
    assignment,
    *endpoints() {
      for (const host of cluster.hosts()) yield endpointOf(host);
    },
  };
}

function endpointOf(host: ActiveHost) {
  const { address, hostname, weight, locality, localityWeight, priority, metadata = {}, check } = host.snapshot;
  const checked = { port: check?.port ?? 0, hostname: check?.hostname ?? '' };
  const health = healthOf(host.healthFlags);
  return { address, hostname, health, weight, locality, localityWeight, priority, metadata, check: checked };
}

function healthOf(flags: number): 'HEALTHY' | 'DEGRADED' | 'UNHEALTHY' {
  if ((flags & HealthMask.unhealthy) !== 0) return 'UNHEALTHY';
  return (flags & HealthMask.degraded) === 0 ? 'HEALTHY' : 'DEGRADED';
}
