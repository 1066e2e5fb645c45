// What a change of one host among ten thousand costs: main, which makes lists and tables anew; each worker, whose requests wait
// meanwhile; and the message between them. Processor time and bytes; medians of many rounds, and the longest stretch that a worker
// is busy with one update. What requests notice of it is measured by update-latency.ts.
// `npm run bench -- host-updates`

import { deserialize, serialize } from 'node:v8';
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
const ROUNDS = 101;
/** Before the measured ones, as code that is not compiled yet takes longer. */
const WARM_UP_ROUNDS = 20;
const ILL = HealthFlag.failedActiveHealthCheck;

interface Change {
  readonly name: string;
  /** The members are the same. */
  readonly isFlip?: boolean;
  /** Makes one change. @returns what frees the state of before. */
  make(round: number): (() => void) | undefined;
}

/** Milliseconds that this thread was busy: no more than processor time of the process, and no more than has passed. */
function busyMs(run: () => void): number {
  const [before, startMs] = [process.cpuUsage(), performance.now()];
  run();
  const passedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(before);
  return Math.min((user + system) / 1000, passedMs);
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
    // The order of all hosts goes to the workers then.
    {
      name: 'leave or return',
      isFlip: false,
      make: (round) => cluster.setMembers(round % 2 === 0 ? members.slice(1) : members),
    },
  ];
  return changes.map(({ name, make, isFlip = true }) => {
    const main: number[] = [];
    const worker: number[] = [];
    let bytes = 0;
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
      let free: (() => void) | undefined;
      let update: HostsUpdate | undefined;
      const mainMs = busyMs(() => {
        free = make(Math.abs(round));
        update = cluster.takeUpdate();
      });
      const message = serialize({ type: 'hosts', generation: round, update });
      bytes = message.byteLength;
      const workerMs = busyMs(() => {
        map.updateHosts((deserialize(message) as { update: HostsUpdate }).update, () => {});
        map.get('web')!.chooseHost(null);
      });
      free?.();
      if (round < 0) continue;
      main.push(mainMs);
      worker.push(workerMs);
    }
    return {
      policy: lbPolicy,
      change: name,
      'main, ms': median(main).toFixed(1),
      of: '50',
      'worker, ms': median(worker).toFixed(2),
      longest: Math.max(...worker).toFixed(2),
      'of at most': '1',
      'message, bytes': bytes,
      'of less than': isFlip ? '1,000' : '',
    };
  });
}

console.log(`one of ${MANY} hosts, medians of ${ROUNDS} rounds`);
console.table(['ROUND_ROBIN', 'LEAST_REQUEST', 'RING_HASH', 'MAGLEV'].flatMap(measure));
