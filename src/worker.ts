// Entry point of a data-plane thread: builds the data plane over what the main thread shares with its first message
// and turns all later ones into calls. It decides nothing. A failure before it is ready ends the thread; later ones are
// contained, and cost a connection or one message.

import { parentPort, threadId } from 'node:worker_threads';
import { errorMessage } from './base/errors.ts';
import { collectGarbage, settleMemory } from './base/garbage.ts';
import { chooseReadMode, DataPlane, dumpHeapFor, sampleHeapFor } from './data-plane/index.ts';
import { ACCESS_LOGGERS, HTTP_FILTERS, NETWORK_FILTERS, TRACERS } from './extensions/data-registry.ts';
import { LineTable, Loggers, RelaySink } from './log/index.ts';
import type { MainToWorker, WorkerInit, WorkerToMain } from './snapshot/index.ts';
import { WorkerStats } from './stats/index.ts';
import { Http1Codec } from './wasm/http1.ts';
import { LbKernel } from './wasm/lb.ts';
import { SharedMemory } from './wasm/shared-memory.ts';

if (!parentPort) throw new Error('worker.ts runs as a worker thread of main.ts only');
const main = parentPort;
const MEGABYTE = 1e6;

function tell(message: WorkerToMain): void {
  main.postMessage(message);
}

/** Read ahead of the first line, while there are descriptors. */
const lines = LineTable.read(import.meta.url);

/** Found out while main reads the configuration. */
const readMode = chooseReadMode();

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
    http2: init.http2,
    http2Block: init.http2Block,
    headerPrefix: init.headerPrefix,
    localZone: init.localZone,
    localAddress: init.localAddress,
    loggers,
    workerIndex: init.workerIndex,
    reportHostFailure: (cluster, recordAddress) => tell({ type: 'host-failed', cluster, recordAddress }),
    reportOutlier: (cluster, recordAddress, kind) => tell({ type: 'outlier', cluster, recordAddress, kind }),
    reportUnfitFilter: (place, reason) => tell({ type: 'filter-unfit', place, reason }),
    sendNews: (news) => tell({ type: 'news', news }),
    askFor: (question, demand) => tell({ type: 'demand', question, demand }),
    requestHost: (cluster, address) => tell({ type: 'host-wanted', cluster, address }),
    accessLogFiles: init.accessLogFiles,
    httpFilters: HTTP_FILTERS,
    networkFilters: NETWORK_FILTERS,
    tracers: TRACERS,
    accessLoggers: ACCESS_LOGGERS,
    sendTrace: tell,
    readMode,
  });
  dataPlane.failHealthChecks(init.isHealthCheckFailing);
  dataPlane.updateDrains(init.drains);
  dataPlane.updateOverload(init.overload);
  dataPlane.updateRuntime(init.runtime);
  dataPlane.taps.replace(init.tap);
  dataPlane.updateClusters(init.clusters, []);
  for (const routes of init.routeTables) dataPlane.updateRoutes(routes);
  for (const filter of init.discoveredFilters) dataPlane.updateFilter(filter);
  for (const scopes of init.scopeSets) dataPlane.updateScopes(scopes);
  dataPlane.watchMain(init.watchdog);
  if (init.loopBlock !== null) dataPlane.meterLoop(init.loopBlock);
  tell({ type: 'ready' });
  return { dataPlane, stats, loggers, logSink };
}

