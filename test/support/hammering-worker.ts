// A worker thread that writes the same stats and records as others do, as fast as it can and until it is told
// to stop, and keeps an account of its own.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads';
import { type DynamicStatName, WorkerStats } from '../../src/stats/index.ts';
import { ClusterCount, ClusterPriority, SharedMemory } from '../../src/wasm/shared-memory.ts';

export interface HammerPlan {
  readonly memory: WebAssembly.Memory;
  readonly workerIndex: number;
  /** First of `counters` counter cells that lie next to each other, followed by `histograms` histogram cells. */
  readonly block: number;
  readonly counters: number;
  readonly histograms: number;
  readonly hosts: readonly number[];
  readonly cluster: number;
  /** Recorded in turn; as many for each histogram. */
  readonly values: Float64Array;
}

/** What one worker has done; whole numbers. */
export interface HammerAccount {
  /** By counter. */
  readonly counted: readonly number[];
  /** By histogram, then by place in the plan's values. */
  readonly recorded: readonly (readonly number[])[];
  /** Requests left open, by host. */
  readonly open: readonly number[];
}

type FromWorker = { readonly ask: DynamicStatName } | { readonly account: HammerAccount };
type ToWorker = { readonly answer: DynamicStatName; readonly cell: number } | 'stop';

/** The test's handle of one such thread. */
export class HammeringWorker {
  readonly #worker: Worker;
  readonly account: Promise<HammerAccount>;

  /** @param cellOf  main's answer to a worker that needs a cell or memory. */
  constructor(plan: HammerPlan, cellOf: (name: DynamicStatName) => number) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: plan });
    this.account = new Promise((resolve, reject) => {
      this.#worker.on('error', reject).on('message', (message: FromWorker) => {
        if ('account' in message) resolve(message.account);
        else this.#post({ answer: message.ask, cell: cellOf(message.ask) });
      });
    });
  }

  stop(): void {
    this.#post('stop');
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }
}

const BATCH = 64;
const STEPS_PER_TURN = 2000;

class Hammer {
  readonly #plan: HammerPlan;
  readonly #shared: SharedMemory;
  readonly #stats: WorkerStats;
  readonly #base: number;
  readonly #account: { counted: number[]; recorded: number[][]; open: number[] };
  isStopped = false;

  constructor(plan: HammerPlan, ask: (name: DynamicStatName) => void) {
    this.#plan = plan;
    this.#shared = SharedMemory.attach(plan.memory, plan.workerIndex);
    this.#stats = new WorkerStats({ memory: this.#shared, requestCell: ask });
    this.#base = this.#stats.base(plan.block);
    const zeros = (length: number): number[] => Array<number>(length).fill(0);
    this.#account = {
      counted: zeros(plan.counters),
      recorded: Array.from({ length: plan.histograms }, () => zeros(plan.values.length)),
      open: zeros(plan.hosts.length),
    };
  }

  resolve(name: DynamicStatName, cell: number): void {
    this.#stats.resolve(name, cell);
  }

  async run(): Promise<HammerAccount> {
    for (let step = 0; !this.isStopped; await nextTurn()) {
      for (const end = step + STEPS_PER_TURN; step < end; step++) this.#step(step);
    }
    while (this.#stats.waitingSamples > 0) await nextTurn();
    return this.#account;
  }

  #step(step: number): void {
    const { counters, histograms, hosts, cluster, values } = this.#plan;
    const counter = step % counters;
    this.#stats.values[this.#base + counter]! += 1;
    this.#account.counted[counter]! += 1;
    const histogram = step % histograms;
    this.#record(histogram, step % (values.length - BATCH), step % 5 === 0);
    const host = step % hosts.length;
    this.#shared.records.addActiveRequests(hosts[host]!, 1);
    this.#shared.records.addClusterCount(cluster, ClusterPriority.default, ClusterCount.requests, 1);
    // Some stay open, as requests in flight do when the totals are looked at.
    if (step % 1000 === 0) {
      this.#account.open[host]! += 1;
      return;
    }
    this.#shared.records.addActiveRequests(hosts[host]!, -1);
    this.#shared.records.addClusterCount(cluster, ClusterPriority.default, ClusterCount.requests, -1);
  }

  #record(histogram: number, first: number, asBatch: boolean): void {
    const index = this.#base + this.#plan.counters + histogram;
    const { values } = this.#plan;
    const count = asBatch ? BATCH : 1;
    if (asBatch) this.#stats.recordMany(index, values.subarray(first, first + count));
    else this.#stats.record(index, values[first]!);
    for (let at = first; at < first + count; at++) this.#account.recorded[histogram]![at]! += 1;
  }
}

async function serve(main: MessagePort, plan: HammerPlan): Promise<void> {
  const hammer = new Hammer(plan, (ask) => main.postMessage({ ask } satisfies FromWorker));
  main.on('message', (message: ToWorker) => {
    if (message === 'stop') hammer.isStopped = true;
    else hammer.resolve(message.answer, message.cell);
  });
  const account = await hammer.run();
  main.postMessage({ account } satisfies FromWorker);
}

const isStarted = (workerData as HammerPlan | null)?.hosts !== undefined;
if (parentPort && isStarted) await serve(parentPort, workerData as HammerPlan);
