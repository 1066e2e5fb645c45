// Clusters with all who keep them up to date, over real shared memory and a clock that a test turns; the workers are the test.

import { RuntimeValues } from '../../src/base/runtime.ts';
import { ClusterManager } from '../../src/control-plane/cluster-manager/cluster-manager.ts';
import { DnsResolvers } from '../../src/control-plane/dns/resolvers.ts';
import { Loggers } from '../../src/log/index.ts';
import type { ClusterSettings, ClusterSnapshot, HostsUpdate } from '../../src/snapshot/index.ts';
import { readHostLists } from '../../src/wasm/lb.ts';
import { clusterNamed, clusterSettings, type JsonObject, socketAddress } from './bootstrap.ts';
import { NO_LOCALITY } from './clusters.ts';
import type { DnsServer } from './dns-server.ts';
import { NO_FAULTS } from './faults.ts';
import { lbTables } from './lb.ts';
import { ManualClock } from './manual-clock.ts';
import { statsFixture } from './stats.ts';
import { NO_DISCOVERY } from './subscriptions.ts';

/** By HTTP; what a test changes it changes of this. */
export const CHECK: JsonObject = {
  timeout: '1s',
  interval: '60s',
  unhealthy_threshold: 1,
  healthy_threshold: 1,
  http_health_check: { path: '/up' },
};

export interface Published {
  readonly snapshot: ClusterSnapshot;
  /** Undefined for a whole cluster. */
  readonly update: HostsUpdate | undefined;
  readonly applied: () => void;
}

export class ManagedClusters implements Disposable {
  readonly clock = new ManualClock();
  readonly runtime = new RuntimeValues();
  readonly stats = statsFixture({ workerCount: 1, maxBytes: 4 * 1024 * 1024 });
  readonly published: Published[] = [];
  readonly removed: (() => void)[] = [];
  readonly messages: string[] = [];
  readonly manager: ClusterManager;

  constructor(
    clusters: readonly ClusterSettings[] = [],
    outlierEventLogPath = '',
    faults = NO_FAULTS,
    discovery = NO_DISCOVERY,
  ) {
    const { store, owner } = this.stats;
    const sink = { write: ({ message }: { message: string }) => void this.messages.push(message) };
    const publish = (name: string, applied: () => void, update?: HostsUpdate): void => {
      const snapshot = this.manager.snapshots().find(({ settings }) => settings.name === name)!;
      this.published.push({ snapshot, applied, update });
    };
    this.manager = new ClusterManager({
      ...discovery,
      faults,
      stats: store,
      memory: owner,
      tables: lbTables(owner),
      clock: this.clock,
      random: { u32: () => 0 },
      loggers: new Loggers({ levels: { default: 'debug' }, threadId: 0, sink }),
      workers: {
        publishCluster: ({ settings }, applied) => publish(settings.name, applied),
        removeCluster: (_name, applied) => this.removed.push(applied),
        refuseHost: () => {},
        secureCluster: (name, _changed, applied) => publish(name, applied),
        publishHosts: (update, applied) => publish(update.cluster, applied, update),
      },
      resolvers: new DnsResolvers(this.clock, NO_FAULTS),
      runtime: this.runtime,
      outlierEventLogPath,
      headerPrefix: 'x-proxy',
      localCluster: 'proxies',
      locality: { ...NO_LOCALITY, zone: 'a' },
    });
    for (const cluster of clusters) this.manager.addStatic(cluster);
  }

  [Symbol.dispose](): void {
    this.manager.stop();
  }

  value(name: string): number {
    return this.stats.store.value(name) ?? 0;
  }

  hosts(name = 'web') {
    return [...this.manager.clusters()].find((cluster) => cluster.name === name)!.hosts();
  }

  ports(name = 'web'): number[] {
    return this.hosts(name).map(({ address }) => (address.kind === 'ip' ? address.port : 0));
  }

  /** What requests to a cluster go by now. */
  lists(name = 'web') {
    const { hostLists } = this.manager.snapshots().find(({ settings }) => settings.name === name)!;
    return readHostLists(this.stats.owner.shared, hostLists);
  }

  set(values: Readonly<Record<string, string>>): void {
    this.runtime.replace(new Map(Object.entries(values)));
    this.manager.runtimeChanged();
  }

  /** A worker has seen the host fail too often. */
  eject(index: number, name = 'web'): void {
    this.manager.hostFailedInRow(name, this.hosts(name)[index]!.recordAddress, 'consecutive-5xx');
  }
}

/** With members at these ports, which are what is said of them. */
export function clusterAt(
  ports: readonly number[],
  fields: JsonObject = {},
  memberFields: JsonObject = {},
): ClusterSettings {
  const lb_endpoints = ports.map((port) => ({
    endpoint: { address: socketAddress('127.0.0.1', port) },
    ...memberFields,
  }));
  const load_assignment = { cluster_name: 'web', endpoints: [{ lb_endpoints }] };
  return clusterSettings(clusterNamed('web', { load_assignment, ...fields }));
}

/** Its members are those that the server names, at a port. */
export function dnsCluster(server: DnsServer, port: number, fields: JsonObject = {}): ClusterSettings {
  const endpoint = { endpoint: { address: socketAddress('web.test', port) } };
  return clusterSettings(
    clusterNamed('web', {
      type: 'STRICT_DNS',
      dns_lookup_family: 'V4_ONLY',
      dns_refresh_rate: '5s',
      dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', server.port)] },
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] },
      ...fields,
    }),
  );
}

/** Members of one zone at these ports. */
export function inZone(zone: string, ...ports: number[]): JsonObject {
  return {
    locality: { zone },
    load_balancing_weight: 1,
    lb_endpoints: ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } })),
  };
}

export function zoned(name: string, endpoints: readonly JsonObject[], fields: JsonObject = {}): ClusterSettings {
  return clusterSettings(clusterNamed(name, { load_assignment: { cluster_name: name, endpoints }, ...fields }));
}

/** An outlier detector that may take all hosts out of service. */
export const WATCHED = { outlier_detection: { max_ejection_percent: 100 } };
