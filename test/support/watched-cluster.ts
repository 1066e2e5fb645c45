// A cluster whose hosts are watched for outliers on main, over real shared memory: two workers have counted what a test says,
// and a clock that it turns runs the intervals.

import { RuntimeValues } from '../../src/base/runtime.ts';
import type { ActiveHost } from '../../src/control-plane/cluster-manager/active-host.ts';
import { ClusterManager } from '../../src/control-plane/cluster-manager/cluster-manager.ts';
import { DnsResolvers } from '../../src/control-plane/dns/resolvers.ts';
import { Loggers } from '../../src/log/index.ts';
import type { ClusterSnapshot, ConsecutiveKind } from '../../src/snapshot/index.ts';
import { OUTLIER_HOST_STATS, type OUTLIER_STATS } from '../../src/stats/index.ts';
import { HealthFlag } from '../../src/wasm/shared-memory.ts';
import { clusterNamed, type JsonObject, mustLoad, socketAddress, withClusters } from './bootstrap.ts';
import { NO_FAULTS } from './faults.ts';
import { lbTables } from './lb.ts';
import { ManualClock } from './manual-clock.ts';
import { type StatsFixture, statsFixture } from './stats.ts';
import { NO_DISCOVERY } from './subscriptions.ts';

const { failedOutlierCheck: EJECTED } = HealthFlag;
export const INTERVAL_MS = 10_000;
export const LOGGERS = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });

interface Options {
  readonly hosts?: number;
  readonly detection?: JsonObject;
  readonly fields?: JsonObject;
  readonly runtime?: Record<string, string>;
  readonly random?: () => number;
  readonly eventLog?: string;
  readonly port?: number;
}

export class Watched implements Disposable {
  readonly clock = new ManualClock();
  readonly runtime: RuntimeValues;
  readonly stats: StatsFixture = statsFixture({ workerCount: 2 });
  readonly published: ClusterSnapshot[] = [];
  readonly manager: ClusterManager;

  constructor({ hosts = 10, detection = {}, fields = {}, runtime = {}, random, eventLog = '', port }: Options = {}) {
    const { store, owner } = this.stats;
    this.runtime = new RuntimeValues(new Map(Object.entries(runtime)));
    this.manager = new ClusterManager({
      ...NO_DISCOVERY,
      faults: NO_FAULTS,
      stats: store,
      memory: owner,
      tables: lbTables(owner),
      clock: this.clock,
      random: { u32: random ?? (() => 0) },
      loggers: LOGGERS,
      workers: {
        publishCluster: () => {},
        removeCluster: () => {},
        refuseHost: () => {},
        secureCluster: () => {},
        publishHosts: (_update, applied) => {
          this.published.push(this.manager.snapshots()[0]!);
          applied();
        },
      },
      resolvers: new DnsResolvers(this.clock, NO_FAULTS),
      runtime: this.runtime,
      localCluster: '',
      locality: { region: '', zone: '', subZone: '' },
      outlierEventLogPath: eventLog,
      headerPrefix: 'x-proxy',
    });
    const members = Array.from({ length: hosts }, (_, index) => ({
      endpoint: { address: socketAddress('127.0.0.1', port ?? index + 1) },
    }));
    const cluster = clusterNamed('web', {
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: members }] },
      outlier_detection: { max_ejection_percent: 100, ...detection },
      ...fields,
    });
    this.manager.addStatic(mustLoad(withClusters(cluster)).clusters[0]!);
    void this.manager.start();
  }

  [Symbol.dispose](): void {
    this.manager.stop();
  }

  get hosts(): readonly ActiveHost[] {
    return this.cluster.hosts();
  }

  get cluster() {
    return [...this.manager.clusters()][0]!;
  }

  /** Indexes of those out of service. */
  get ejected(): number[] {
    return this.hosts.flatMap(({ healthFlags }, index) => ((healthFlags & EJECTED) === 0 ? [] : [index]));
  }

  stat(name: keyof (typeof OUTLIER_STATS)['index']): number {
    return this.stats.store.value(`cluster.web.outlier_detection.${name}`) ?? 0;
  }

  /** A worker tells of a row. */
  row(index: number, kind: ConsecutiveKind = 'consecutive-5xx'): void {
    this.manager.hostFailedInRow('web', this.hosts[index]!.recordAddress, kind);
  }

  /** The workers have had requests between them, of which some went well. */
  requests(index: number, total: number, success: number, origin: 'external' | 'local' = 'external'): void {
    const { outlierBlock } = this.hosts[index]!.snapshot;
    for (const [worker, { stats }] of this.stats.workers.entries()) {
      const half = (count: number): number => (worker === 0 ? Math.floor(count / 2) : Math.ceil(count / 2));
      const base = stats.base(outlierBlock);
      stats.values[base + OUTLIER_HOST_STATS.index[`${origin}_total`]]! += half(total);
      stats.values[base + OUTLIER_HOST_STATS.index[`${origin}_success`]]! += half(success);
    }
  }

  /** Each host has had so many of a hundred requests go well. */
  rates(...rates: number[]): void {
    for (const [index, rate] of rates.entries()) this.requests(index, 100, rate);
  }

  interval(count = 1): void {
    for (let index = 0; index < count; index += 1) this.clock.turn(INTERVAL_MS);
  }
}
