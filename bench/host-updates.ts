// What a change of one host among ten thousand costs: main, which makes lists and tables anew; each worker, whose requests wait
// meanwhile; and the message between them. CPU time and bytes; medians of many rounds.
// node bench/host-updates.ts

import { serialize } from 'node:v8';
import { RuntimeValues } from '../src/base/runtime.ts';
import { ActiveCluster } from '../src/control-plane/cluster-manager/active-cluster.ts';
import { ClusterMap } from '../src/data-plane/upstream/cluster-map.ts';
import { type HostSettings, type HostsUpdate, packClusters } from '../src/snapshot/index.ts';
import { HealthFlag } from '../src/wasm/shared-memory.ts';
import { clusterNamed, clusterSettings } from '../test/support/bootstrap.ts';
import { NO_LOCAL_CLUSTER } from '../test/support/clusters.ts';
import { lbTables } from '../test/support/lb.ts';
import { UpstreamWorkers } from '../test/support/upstream-workers.ts';

const MANY = 10_000;
const ROUNDS = 21;
const ILL = HealthFlag.failedActiveHealthCheck;

interface Change {
  readonly name: string;
  /** Makes one change. @returns what frees the state of before. */
  make(round: number): (() => void) | undefined;
}

/** In milliseconds. */
function cpuTime(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
}

function measure(lbPolicy: string): object[] {
  const workers = new UpstreamWorkers(1, () => {});
  const { owner, store } = workers.stats;
  const settings = clusterSettings(clusterNamed('web', { lb_policy: lbPolicy }));
  const cluster = new ActiveCluster(settings, false, {
    stats: store,
    memory: owner,
    tables: lbTables(owner),
    runtime: new RuntimeValues(),
    clock: workers.clock,
    local: NO_LOCAL_CLUSTER,
  });
  const at = (index: number, weight: number): HostSettings => ({
    ...settings.hosts[0]!,
    address: { kind: 'ip', ip: `10.0.${index >> 8}.${index & 255}`, port: 80 },
    weight,
  });
  const members = Array.from({ length: MANY }, (_, index) => at(index, 1));
  cluster.setMembers(members)?.();
  const map = new ClusterMap(workers.contexts[0]!);
  map.update(packClusters([cluster.snapshot]), [], () => {});
  cluster.takeUpdate();
  map.get('web')!.chooseHost(null);
  const changes: readonly Change[] = [
    { name: 'weight', make: (round) => cluster.setMembers(members.with(5, at(5, 2 + (round % 2)))) },
    {
      name: 'health',
      make(round) {
        cluster.hosts()[7]!.setHealthFlags(ILL, round % 2 === 0);
        return cluster.refreshHealth();
      },
    },
  ];
  return changes.map(({ name, make }) => {
    const main: number[] = [];
    const worker: number[] = [];
    let bytes = 0;
    for (let round = 0; round < ROUNDS; round++) {
      let free: (() => void) | undefined;
      let update: HostsUpdate | undefined;
      main.push(
        cpuTime(() => {
          free = make(round);
          update = cluster.takeUpdate();
        }),
      );
      bytes = serialize({ type: 'hosts', generation: round, update }).byteLength;
      worker.push(
        cpuTime(() => {
          map.updateHosts(update!, () => {});
          map.get('web')!.chooseHost(null);
        }),
      );
      free?.();
    }
    return {
      policy: lbPolicy,
      change: name,
      'main, ms': median(main).toFixed(1),
      of: '50',
      'worker, ms': median(worker).toFixed(2),
      'of at most': '1',
      'message, bytes': bytes,
      'of less than': '1,000',
    };
  });
}

console.log(`one of ${MANY} hosts, medians of ${ROUNDS} rounds`);
console.table(['ROUND_ROBIN', 'LEAST_REQUEST', 'RING_HASH', 'MAGLEV'].flatMap(measure));
