// The data-plane threads: started together, kept alive, stopped together. Main thread. It remembers which listeners are open
// (open-listeners.ts), and asks for the clusters of the moment, so that a worker started after a crash catches up by itself.

import type { HeapInfo } from 'node:v8';
import type { Clock } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { RuntimeTexts } from '../../base/runtime.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import {
  type ClusterSnapshot,
  type DrainProgress,
  type DrainState,
  type HostRefusal,
  type HostsUpdate,
  type InheritedSockets,
  type ListenerSnapshot,
  type MainToWorker,
  type OverloadState,
  type PackedCluster,
  type PublishedExtension,
  type PublishedRoutes,
  type PublishedScopes,
  packClusters,
  packTls,
  type SecuredChain,
  type SecuredTransport,
  type StreamReset,
  type TapSession,
  type UpstreamTlsSettings,
} from '../../snapshot/index.ts';
import type { ProfiledHeap, ProfileKind, ProfileOptions, RunningProfile } from '../profiling/profilers.ts';
import { EngineQuestions } from './engine-questions.ts';
import { OpenListeners } from './open-listeners.ts';
import { SocketQuestions } from './socket-questions.ts';
import { StandingOrders } from './standing-orders.ts';
import { UpdateConfirmations } from './update-confirmations.ts';
import { type QueuedUpdate, UpdateQueue } from './update-queue.ts';
import { WorkerReports } from './worker-reports.ts';
import { WorkerRestarts } from './worker-restarts.ts';
import type { WorkerService } from './worker-service.ts';
import { type WorkerEvents, WorkerThread } from './worker-thread.ts';

export interface WorkerPoolDependencies {
  readonly concurrency: number;
  readonly loggers: Loggers;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  /** Flags of Node for the threads; those of the process when absent. */
  readonly threadFlags?: readonly string[] | undefined;
}

/** A worker keeps the bound of a stop itself, and writes its access logs behind that; beyond this it hangs. */
const LATE_MS = 2_000;

export class WorkerPool {
  readonly #deps: WorkerPoolDependencies;
  readonly #log: Logger;
  readonly #workers: (WorkerThread | undefined)[] = [];
  readonly #listeners: OpenListeners;
  readonly #engines: EngineQuestions;
  readonly #confirmations: UpdateConfirmations;
  readonly #updates: UpdateQueue;
  readonly #socketQuestions = new SocketQuestions();
  readonly #reports: WorkerReports;
  readonly #restarts: WorkerRestarts;
  #service: WorkerService | undefined;
  /** Why a thread ended before there was anything for it to do. */
  #earlyFailure: WeirError | undefined;
  #startup: { readonly resolve: () => void; readonly reject: (error: WeirError) => void } | undefined;
  readonly #orders = new StandingOrders();
  #isStopping = false;
  readonly #allStopped = Promise.withResolvers<void>();

