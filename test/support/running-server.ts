// A server of this process with workers of its own, which a test can see into.

import type { Worker } from 'node:worker_threads';
import { SYSTEM_CLOCK } from '../../src/base/clock.ts';
import { errorMessage } from '../../src/base/errors.ts';
import { FaultBoundary } from '../../src/base/fault-boundary.ts';
import { loadPartsAtNeed } from '../../src/control-plane/server/parts-at-need.ts';
import { Server } from '../../src/control-plane/server/server.ts';
import { WorkerPool } from '../../src/control-plane/workers/worker-pool.ts';
import { Loggers } from '../../src/log/index.ts';
import { type JsonObject, mustLoad } from './bootstrap.ts';

const DRAIN_LIMIT_MS = 5000;

export interface RunningServer extends AsyncDisposable {
  readonly server: Server;
  /** In the order of their start. */
  readonly threads: readonly Worker[];
  readonly log: readonly string[];
  portOf(listener: string): number;
}

export async function runServer(bootstrap: JsonObject, concurrency: number): Promise<RunningServer> {
  const threads: Worker[] = [];
  const collect = (worker: Worker): void => void threads.push(worker);
  process.on('worker', collect);
  const log: string[] = [];
  const sink = { write: ({ message }: { message: string }) => void log.push(message) };
  const loggers = new Loggers({ levels: { default: 'info' }, threadId: 0, sink });
  const faults = new FaultBoundary((where, error) => log.push(`a fault in ${where}: ${errorMessage(error)}`));
  const workers = new WorkerPool({ concurrency, loggers, clock: SYSTEM_CLOCK, faults });
  const loaded = mustLoad(bootstrap);
  const server = new Server({
    bootstrap: loaded,
    parts: await loadPartsAtNeed(loaded),
    workers,
    loggers,
    clock: SYSTEM_CLOCK,
    faults,
    revisionNumber: 0,
    versionText: '',
    unknownFields: 0,
    drainMs: 1000,
    drainStrategy: 'gradual',
    fileFlushIntervalMs: 10_000,
  });
  await server.start();
  return {
    server,
    threads,
    log,
    portOf(name) {
      const found = [...server.listenerManager.listeners()].find((listener) => listener.name === name);
      const address = found?.addresses[0];
      return address?.kind === 'ip' ? address.port : 0;
    },
    async [Symbol.asyncDispose]() {
      process.off('worker', collect);
      await server.stop(DRAIN_LIMIT_MS);
    },
  };
}
