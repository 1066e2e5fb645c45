// A worker thread that does to the shared memory what a test tells it, one command at a time.

import { type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads';
import { WorkerStats } from '../../src/stats/index.ts';
import { ClusterCount, ClusterPriority, SharedMemory } from '../../src/wasm/shared-memory.ts';

export type WorkerCommand =
  /** Adds 1 to each of the block's `cells` cells, `rounds` times over. */
  | { readonly do: 'count'; readonly block: number; readonly cells: number; readonly rounds: number }
  /** Takes and gives back requests and connections; leaves `keep` of each. */
  | {
      readonly do: 'hammer-records';
      readonly host: number;
      readonly cluster: number;
      readonly rounds: number;
      readonly keep: number;
    }
  /** Takes requests below a limit until there are none; answers how many it got. */
  | { readonly do: 'acquire'; readonly cluster: number; readonly limit: number; readonly attempts: number }
  /** The same on a count record. */
  | { readonly do: 'acquire-count'; readonly record: number; readonly limit: number; readonly attempts: number }
  | { readonly do: 'crash' };

interface StartData {
  readonly memory: WebAssembly.Memory;
  readonly workerIndex: number;
}

/** The test's handle of one such thread. */
export class CommandedWorker {
  readonly #worker: Worker;

  constructor(memory: WebAssembly.Memory, workerIndex: number) {
    const workerData: StartData = { memory, workerIndex };
    this.#worker = new Worker(new URL(import.meta.url), { workerData });
  }

  /** Resolves with the command's answer; rejects when the thread fails. */
  run(command: WorkerCommand): Promise<number> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        this.#worker.off('message', onMessage).off('error', onError).off('exit', onExit);
        finish();
      };
      const onMessage = (answer: number): void => settle(() => resolve(answer));
      const onError = (error: unknown): void => settle(() => reject(error));
      const onExit = (code: number): void => settle(() => reject(new Error(`worker ended with ${code}`)));
      this.#worker.on('message', onMessage).on('error', onError).on('exit', onExit);
      this.#worker.postMessage(command);
    });
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

function serve(main: MessagePort, { memory, workerIndex }: StartData): void {
  const shared = SharedMemory.attach(memory, workerIndex);
  const stats = new WorkerStats({ memory: shared, requestCell: () => {} });
  main.on('message', (command: WorkerCommand) => main.postMessage(obey(command, shared, stats)));
}

function obey(command: WorkerCommand, shared: SharedMemory, stats: WorkerStats): number {
  switch (command.do) {
    case 'count':
      return count(stats, command);
    case 'hammer-records':
      return hammer(shared, command);
    case 'acquire':
      return acquire(shared, command);
    case 'acquire-count':
      return acquireCount(shared, command);
    case 'crash':
      process.exit(7);
  }
}

function count(stats: WorkerStats, { block, cells, rounds }: WorkerCommand & { do: 'count' }): number {
  const base = stats.base(block);
  for (let round = 0; round < rounds; round++) {
    for (let cell = 0; cell < cells; cell++) stats.values[base + cell]! += 1;
  }
  return rounds * cells;
}

function hammer({ records }: SharedMemory, command: WorkerCommand & { do: 'hammer-records' }): number {
  const { host, cluster, rounds, keep } = command;
  for (let round = 0; round < rounds + keep; round++) {
    records.addActiveRequests(host, 1);
    records.addActiveConnections(host, 1);
    records.addClusterCount(cluster, ClusterPriority.default, ClusterCount.requests, 1);
    records.addClusterCount(cluster, ClusterPriority.high, ClusterCount.pendingRequests, 1);
    if (round >= rounds) continue;
    records.addActiveRequests(host, -1);
    records.addActiveConnections(host, -1);
    records.addClusterCount(cluster, ClusterPriority.default, ClusterCount.requests, -1);
    records.addClusterCount(cluster, ClusterPriority.high, ClusterCount.pendingRequests, -1);
  }
  return keep;
}

function acquire({ records }: SharedMemory, { cluster, limit, attempts }: WorkerCommand & { do: 'acquire' }): number {
  let got = 0;
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (records.tryAcquire(cluster, ClusterPriority.default, ClusterCount.requests, limit)) got += 1;
  }
  return got;
}

function acquireCount(
  { records }: SharedMemory,
  { record, limit, attempts }: WorkerCommand & { do: 'acquire-count' },
): number {
  let got = 0;
  for (let attempt = 0; attempt < attempts; attempt++) if (records.tryAcquireCount(record, limit)) got += 1;
  return got;
}

const isStarted = (workerData as StartData | null)?.memory !== undefined;
if (parentPort && isStarted) serve(parentPort, workerData as StartData);
