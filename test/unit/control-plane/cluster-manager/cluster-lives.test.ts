// Clusters and hosts that come and go through the manager, while workers that are behind carry requests that are behind even
// more: whatever the order, nobody writes to what was given back, and at the end everything has been.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ClusterManager } from '../../../../src/control-plane/cluster-manager/cluster-manager.ts';
import { DnsResolvers } from '../../../../src/control-plane/dns/resolvers.ts';
import { UpdateConfirmations } from '../../../../src/control-plane/workers/update-confirmations.ts';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import { ClusterMap } from '../../../../src/data-plane/upstream/cluster-map.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { packClusters } from '../../../../src/snapshot/index.ts';
import { CLUSTER_STATS, HOST_STATS } from '../../../../src/stats/index.ts';
import { clusterNamed, clusterSettings, type JsonObject, socketAddress } from '../../../support/bootstrap.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { lbTables } from '../../../support/lb.ts';
import { PoisonedMemory } from '../../../support/poisoned-memory.ts';
import { NO_DISCOVERY } from '../../../support/subscriptions.ts';
import { ANSWER, UpstreamRequest } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const WORKERS = 2;
const NAMES = ['a', 'b'] as const;
const POLICIES = ['ROUND_ROBIN', 'LEAST_REQUEST', 'MAGLEV'] as const;

/** A request as the router makes it: it uses its cluster to its end, and a host only while it is on a connection. */
class ModelRequest {
  readonly #worker: ModelWorker;
  #cluster: Cluster;
  readonly #former: Cluster[] = [];
  #pooled: UpstreamRequest | null = null;
  #host: Host | null = null;

  constructor(worker: ModelWorker, cluster: Cluster) {
    this.#worker = worker;
    this.#cluster = cluster;
    cluster.acquire();
  }

  get isBusy(): boolean {
    return this.#pooled !== null && this.#pooled.outcome === '';
  }

  try(): void {
    const { name } = this.#cluster;
    const now = this.#worker.map.get(name) ?? this.#cluster;
    if (now !== this.#cluster) {
      now.acquire();
      this.#former.push(this.#cluster);
      this.#cluster = now;
    }
    this.#host = now.chooseHost(null);
    if (this.#host === null) return;
    this.#pooled = new UpstreamRequest();
    this.#host.pools.default.newStream(this.#pooled);
    // While it is there, since a connection is.
    if (this.isBusy) this.#worker.values[this.#host.statBase + HOST_STATS.index.rq_total]! += 1;
  }

  /** Gives up waiting for a connection, which is still on its way then. @returns false when it has one, and is not over. */
  cancel(): boolean {
    return !this.isBusy || this.#host!.pools.default.cancel(this.#pooled!);
  }

  end(): void {
    for (const cluster of [this.#cluster, ...this.#former]) {
      this.#worker.values[cluster.statBase + CLUSTER_STATS.index.upstream_rq_completed]! += 1;
      cluster.responseCodes.all.count(200);
      cluster.responseCodes.external.recordTime(5);
      cluster.release();
    }
  }
}

class ModelWorker {
  readonly map: ClusterMap;
  readonly messages: (() => void)[] = [];
  readonly replies: (() => void)[] = [];
  readonly requests: ModelRequest[] = [];
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly #workers: UpstreamWorkers;
  readonly #index: number;

  constructor(workers: UpstreamWorkers, index: number) {
    this.#workers = workers;
    this.#index = index;
    this.map = new ClusterMap(workers.contexts[index]!);
  }

  get values(): Float64Array<ArrayBufferLike> {
    return this.#workers.contexts[this.#index]!.stats.values;
  }

  receive(): void {
    this.messages.shift()?.();
  }

  /** Its oldest word reaches main; questions for cells go with it. */
  reply(): void {
    const { store, workers } = this.#workers.stats;
    const { stats, asked } = workers[this.#index]!;
    for (const key of asked.splice(0)) {
      const cell = store.dynamicCell(key);
      this.messages.push(() => stats.resolve(key, cell));
    }
    this.replies.shift()?.();
  }
}

class Model {
  readonly workers: readonly ModelWorker[];
  readonly manager: ClusterManager;
  readonly memory: PoisonedMemory;
  readonly #confirmations = new UpdateConfirmations(NO_FAULTS);
  readonly #upstream: UpstreamWorkers;

  constructor() {
    this.#upstream = new UpstreamWorkers(WORKERS, (socket, worker) => void this.workers[worker]!.sockets.push(socket));
    const { owner, store } = this.#upstream.stats;
    const runtime = new RuntimeValues();
    this.memory = new PoisonedMemory(owner);
    this.workers = Array.from({ length: WORKERS }, (_, index) => new ModelWorker(this.#upstream, index));
    const { clock } = this.#upstream;
    this.manager = new ClusterManager({
      ...NO_DISCOVERY,
      faults: NO_FAULTS,
      stats: store,
      memory: owner,
      tables: lbTables(this.memory.forTables),
      clock,
      random: { u32: () => 0 },
      loggers: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }),
      workers: {
        publishCluster: (cluster, onApplied) => {
          const packed = packClusters([cluster]);
          this.#publish((map, applied) => map.update(packed, [], applied), onApplied);
        },
        removeCluster: (name, onApplied) => this.#publish((map, applied) => map.update([], [name], applied), onApplied),
        refuseHost: () => {},
        secureCluster: (_name, _changed, onApplied) => onApplied(),
        publishHosts: (update, onApplied) =>
          this.#publish((map, applied) => map.updateHosts(update, applied), onApplied),
      },
      resolvers: new DnsResolvers(clock, NO_FAULTS),
      runtime,
      outlierEventLogPath: '',
      headerPrefix: 'x-proxy',
      localCluster: '',
      locality: { region: '', zone: '', subZone: '' },
    });
    void this.manager.start();
  }

  put(name: string, generation: number, ports: readonly number[]): void {
    const members: JsonObject[] = ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } }));
    const load_assignment = { cluster_name: name, endpoints: [{ lb_endpoints: members }] };
    const fields = { load_assignment, lb_policy: POLICIES[generation]!, maglev_lb_config: undefined };
    const { maglev_lb_config: _none, ...plain } = fields;
    const maglev = generation === 2 ? { maglev_lb_config: { table_size: 101 } } : {};
    this.manager.put(clusterSettings(clusterNamed(name, { ...plain, ...maglev })), String(generation));
  }

  /** Everybody does what is left to do. */
  async finish(): Promise<void> {
    for (const name of NAMES) this.manager.remove(name);
    await this.catchUp();
    for (const worker of this.workers) {
      for (const socket of worker.sockets.splice(0)) if (socket.isLive) socket.reset();
      await settle();
      for (const request of worker.requests.splice(0)) request.end();
    }
    await this.catchUp();
  }

  /** Everybody hears what the others have said. */
  async catchUp(): Promise<void> {
    for (let round = 0; round < 5; round++) {
      for (const worker of this.workers) {
        while (worker.messages.length > 0) worker.receive();
        await settle();
        do worker.reply();
        while (worker.replies.length > 0);
      }
    }
  }

  #publish(apply: (map: ClusterMap, applied: () => void) => void, onApplied: () => void): void {
    const generation = this.#confirmations.begin(this.workers.keys(), onApplied);
    for (const [index, worker] of this.workers.entries()) {
      const applied = (): void => void worker.replies.push(() => this.#confirmations.confirm(generation, index));
      worker.messages.push(() => apply(worker.map, applied));
    }
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await null;
}

