// Entry point of a data-plane thread: builds the data plane over what the main thread shares with its first message
// and turns all later ones into calls. It decides nothing. A failure outside a connection's own boundary ends the thread;
// the main thread then starts another in its place.

import { parentPort, threadId } from 'node:worker_threads';
import { errorMessage } from './base/errors.ts';
import { DataPlane } from './data-plane/index.ts';
import { HTTP_FILTERS } from './extensions/data-registry.ts';
import { LineTable, Loggers, RelaySink } from './log/index.ts';
import type { ListenerSnapshot, MainToWorker, WorkerInit, WorkerToMain } from './snapshot/index.ts';
import { WorkerStats } from './stats/index.ts';
import { Http1Codec } from './wasm/http1.ts';
import { LbKernel } from './wasm/lb.ts';
import { SharedMemory } from './wasm/shared-memory.ts';

if (!parentPort) throw new Error('worker.ts runs as a worker thread of main.ts only');
const main = parentPort;

function tell(message: WorkerToMain): void {
  main.postMessage(message);
}

/** Read ahead of the first line, while there are descriptors. */
const lines = LineTable.read(import.meta.url);

interface Parts {
  readonly dataPlane: DataPlane;
  readonly stats: WorkerStats;
  readonly loggers: Loggers;
  readonly logSink: RelaySink;
}

function build(init: WorkerInit): Parts {
  const logSink = new RelaySink(tell);
  const loggers = new Loggers({ levels: init.logLevels, threadId, lines, sink: logSink });
  const memory = SharedMemory.attach(init.sharedMemory, init.workerIndex);
  const stats = new WorkerStats({
    memory,
    module: init.statsModule,
    requestCell: (key) => tell({ type: 'dynamic-stat', key }),
  });
  const dataPlane = new DataPlane({
    stats,
    records: memory.records,
    lbKernel: new LbKernel(memory, init.lbModule),
    codec: new Http1Codec(init.http1, init.headerPrefix),
    headerPrefix: init.headerPrefix,
    loggers,
    workerIndex: init.workerIndex,
    accessLogFiles: init.accessLogFiles,
    httpFilters: HTTP_FILTERS,
  });
  dataPlane.failHealthChecks(init.isHealthCheckFailing);
  dataPlane.updateClusters(init.clusters, []);
  tell({ type: 'ready' });
  return { dataPlane, stats, loggers, logSink };
}

function receive(message: Exclude<MainToWorker, { type: 'init' }>, parts: Parts): void {
  const { dataPlane, stats, loggers, logSink } = parts;
  switch (message.type) {
    case 'clusters':
      dataPlane.updateClusters(message.updated, message.removed, () =>
        tell({ type: 'applied', generation: message.generation }),
      );
      break;
    case 'listen':
      void listen(dataPlane, message.listener, message.ports);
      break;
    case 'stop-listener':
      void dataPlane.stopListener(message.listenerId);
      break;
    case 'dynamic-stat':
      stats.resolve(message.key, message.cell);
      break;
    case 'reopen-access-logs':
      dataPlane.reopenAccessLogs();
      break;
    case 'fail-health-checks':
      dataPlane.failHealthChecks(message.isFailing);
      break;
    case 'log-taken':
      logSink.confirm(message.cost);
      break;
    case 'log-levels':
      loggers.applyLevels(message.levels);
      break;
    case 'shutdown':
      void dataPlane.shutdown(message.graceMs).then(() => tell({ type: 'stopped' }));
      break;
  }
}

async function listen(dataPlane: DataPlane, listener: ListenerSnapshot, ports: readonly number[]): Promise<void> {
  try {
    tell({ type: 'listening', listenerId: listener.id, ports: await dataPlane.listen(listener, ports) });
  } catch (error) {
    tell({ type: 'listen-failed', listenerId: listener.id, reason: errorMessage(error) });
  }
}

let parts: Parts | undefined;
main.on('message', (message: MainToWorker) => {
  if (message.type === 'init') parts = build(message.init);
  else if (parts) receive(message, parts);
  else if (message.type === 'shutdown') tell({ type: 'stopped' });
});