/** @returns perhaps a promise, whose failure is that of the message. */
function receive(message: Exclude<MainToWorker, { type: 'init' }>, parts: Parts): unknown {
  const { dataPlane, stats, loggers, logSink } = parts;
  switch (message.type) {
    case 'cluster':
      return dataPlane.updateClusters([message.cluster], [], applied(message.generation, stats));
    case 'cluster-removed':
      return dataPlane.updateClusters([], [message.name], applied(message.generation, stats));
    case 'hosts':
      return dataPlane.updateHosts(message.update, applied(message.generation, stats));
    case 'updates':
      // One of them may fail without harm to the others.
      for (const update of message.updates) {
        dataPlane.faults.run(`update '${update.type}'`, () => receive(update, parts));
      }
      return;
    case 'cluster-tls':
      return dataPlane.secureCluster(message.name, message.transports, applied(message.generation, stats));
    case 'routes':
      return dataPlane.updateRoutes(message.routes, applied(message.generation, stats));
    case 'routes-removed':
      return dataPlane.removeRoutes(message.id, applied(message.generation, stats));
    case 'scopes':
      return dataPlane.updateScopes(message.scopes);
    case 'scopes-removed':
      return dataPlane.removeScopes(message.id);
    case 'news':
      return dataPlane.hearNews(message.news);
    case 'news-taken':
      return dataPlane.newsTaken();
    case 'demand-answered':
      return dataPlane.answerDemand(message.question, message.isThere);
    case 'filter':
      return dataPlane.updateFilter(message.filter, applied(message.generation, stats));
    case 'filter-removed':
      return dataPlane.removeFilter(message.id, applied(message.generation, stats));
    case 'host-refused':
      return dataPlane.refuseHost(message.cluster, message.address, message.reason);
    case 'listen':
      return listen(dataPlane, message);
    case 'listener-tls':
      return dataPlane.secureListener(message.listenerId, message.chains, applied(message.generation, stats));
    case 'listener-chains': {
      const { listener, drain, generation, goneGeneration } = message;
      const onApplied = applied(generation, stats);
      return dataPlane.updateChains(listener, { drain, onApplied, onGone: applied(goneGeneration, stats) });
    }
    case 'stop-listener': {
      const { listenerId, successor, drain, generation } = message;
      return dataPlane.stopListener(listenerId, {
        successor,
        drain,
        onGone: applied(generation, stats),
      });
    }
    case 'stop-accepting':
      return dataPlane.stopAccepting(message.listenerId, applied(message.generation, stats), message.leavesPaths);
    case 'own-sockets':
      return dataPlane.ownSockets();
    case 'share-sockets': {
      const { question, listenerId, addressIndex } = message;
      return tell({
        type: 'shared-sockets',
        question,
        descriptors: dataPlane.shareSockets(listenerId, addressIndex),
      });
    }
    case 'drains':
      return dataPlane.updateDrains(message.drains);
    case 'overload':
      return dataPlane.updateOverload(message.state);
    case 'reset-streams':
      return dataPlane.resetStreams(message.reset);
    case 'shrink-heap':
      return collectGarbage();
    case 'sample-heap':
      return sampleHeapFor(message.port, message.options);
    case 'dump-heap':
      return dumpHeapFor(message.port);
    case 'settle':
      return dataPlane.settle(() => {
        const megabytes = (settleMemory() / MEGABYTE).toFixed(0);
        const log = loggers.get('main').ofFile('src/worker.ts');
        log.debug(`the start of this worker is over: ${megabytes} MB given back to the system`);
      });
    case 'dynamic-stat':
      return stats.resolve(message.key, message.cell);
    case 'reopen-access-logs':
      return dataPlane.reopenAccessLogs();
    case 'runtime':
      return dataPlane.updateRuntime(message.texts);
    case 'fail-health-checks':
      return dataPlane.failHealthChecks(message.isFailing);
    case 'tap':
      return dataPlane.taps.replace(message.session);
    case 'tap-taken':
      return dataPlane.taps.confirm(message.cost);
    case 'log-taken':
      return logSink.confirm(message.cost);
    case 'log-levels':
      return loggers.applyLevels(message.levels);
    case 'shutdown':
      return dataPlane.shutdown(message.graceMs).finally(() => tell({ type: 'stopped' }));
  }
}

function applied(generation: number, stats: WorkerStats): () => void {
  return () => stats.whenWritten(() => confirm(generation));
}

/** Generations that main is to be told of at the end of this turn. */
let confirmed: number[] = [];

function confirm(generation: number): void {
  confirmed.push(generation);
  if (confirmed.length === 1) setImmediate(tellConfirmed);
}

function tellConfirmed(): void {
  const generations = confirmed;
  confirmed = [];
  tell({ type: 'applied', generations });
}

async function listen(
  dataPlane: DataPlane,
  { listener, ports, predecessor, inherited }: Extract<MainToWorker, { type: 'listen' }>,
): Promise<void> {
  try {
    const bound = await dataPlane.listen(listener, ports, predecessor, inherited);
    tell({ type: 'listening', listenerId: listener.id, ports: bound });
  } catch (error) {
    tell({ type: 'listen-failed', listenerId: listener.id, reason: errorMessage(error) });
  }
}

let parts: Parts | undefined;

function begin(init: WorkerInit): void {
  parts = build(init);
  parts.dataPlane.faults.containUncaught();
}

main.on('message', (message: MainToWorker) => {
  const worker = parts;
  if (message.type === 'init') begin(message.init);
  else if (worker) worker.dataPlane.faults.run(`message '${message.type}'`, () => receive(message, worker));
  else if (message.type === 'shutdown') tell({ type: 'stopped' });
});