/** One thing that happens. */
type Step = (model: Model) => void | Promise<void>;

const name = fc.constantFrom(...NAMES);
const worker = fc.nat({ max: WORKERS - 1 });
const at = fc.nat({ max: 7 });
const ofWorker = (what: (worker: ModelWorker) => void): fc.Arbitrary<Step> =>
  worker.map((index) => (model: Model) => what(model.workers[index]!));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(name, fc.nat({ max: POLICIES.length - 1 }), fc.subarray([1, 2, 3])).map(
    ([cluster, generation, ports]) =>
      (model: Model) =>
        model.put(cluster, generation, ports),
  ),
  name.map((cluster) => (model: Model) => void model.manager.remove(cluster)),
  { weight: 2, arbitrary: fc.constant((model: Model) => model.catchUp()) },
  { weight: 4, arbitrary: ofWorker((each) => each.receive()) },
  { weight: 4, arbitrary: ofWorker((each) => each.reply()) },
  {
    weight: 3,
    arbitrary: fc.tuple(name, worker).map(([cluster, index]) => (model: Model) => {
      const each = model.workers[index]!;
      const known = each.map.get(cluster);
      if (known === undefined) return;
      const request = new ModelRequest(each, known);
      each.requests.push(request);
      request.try();
    }),
  },
  ...(['try', 'end', 'accept', 'answer', 'reset'] as const).map((what) =>
    fc.tuple(worker, at).map(([index, place]) => (model: Model) => {
      const { requests, sockets } = model.workers[index]!;
      const request = requests[place % Math.max(1, requests.length)];
      const socket = sockets[place % Math.max(1, sockets.length)];
      if (what === 'try' && request?.isBusy === false) request.try();
      if (what === 'end' && request?.cancel()) {
        request.end();
        requests.splice(requests.indexOf(request), 1);
      }
      if (what === 'accept' && socket?.isConnecting) socket.accept();
      if (what === 'answer' && socket?.isOpen) socket.send(ANSWER);
      if (what === 'reset' && socket?.isLive) socket.reset();
    }),
  ),
);

test('nobody writes to what was given back, and at the end all has been', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
      const model = new Model();
      const before = { ...model.memory.used };
      for (const each of steps) {
        await each(model);
        await settle();
      }
      await model.finish();
      model.memory.check();
      assert.deepEqual(model.manager.dump(), []);
      assert.deepEqual(model.memory.used, before);
    }),
    { numRuns: 25 },
  );
});