  /** Starts the threads: they load their code while the main thread reads the configuration. */
  constructor(deps: WorkerPoolDependencies) {
    this.#deps = deps;
    this.#log = deps.loggers.get('main');
    this.#confirmations = new UpdateConfirmations(deps.faults);
    this.#updates = new UpdateQueue(deps.faults, (message) => {
      for (const worker of this.#workers) worker?.send(message);
    });
    this.#listeners = new OpenListeners({
      workers: this.#workers,
      tell: (worker, message) => this.#tell(worker, message),
      areStarting: () => this.#startup !== undefined,
      faults: deps.faults,
      log: this.#log,
    });
    this.#reports = new WorkerReports({
      workers: this.#workers,
      service: () => this.#service,
      listeners: this.#listeners,
      socketQuestions: this.#socketQuestions,
      confirmations: this.#confirmations,
      loggers: deps.loggers,
      log: this.#log,
      tell: (worker, message) => this.#tell(worker, message),
      onReady: (worker) => this.#workerReady(worker),
      onStopped: (worker) => this.#terminate(worker),
    });
    this.#engines = new EngineQuestions(this.#workers, deps.clock, deps.faults);
    this.#restarts = new WorkerRestarts(deps.concurrency, deps.clock, this.#log, (index) => this.#spawn(index));
    deps.loggers.onLevelsChanged(() => this.#broadcast({ type: 'log-levels', levels: deps.loggers.levels() }));
    for (let index = 0; index < deps.concurrency; index += 1) this.#spawn(index);
  }

  get concurrency(): number {
    return this.#deps.concurrency;
  }

  /** Flags of Node for threads; those of the process when undefined. */
  get threadFlags(): readonly string[] | undefined {
    return this.#deps.threadFlags;
  }

  /** Share of its time that each worker has been at work since this was asked last; undefined while there is none. */
  takeEventLoopUses(): readonly (number | undefined)[] {
    return this.#workers.map((worker) => (worker?.isRunning ? worker.takeEventLoopUse() : undefined));
  }

  /** Gives every worker its work; resolves when all are ready, rejects when one cannot start. */
  async start(service: WorkerService): Promise<void> {
    this.#service = service;
    if (this.#earlyFailure) throw this.#earlyFailure;
    await new Promise<void>((resolve, reject) => {
      this.#startup = { resolve, reject };
      const clusters = packClusters(service.clusters());
      // One that had ended would have been a failure.
      for (const worker of this.#workers) this.#initialize(worker!, service, clusters);
    });
  }

  /**
   * Brings a cluster to every worker; one of the same name goes.
   * @param onApplied called once, when no worker uses anything any more that this has removed.
   */
  publishCluster(cluster: ClusterSnapshot, onApplied: () => void): void {
    this.#queueUpdate((generation) => ({ type: 'unpacked', generation, cluster }), onApplied);
  }

  /** @param onApplied as for publishCluster. */
  removeCluster(name: string, onApplied: () => void): void {
    this.#queueUpdate((generation) => ({ type: 'cluster-removed', generation, name }), onApplied);
  }

  /** Brings what has changed about the members of a cluster. @param onApplied as for publishCluster. */
  publishHosts(update: HostsUpdate, onApplied: () => void): void {
    this.#queueUpdate((generation) => ({ type: 'hosts', generation, update }), onApplied);
  }

  /** Brings a route table to every worker. @param onGone called once, when no request goes by the one of its id before it. */
  publishRoutes(routes: PublishedRoutes, onGone: () => void): void {
    this.#publish((generation) => ({ type: 'routes', generation, routes }), onGone);
  }

  /** No listener refers to it any more. @param onGone as for publishRoutes. */
  removeRoutes(id: number, onGone: () => void): void {
    this.#publish((generation) => ({ type: 'routes-removed', generation, id }), onGone);
  }

  /** Brings what has changed about a set of scopes to every worker. */
  publishScopes(scopes: PublishedScopes): void {
    this.#order({ type: 'scopes', scopes });
  }

  /** No listener refers to it any more. */
  removeScopes(id: number): void {
    this.#order({ type: 'scopes-removed', id });
  }

  /** Brings a filter's configuration to every worker. @param onGone called once, when no request uses the one of its id before it. */
  publishFilter(filter: PublishedExtension, onGone: () => void): void {
    this.#publish((generation) => ({ type: 'filter', generation, filter }), onGone);
  }

  /** No listener refers to it any more. @param onGone as for publishFilter. */
  removeFilter(id: number, onGone: () => void): void {
    this.#publish((generation) => ({ type: 'filter-removed', generation, id }), onGone);
  }

  /** There is no host that is called so: who waits for it in any worker hears of it. */
  refuseHost(cluster: string, address: string, reason: HostRefusal): void {
    this.#order({ type: 'host-refused', cluster, address, reason });
  }

  /** Has connections of a cluster be secured by other settings. @param changed by place (upstreamContextsOf). */
  secureCluster(name: string, changed: ReadonlyMap<number, UpstreamTlsSettings>, onApplied: () => void): void {
    const transports = [...changed].map(([index, tls]): SecuredTransport => ({ index, tls: packTls(tls) }));
    this.#publish((generation) => ({ type: 'cluster-tls', generation, name, transports }), onApplied);
  }

  /**
   * Opens a listener in every worker, as soon as `start` has been called. Workers share ports (SO_REUSEPORT); where the system
   * is to choose one, the first worker has it chosen before the others follow. A listener that cannot or must not be shared is
   * served by the first worker alone.
   * @param predecessor whose sockets it gets on addresses of both when that one is stopped; null for nobody's.
   * @param inherited descriptors of sockets of another process or of other workers by address, which are shared out: they become
   *   the workers'.
   * @returns the ports in use by address, 0 for a pipe.
   * @throws WeirError WEIR_LISTEN_FAILED when a worker cannot bind; the caller stops the listener then.
   */
  openListener(
    listener: ListenerSnapshot,
    predecessor: number | null = null,
    inherited: InheritedSockets | null = null,
  ): Promise<readonly number[]> {
    return this.#listeners.open(listener, predecessor, inherited);
  }

  /**
   * Has handshakes of an open listener go by other settings. @param listener as it is now, for workers that start later.
   * @param onApplied called once, when they do in every worker.
   */
  secureListener(listener: ListenerSnapshot, chains: readonly SecuredChain[], onApplied: () => void): void {
    this.#listeners.changed(listener);
    this.#publish((generation) => ({ type: 'listener-tls', generation, listenerId: listener.id, chains }), onApplied);
  }

  /**
   * Gives an open listener other filter chains; resolves when new connections meet them in every worker.
   * @param listener as it is now, also for workers that start later. @param drain of the connections of chains that are gone.
   * @param onGone called once, when no worker has one of those any more.
   */
  updateChains(listener: ListenerSnapshot, drain: DrainProgress, onGone: () => void): Promise<void> {
    this.#listeners.changed(listener);
    return new Promise((resolve) => {
      this.#publish((goneGeneration) => {
        const generation = this.#confirmations.begin(this.#informed(), resolve);
        return { type: 'listener-chains', generation, goneGeneration, listener, drain };
      }, onGone);
    });
  }

  /** Has health checks fail, or succeed again, in every worker and those that start later. */
  failHealthChecks(isFailing: boolean): void {
    this.#orders.isHealthCheckFailing = isFailing;
    this.#order({ type: 'fail-health-checks', isFailing });
  }

  /** Replaces the values of the runtime in every worker and those that start later. */
  publishRuntime(texts: RuntimeTexts): void {
    this.#orders.runtime = texts;
    this.#order({ type: 'runtime', texts });
  }

  /** Brings drains to every worker and those that start later. @param drains as they are at the time of the call. */
  publishDrains(drains: () => DrainState): void {
    this.#orders.drains = drains;
    this.#order({ type: 'drains', drains: drains() });
  }

  /** Brings what the overload manager asks for to every worker and those that start later. */
  publishOverload(state: OverloadState): void {
    this.#orders.overload = state;
    this.#order({ type: 'overload', state });
  }

  /** Has every worker end the streams that hold the most. */
  resetStreams(reset: StreamReset): void {
    this.#order({ type: 'reset-streams', reset });
  }

  /** Has the engines of all workers give back what they do not use. */
  shrinkHeaps(): void {
    this.#order({ type: 'shrink-heap' });
  }

  /** Has workers that nobody uses yet give back what their start has left. */
  settle(): void {
    this.#order({ type: 'settle' });
  }

  /** Has every worker record for this, and those that start later; null for nothing. */
  publishTap(session: TapSession | null): void {
    this.#orders.tap = session;
    this.#order({ type: 'tap', session });
  }

  /** Has every worker open the files of its access logs anew. */
  reopenAccessLogs(): void {
    this.#broadcast({ type: 'reopen-access-logs' });
  }

  /**
   * Stops accepting on a listener; its open connections drain, and are cut behind that.
   * @param successor that takes over its sockets on addresses of both; null for nobody.
   * @param onApplied called once, when no worker has a connection of it any more.
   */
  stopListener(listenerId: number, successor: number | null, drain: DrainProgress, onApplied: () => void): void {
    this.#listeners.forget(listenerId);
    this.#publish((generation) => ({ type: 'stop-listener', generation, listenerId, successor, drain }), onApplied);
  }

  /**
   * Stops accepting on a listener. @param onApplied called once, when no worker has a connection of it any more.
   * @param leavesPaths of unix sockets to the process that they are shared with.
   */
  stopAccepting(listenerId: number, onApplied: () => void, leavesPaths = false): void {
    this.#listeners.forget(listenerId);
    this.#publish((generation) => ({ type: 'stop-accepting', generation, listenerId, leavesPaths }), onApplied);
  }

  /** The process that sockets were inherited from has left them to this one. */
  ownSockets(): void {
    this.#broadcast({ type: 'own-sockets' });
  }

  /** Descriptors of all sockets that workers from one on have on one address of a listener, for others; the caller's. */
  shareSockets(listenerId: number, addressIndex: number, fromWorker = 0): Promise<readonly number[]> {
    const running = this.#workers.flatMap((worker, index) => (index >= fromWorker && worker?.isRunning ? [index] : []));
    return this.#socketQuestions.ask(running, (question) => {
      for (const index of running)
        this.#workers[index]?.send({ type: 'share-sockets', question, listenerId, addressIndex });
    });
  }

  /** As of EngineQuestions, like the other questions to engines. */
  heapStatistics(): Promise<HeapInfo[]> {
    return this.#engines.heapStatistics();
  }

  startProfile(kind: ProfileKind, options: ProfileOptions): Promise<RunningProfile[]> {
    return this.#engines.startProfile(kind, options);
  }

  heaps(): ProfiledHeap[] {
    return this.#engines.heaps();
  }

  whereIs(index: number): Promise<string | undefined> {
    return this.#engines.whereIs(index);
  }

  isRunning(index: number): boolean {
    return this.#workers[index]?.isRunning ?? false;
  }

  /** Ends a worker that does nothing any more; another takes its place. Resolves when it is gone. */
  async endStuck(index: number, reason: string): Promise<void> {
    await this.#workers[index]?.endStuck(reason);
  }

  /** Stops accepting, lets running requests end within `graceMs`, ends the threads. Can be called again. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    this.#restarts.cancel();
    const live = this.#workers.filter((worker) => worker !== undefined);
    if (live.length === 0) return;
    if (this.#service) this.#broadcast({ type: 'shutdown', graceMs });
    else for (const worker of live) this.#terminate(worker);
    const cancelCut = this.#deps.clock.after(graceMs + LATE_MS, () => {
      for (const worker of live) this.#terminate(worker);
    });
    await this.#allStopped.promise;
    cancelCut();
  }

  #terminate(worker: WorkerThread): void {
    this.#deps.faults.run(`ending worker ${worker.index}`, () => worker.terminate());
  }

  #spawn(index: number): void {
    // What is on its way is not for this one, which begins with the state of now.
    this.#updates.flush();
    const { faults, threadFlags } = this.#deps;
    const events: WorkerEvents = {
      onMessage: (sender, message) => this.#reports.receive(sender, message),
      onEnd: (sender, reason, stack) => this.#workerEnded(sender, reason, stack),
    };
    const worker = new WorkerThread(index, events, faults, threadFlags);
    this.#workers[index] = worker;
    if (this.#service) this.#initialize(worker, this.#service, packClusters(this.#service.clusters()));
  }

  #initialize(
    worker: WorkerThread,
    { shared, watchdog, loopBlock, routeTables, scopeSets, discoveredFilters }: WorkerService,
    clusters: readonly PackedCluster[],
  ): void {
    const logLevels = this.#deps.loggers.levels();
    const init = {
      ...shared,
      ...this.#orders.now(),
      workerIndex: worker.index,
      clusters,
      routeTables: [...routeTables()],
      discoveredFilters: [...discoveredFilters()],
      scopeSets: [...scopeSets()],
      logLevels,
      watchdog: watchdog(worker.index),
      loopBlock: loopBlock(worker.index),
    };
    worker.send({ type: 'init', init });
  }

  /** As `publish`, soon, with others in one message. */
  #queueUpdate(update: (generation: number) => QueuedUpdate, onApplied: () => void): void {
    const queued = update(this.#confirmations.begin(this.#informed(), onApplied));
    if (this.#service) this.#updates.add(queued);
  }

  #publish(message: (generation: number) => MainToWorker, onApplied: () => void): void {
    const generation = this.#confirmations.begin(this.#informed(), onApplied);
    const told = message(generation);
    if (this.#service) this.#broadcast(told);
  }

  /** Workers that are told of changes: those without their first message will find the state of then in it. */
  #informed(): readonly number[] {
    return this.#service ? this.#workers.flatMap((worker, index) => (worker ? [index] : [])) : [];
  }

  /** Workers without their first message will find it there, where it lasts. */
  #order(message: MainToWorker): void {
    if (this.#service) this.#broadcast(message);
  }

  #broadcast(message: MainToWorker): void {
    this.#updates.flush();
    for (const worker of this.#workers) worker?.send(message);
  }

  /** Behind the updates that are on their way. */
  #tell(worker: WorkerThread, message: MainToWorker): void {
    this.#updates.flush();
    worker.send(message);
  }

  #workerReady(worker: WorkerThread): void {
    if (this.#startup) {
      if (this.#workers.every((each) => each?.isRunning)) {
        this.#startup.resolve();
        this.#startup = undefined;
      }
      return;
    }
    this.#service!.onWorkerRestarted(worker.index);
    this.#log.info(`worker ${worker.index} is running again`);
    this.#listeners.openAgain(worker);
  }

  #workerEnded(worker: WorkerThread, reason: string, stack: string): void {
    this.#workers[worker.index] = undefined;
    this.#service?.onWorkerLost(worker.index);
    this.#confirmations.drop(worker.index);
    this.#socketQuestions.drop(worker.index);
    this.#listeners.lost(worker.index);
    if (this.#isStopping) {
      if (this.#workers.every((each) => each === undefined)) this.#allStopped.resolve();
      return;
    }
    if (this.#startup || !this.#service) {
      if (stack !== '') this.#log.error(`worker ${worker.index} ended before it was ready: ${reason}`, stack);
      this.#earlyFailure = new WeirError('WEIR_WORKER_START', `worker ${worker.index} could not start: ${reason}`);
      this.#startup?.reject(this.#earlyFailure);
      this.#startup = undefined;
      return;
    }
    this.#log.error(`worker ${worker.index} ended unexpectedly, its connections are lost: ${reason}`, stack);
    this.#restarts.restartLater(worker.index);
  }
}
