// The running proxy: owns the shared memory, the statistics, the workers, and the managers of clusters and
// listeners, in that order of making; stops them in the reverse order. Main thread.

import type { IpFamily } from '../../base/address-families.ts';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { localAddress } from '../../base/local-address.ts';
import { ProcessMemory } from '../../base/process-memory.ts';
import { SYSTEM_RANDOM } from '../../base/random.ts';
import { type BootstrapConfig, UnknownFieldPolicy } from '../../config/index.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import type { AccessLogFileSettings, Demand, DrainStrategy } from '../../snapshot/index.ts';
import {
  FILESYSTEM_STATS,
  type FlushStep,
  HTTP2_STATS,
  StatsFlush,
  StatsStore,
  TAP_STATS,
  type Tag,
} from '../../stats/index.ts';
import { compileHttp1, DEFAULT_HEADER_PREFIX } from '../../wasm/http1.ts';
import { compileHttp2 } from '../../wasm/http2.ts';
import { compileModule } from '../../wasm/instantiate.ts';
import { LbKernel, LbTables } from '../../wasm/lb.ts';
import { SharedMemoryOwner } from '../../wasm/shared-memory-owner.ts';
import { ClusterManager } from '../cluster-manager/cluster-manager.ts';
import { originOfProbes } from '../cluster-manager/health-check/probe-origin.ts';
import type { DynamicResources } from '../discovery/dynamic-resources.ts';
import { OnDemandClusters } from '../discovery/on-demand-clusters.ts';
import { DnsResolvers } from '../dns/resolvers.ts';
import { type ConnectionsLeft, tellConnectionsLeft } from '../drain/connections-left.ts';
import { DrainManager } from '../drain/drain-manager.ts';
import { FilterConfigs } from '../filters/filter-configs.ts';
import type { HealthDelegate } from '../health-delegation/health-delegate.ts';
import { ListenerManager } from '../listener-manager/listener-manager.ts';
import { TicketSecret } from '../listener-manager/ticket-secret.ts';
import type { LoadReporter } from '../load-reporting/load-reporter.ts';
import { connectionLimitOf, makeOverloadManager } from '../overload/make.ts';
import type { OverloadManager } from '../overload/overload-manager.ts';
import { type RouteLeases, RouteTables } from '../routes/route-tables.ts';
import { ScopeSets } from '../routes/scope-sets.ts';
import { Runtime } from '../runtime/runtime.ts';
import { Secrets } from '../secrets/secrets.ts';
import type { StatSinkKinds } from '../stat-sinks/stat-sink-kind.ts';
import { StatSinks } from '../stat-sinks/stat-sinks.ts';
import { FileWatches } from '../subscription/file-watches.ts';
import type { SourceReport } from '../subscription/source-report.ts';
import { Sources } from '../subscription/sources.ts';
import { hashOfVersions } from '../subscription/subscription-stats.ts';
import { TapManager } from '../tap/tap-manager.ts';
import { CertificateInventory } from '../tls/certificate-inventory.ts';
import { followTlsOwners } from '../tls/tls-owners.ts';
import { TlsReloads } from '../tls/tls-reloads.ts';
import { Watchdog } from '../watchdog/watchdog.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { BootstrapUpdates } from './bootstrap-update.ts';
import { noteDeprecatedFields } from './deprecated-fields.ts';
import { InitManager } from './init-manager.ts';
import { LoadedConfig } from './loaded-config.ts';
import { LoopStats } from './loop-stats.ts';
import { type MemoryReport, memoryReport } from './memory-report.ts';
import type { PartsAtNeed } from './parts-at-need.ts';
import { FIRST_OF_ALL, type ParentLoad, type RestartFacts } from './restart-facts.ts';
import { ServerGauges } from './server-gauges.ts';
import type { ServerState } from './server-state.ts';
import { statsOptions } from './stats-options.ts';
import { listenerTarget, runtimeTargets, type Unready, unready } from './unready.ts';

export interface ServerDependencies {
  readonly bootstrap: BootstrapConfig;
  /** As loadPartsAtNeed gives them for the bootstrap. */
  readonly parts: PartsAtNeed;
  /** Its threads have been started, and wait. */
  readonly workers: WorkerPool;
  readonly loggers: Loggers;
  /** Its timers fail without harm. */
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  /** First digits of the source revision as a number, for the gauge server.version. */
  readonly revisionNumber: number;
  /** As --version has it, for the text server.version_text. */
  readonly versionText: string;
  /** Unknown fields that the bootstrap was allowed to hold. */
  readonly unknownFields: number;
  /** Deprecated fields of the bootstrap with how often they are set; none when absent. */
  readonly deprecatedFields?: ReadonlyMap<string, number>;
  /** What becomes of unknown fields in what comes by discovery; they are warned of when absent. */
  readonly dynamicFields?: Parameters<typeof UnknownFieldPolicy.forDynamic>[0];
  /** Of every stat, beside those of the bootstrap. */
  readonly statTags?: readonly Tag[];
  /** Code of the sinks that the bootstrap has; none when absent. */
  readonly statSinkKinds?: StatSinkKinds;
  /** Access logs are written after this time at the latest. */
  readonly fileFlushIntervalMs: number;
  /** Connections of a listener that has gone are cut after this, and one that drains stops accepting. */
  readonly drainMs: number;
  readonly drainStrategy: DrainStrategy;
  /** Of the machine's own address; v4 when absent. */
  readonly localAddressFamily?: IpFamily;
  /** Defaults to the first of all processes. */
  readonly restart?: RestartFacts;
}

const TOLERANT = { rejectUnknownDynamicFields: false, ignoreUnknownDynamicFields: false };

export class Server {
  readonly bootstrap: BootstrapConfig;
  readonly stats: StatsStore;
  readonly clusterManager: ClusterManager;
  readonly listenerManager: ListenerManager;
  readonly routeTables: RouteTables;
  readonly scopeSets: ScopeSets;
  readonly secrets: Secrets;
  readonly filterConfigs: FilterConfigs;
  readonly certificates: CertificateInventory;
  /** The configuration in use, for listings. */
  readonly config: LoadedConfig;
  readonly runtime: Runtime;
  readonly taps: TapManager;
  readonly drainManager: DrainManager;
  readonly #watchdog: Watchdog;
  readonly #loopStats: LoopStats;
  readonly #clock: Clock;
  readonly #connectionsLeft: ConnectionsLeft;
  /** Undefined where the bootstrap has none. */
  readonly #overload: OverloadManager | undefined;
  /** Undefined where neither clusters nor listeners come from outside. */
  readonly #dynamicResources: DynamicResources | undefined;
  readonly #onDemandClusters: OnDemandClusters;
  readonly #sources: Sources;
  /** Undefined where nobody is told of load. */
  readonly #loadReporter: LoadReporter | undefined;
  /** Undefined where nobody has hosts checked. */
  readonly #healthDelegate: HealthDelegate | undefined;
  readonly #fileWatches: FileWatches;
  readonly #tlsReloads: TlsReloads;
  readonly statSinks: StatSinks;
  /** Brings other bootstraps into force, once the server is live. */
  readonly updates: BootstrapUpdates;
  readonly #flush: StatsFlush;
  readonly #gauges: ServerGauges;
  readonly workers: WorkerPool;
  readonly memory: SharedMemoryOwner;
  readonly #processMemory = new ProcessMemory();
  readonly #statsModule: WebAssembly.Module;
  readonly #lbModule: WebAssembly.Module;
  readonly #accessLogFiles: AccessLogFileSettings;
  readonly #localAddress: string;
  readonly #log: Logger;
  readonly #init = new InitManager();
  readonly #runtimeIsLoaded: Promise<void>;
  #isStopping = false;
  /** Of the drain for the sake of a successor. */
  #callOffDrain: (() => void) | undefined;
  #isHealthCheckFailing = false;
  #sinksClosed: Promise<void> | undefined;

  /** @throws WeirError when the shared memory cannot be had or holds too little for the bootstrap. */
  constructor(deps: ServerDependencies) {
    const { bootstrap, workers, loggers, clock, faults, restart = FIRST_OF_ALL } = deps;
    const { concurrency } = workers;
    this.bootstrap = bootstrap;
    this.#log = loggers.get('main');
    this.workers = workers;
    this.memory = new SharedMemoryOwner({ workerCount: concurrency });
    this.#statsModule = compileModule('stats');
    this.stats = new StatsStore({
      owner: this.memory,
      module: this.#statsModule,
      ...statsOptions(bootstrap, deps.statTags ?? []),
    });
    this.#lbModule = compileModule('lb');
    const { cell: statBlock } = this.stats.scope('filesystem.').allocate(FILESYSTEM_STATS);
    this.#localAddress = localAddress(deps.localAddressFamily ?? 'v4');
    this.#accessLogFiles = { flushIntervalMs: deps.fileFlushIntervalMs, statBlock };
    const unknownFields = UnknownFieldPolicy.forDynamic(deps.dynamicFields ?? TOLERANT, () =>
      this.#gauges.countDynamicUnknownField(),
    );
    this.#fileWatches = new FileWatches({ clock, faults, log: loggers.get('file') });
    const resolvers = DnsResolvers.ofSystem(clock, faults, (sentence) => loggers.get('dns').warning(sentence));
    this.#sources = new Sources({
      resolvers,
      unknownFields,
      log: loggers.get('config'),
      faults,
      clock,
      stats: this.stats,
      watches: this.#fileWatches,
      cluster: (name) => this.clusterManager.cluster(name),
      aggregated: bootstrap.dynamicResources.aggregated,
      bootstrap: bootstrap.messages.bootstrap,
      buildVersion: deps.versionText,
      threadFlags: deps.workers.threadFlags,
    });
    const subscriptions = this.#sources;
    const reporting = deps.parts.loadReporting?.(bootstrap, {
      resolvers,
      stats: this.stats,
      clock,
      faults,
      log: loggers.get('upstream'),
      cluster: (name) => this.clusterManager.cluster(name),
      buildVersion: deps.versionText,
    });
    this.#loadReporter = reporting?.reporter;
    const lbKernel = new LbKernel(this.memory.shared, this.#lbModule);
    const runtime = new Runtime({
      stats: this.stats,
      workers,
      clock,
      faults,
      hash: (text) => lbKernel.xxHash64(text),
      log: loggers.get('runtime'),
      subscriptions,
    });
    this.runtime = runtime;
    const onDeprecatedFields = (fields: ReadonlyMap<string, number>): void =>
      noteDeprecatedFields(fields, this.stats, this.#log);
    const hash = hashOfVersions((text) => lbKernel.xxHash64(text));
    this.secrets = new Secrets({
      stats: this.stats,
      memory: this.memory,
      subscriptions,
      clock,
      faults,
      log: loggers.get('secret'),
      watches: this.#fileWatches,
      hash,
      discoverable: () => this.config.bootstrap.discoverable,
      onDeprecatedFields,
    });
    this.clusterManager = new ClusterManager({
      stats: this.stats,
      memory: this.memory,
      tables: new LbTables(this.memory, lbKernel),
      clock,
      random: SYSTEM_RANDOM,
      faults,
      loggers,
      workers,
      resolvers,
      runtime: runtime.values,
      outlierEventLogPath: bootstrap.outlierEventLogPath,
      headerPrefix: this.#headerPrefix,
      localCluster: bootstrap.localCluster,
      loads: reporting?.ledger,
      secrets: this.secrets,
      subscriptions,
      assignments: (settings, isLocal) => this.config.bootstrap.discoverable.assignments(settings, isLocal),
      scope: () => this.config.bootstrap.discoverable.scope,
      hash,
      onDeprecatedFields,
      locality: bootstrap.node.locality,
    });
    const { checking } = this.clusterManager;
    this.#healthDelegate = deps.parts.healthDelegation?.(bootstrap, {
      resolvers,
      stats: this.stats,
      clock,
      faults,
      log: loggers.get('upstream'),
      cluster: (name) => this.clusterManager.cluster(name),
      buildVersion: deps.versionText,
      discoverable: () => this.config.bootstrap.discoverable,
      unknownFields,
      tools: {
        checking: checking.health,
        holdings: this,
        originOf: (settings) => originOfProbes(settings, checking.systemCalls),
      },
    });
    runtime.onChanged = () => this.clusterManager.runtimeChanged();
    const discovering = {
      stats: this.stats,
      memory: this.memory,
      workers,
      subscriptions,
      clock,
      faults,
      hash,
      discoverable: () => this.config.bootstrap.discoverable,
      clusterNames: () => this.clusterManager.names(),
      onDeprecatedFields,
    };
    this.routeTables = new RouteTables({ ...discovering, log: loggers.get('rds') });
    this.scopeSets = new ScopeSets({ ...discovering, tables: this.routeTables, log: loggers.get('rds') });
    const routes: RouteLeases = {
      lease: (wanted, statPrefix) => this.routeTables.lease(wanted, statPrefix),
      leaseScopes: (scopes, statPrefix) => this.scopeSets.leaseScopes(scopes, statPrefix),
    };
    this.filterConfigs = new FilterConfigs({ ...discovering, log: loggers.get('filter') }, routes);
    this.listenerManager = new ListenerManager({
      filters: this.filterConfigs,
      routes,
      secrets: this.secrets,
      stats: this.stats,
      memory: this.memory,
      workers,
      loggers,
      concurrency,
      clock,
      faults,
      drainMs: deps.drainMs,
      drainStrategy: deps.drainStrategy,
      connectionLimit: connectionLimitOf(bootstrap),
      ...(restart.inherit && { inherit: restart.inherit }),
      ticketSecret: restart.ticketSecret ?? new TicketSecret(),
    });
    this.#overload = makeOverloadManager(this, { clock, faults, log: this.#log });
    this.#clock = clock;
    this.#loopStats = new LoopStats(bootstrap.metersLoops, this.stats, concurrency);
    this.#watchdog = new Watchdog({
      settings: bootstrap.watchdogs,
      stats: this.stats,
      allocator: this.memory.recordAllocator,
      records: this.memory.shared.records,
      clock,
      faults,
      random: SYSTEM_RANDOM,
      log: this.#log,
      workers,
      abort: () => process.kill(process.pid, 'SIGABRT'),
    });
    const connections = (): number => this.listenerManager.activeConnections();
    this.#connectionsLeft = { clock, log: this.#log, connections };
    this.drainManager = new DrainManager({
      ...this.#connectionsLeft,
      workers,
      listeners: this.listenerManager,
      durationMs: deps.drainMs,
      strategy: deps.drainStrategy,
    });
    this.config = new LoadedConfig(bootstrap, clock.wallMs(), this);
    this.#onDemandClusters = new OnDemandClusters({
      manager: this.clusterManager,
      subscriptions,
      discoverable: () => this.config.bootstrap.discoverable,
      stats: this.stats,
      clock,
      hash,
      log: loggers.get('config'),
      onDeprecatedFields,
    });
    this.clusterManager.onActivated = (name) => this.#onDemandClusters.activated(name);
    const { DynamicResources } = deps.parts;
    this.#dynamicResources =
      DynamicResources &&
      new DynamicResources({
        isOnDemand: (cluster) => this.#onDemandClusters.has(cluster),
        settings: bootstrap.dynamicResources,
        discoverable: () => this.config.bootstrap.discoverable,
        clusters: this.clusterManager,
        listeners: this.listenerManager,
        stats: this.stats,
        clock,
        hash,
        log: loggers.get('config'),
        subscriptions,
        onDeprecatedFields,
      });
    const managers = { clusters: this.clusterManager, listeners: this.listenerManager, runtime };
    this.#tlsReloads = new TlsReloads({
      stats: this.stats,
      clock,
      faults,
      log: loggers.get('secret'),
      watches: this.#fileWatches,
      input: () => ({
        secrets: this.config.bootstrap.secrets,
        environment: bootstrap.environment,
        sources: this.config.bootstrap.discoverable.sources,
        discoveredSecrets: (name, source) => this.secrets.find(name, source),
      }),
      readAtMs: clock.wallMs() - process.uptime() * 1000,
      onRotationFailed: (name) => this.secrets.rotationFailed(name),
    });
    this.secrets.onChanged = (key, name) => this.#tlsReloads.secretChanged(key, name);
    followTlsOwners(this.#tlsReloads, this.listenerManager, this.clusterManager);
    this.updates = new BootstrapUpdates(bootstrap, { clock, faults, ...managers, config: this.config });
    this.certificates = new CertificateInventory(() => [
      ...this.listenerManager.tlsContexts(),
      ...this.clusterManager.tlsContexts(),
    ]);
    this.#gauges = new ServerGauges({
      stats: this.stats,
      clock,
      concurrency,
      faults,
      revisionNumber: bootstrap.serverVersion ?? deps.revisionNumber,
      versionText: deps.versionText,
      state: () => this.state,
      memory: () => this.memoryReport(),
      connections: () => this.listenerManager.activeConnections(),
      certificates: this.certificates,
      droppedLogLines: () => loggers.dropped,
      restart,
    });
    this.countTolerated(deps);
    this.#flush = new StatsFlush({
      clock,
      intervalMs: bootstrap.statsFlushIntervalMs,
      onDropped: () => this.#gauges.countDroppedFlush(),
      onError: (error) => faults.report('a stats flush', error),
    });
    this.#flush.add('gauges', () => this.#gauges.update());
    this.#flush.add('merge', () => (this.#isInitialized ? this.stats.mergeHistograms() : undefined));
    const { clusterManager } = this;
    this.statSinks = new StatSinks({
      settings: bootstrap.statSinks,
      kinds: deps.statSinkKinds ?? new Map(),
      stats: this.stats,
      clock,
      loggers,
      cluster: (name) => clusterManager.cluster(name),
      clusters: () => clusterManager.clusters(),
      node: bootstrap.node,
      flushIntervalMs: bootstrap.statsFlushIntervalMs,
      faults,
    });
    if (!this.statSinks.isEmpty) this.#flush.add('sinks', () => this.statSinks.flush());
    this.taps = new TapManager({
      clock,
      faults,
      log: this.#log,
      publish: (session) => workers.publishTap(session),
      configIds: () => this.listenerManager.tapConfigIds(),
      stats: this.stats.scope('tap.').allocate(TAP_STATS),
    });
    this.#runtimeIsLoaded = runtime.load(bootstrap.runtimeLayers);
    const { clusters } = bootstrap.messages;
    for (const [at, cluster] of bootstrap.clusters.entries()) this.clusterManager.addStatic(cluster, clusters[at]);
  }

  get #headerPrefix(): string {
    return this.bootstrap.headerPrefix || DEFAULT_HEADER_PREFIX;
  }

  get state(): ServerState {
    if (this.#isStopping) return 'DRAINING';
    if (this.#isInitialized) return this.#isHealthCheckFailing ? 'DRAINING' : 'LIVE';
    return this.#init.phase === 'initializing' ? 'INITIALIZING' : 'PRE_INITIALIZING';
  }

  get #isInitialized(): boolean {
    return this.#init.phase === 'initialized';
  }

  /** What is not initialized yet, of the server and of its resources. */
  unready(): Iterable<Unready> {
    const { clusterManager: clusters, listenerManager: listeners, bootstrap } = this;
    const listenersAtStart = bootstrap.listeners.map(
      (settings, at) => [settings, bootstrap.messages.listeners[at]!] as const,
    );
    return unready({ init: this.#init, clusters, listeners, listenersAtStart });
  }

  /** Where resources come from that nobody has written into the bootstrap. */
  sources(): Iterable<SourceReport> {
    return this.#sources.reports();
  }

  get uptimeSeconds(): number {
    return this.#gauges.uptimeSeconds;
  }

  get uptimeAllEpochsSeconds(): number {
    return this.#gauges.uptimeAllEpochsSeconds;
  }

  /** What a successor is told of this process. */
  get load(): ParentLoad {
    return {
      connections: this.listenerManager.activeConnections(),
      memoryBytes: this.#processMemory.read().allocatedBytes,
    };
  }

  /** Runs with each flush from now on, before histograms are merged. @returns what takes it out again. */
  addFlushStep(step: FlushStep): () => void {
    return this.#flush.add('gauges', step);
  }

  /** A successor tells the sinks what this process counts; or does not any more. */
  restSinks(isResting: boolean): void {
    this.#flush.restSinks(isResting);
  }

  /** Leaves the listening sockets to a successor, and drains the connections. */
  giveWay(): void {
    this.listenerManager.leave();
    this.#callOffDrain = this.drainManager.start('all', true);
  }

  /** The successor is gone: accepts again. */
  async takeBack(): Promise<void> {
    if (this.#isStopping) return;
    this.#callOffDrain?.();
    this.#callOffDrain = undefined;
    await this.listenerManager.takeBack();
  }

  /**
   * Starts the workers and opens the listeners; the server is LIVE when it resolves.
   * @throws WeirError when a worker cannot start or a listener cannot be opened; call `stop` then as well.
   */
  async start(): Promise<void> {
    const workersAreReady = this.#init.add('worker threads');
    const clustersAreReady = this.#init.add('cluster manager');
    const { listeners, messages, runtimeLayers } = this.bootstrap;
    const layersAreReady = runtimeTargets(runtimeLayers).map((target) => this.#init.add(target));
    const discoveryIsDone = this.#dynamicResources?.hasListeners ? this.#init.add('LDS') : (): void => {};
    const listenersAreReady = listeners.map(({ name }) => this.#init.add(listenerTarget(name)));
    this.#init.begin();
    this.#gauges.update();
    const startClusters = async (): Promise<void> => {
      // They ask for runtime values as soon as they do anything.
      await this.#runtimeIsLoaded;
      for (const isReady of layersAreReady) isReady();
      if (!this.#isStopping) await this.#startClusters();
    };
    // Names are looked up while the workers start.
    const clustersAreWarm = layersAreReady.length === 0 ? this.#startClusters() : startClusters();
    const workersAreStarted = this.workers.start({
      shared: {
        http1: compileHttp1(),
        http2: compileHttp2(),
        http2Block: this.stats.scope('http2.').allocate(HTTP2_STATS).cell,
        statsModule: this.#statsModule,
        lbModule: this.#lbModule,
        sharedMemory: this.memory.memory,
        accessLogFiles: this.#accessLogFiles,
        headerPrefix: this.#headerPrefix,
        localZone: this.bootstrap.node.locality.zone,
        localAddress: this.#localAddress,
      },
      watchdog: (index) => this.#watchdog.forWorker(index),
      loopBlock: (index) => this.#loopStats.forWorker(index),
      clusters: () => this.clusterManager.snapshots(),
      routeTables: () => this.routeTables.published(),
      scopeSets: () => this.scopeSets.published(),
      discoveredFilters: () => this.filterConfigs.published(),
      dynamicStatCell: (key) => this.stats.dynamicCell(key),
      onHostFailed: (cluster, recordAddress) => this.clusterManager.hostFailed(cluster, recordAddress),
      onHostWanted: (cluster, address) => this.clusterManager.hostWanted(cluster, address),
      onDemand: (demand, answer) => this.#demand(demand, answer),
      onHostFailedInRow: (cluster, recordAddress, kind) =>
        this.clusterManager.hostFailedInRow(cluster, recordAddress, kind),
      onFilterUnfit: (place, reason) => this.filterConfigs.noteUnfit(place, reason),
      onTapTrace: (to, trace, dropped) => this.taps.traced(to, trace, dropped),
      onTapDropped: (from, count) => this.taps.dropped(from, count),
      onWorkerLost: (index) => this.stats.clearWorker(index),
      onWorkerRestarted: () => this.#gauges.countWorkerRestart(),
    });
    const open = async (): Promise<void> => {
      await clustersAreWarm;
      clustersAreReady();
      this.#loadReporter?.start();
      this.#healthDelegate?.start();
      const opening = listeners.map((listener, at) =>
        this.listenerManager.addStatic(listener, messages.listeners[at]).then(listenersAreReady[at]),
      );
      // The first of the configuration that fails is told of, whichever fails first.
      await Promise.allSettled(opening);
      await Promise.all(opening);
      if (!this.#isStopping) await this.#dynamicResources?.discoverListeners();
      if (!this.#isStopping) await this.listenerManager.whenNoneWaits();
      discoveryIsDone();
    };
    // Workers are told of listeners right behind their work: this thread has other things to load than to wait for them. One
    // that cannot start opens none, and says more of why.
    const listenersAreOpen = open().catch(async (error) => {
      await workersAreStarted;
      throw error;
    });
    await Promise.all([workersAreStarted.then(workersAreReady), listenersAreOpen]);
    this.listenerManager.markWorkersStarted();
    this.#gauges.recordInitialization();
    this.#gauges.update();
    this.#flush.start();
    this.#overload?.start();
    this.#watchdog.start();
    this.#loopStats.start(this.#clock);
    this.#log.info('all clusters and listeners initialized, serving');
  }

  #demand(demand: Demand, answer: (isThere: boolean) => void): void {
    if (demand.kind === 'scope') this.scopeSets.demand(demand.scopeSetId, demand.key, answer);
    else if (demand.kind === 'virtual-host') this.routeTables.demandHost(demand.routeTableId, demand.host, answer);
    else this.#onDemandClusters.demand(demand.name, demand.source, demand.timeoutMs, answer);
  }

  #startClusters(): Promise<void> {
    const started = Promise.withResolvers<void>();
    const isWarm = this.clusterManager.start(started.promise);
    // Behind those of the bootstrap, by whose names the others may not go.
    started.resolve(this.#dynamicResources?.discoverClusters());
    return isWarm;
  }

  /** Has the health checks that clients make fail, so that they go elsewhere; or succeed again. */
  failHealthChecks(isFailing: boolean): void {
    this.#isHealthCheckFailing = isFailing;
    this.workers.failHealthChecks(isFailing);
    this.#gauges.update();
  }

  async memoryReport(): Promise<MemoryReport> {
    const workers = await this.workers.heapStatistics();
    // Loading it takes milliseconds, which the start does not have.
    const own = process.getBuiltinModule('node:v8').getHeapStatistics();
    const { heap, shared } = this.memory;
    const { residentBytes } = this.#processMemory.read();
    return memoryReport([own, ...workers], { usedBytes: heap.usedBytes, byteLength: shared.byteLength }, residentBytes);
  }

  /** Brings gauges up to date before a listing; a whole flush where the bootstrap asks for that. */
  async beforeStatsRead(): Promise<void> {
    if (this.bootstrap.statsFlushOnAdmin) await this.#flush.flush();
    else this.#gauges.update();
  }

  /** What a bootstrap was let hold: the first one, and each that has taken its place. */
  countTolerated({
    unknownFields,
    deprecatedFields,
  }: Pick<ServerDependencies, 'unknownFields' | 'deprecatedFields'>): void {
    this.#gauges.countStaticUnknownFields(unknownFields);
    noteDeprecatedFields(deprecatedFields ?? new Map(), this.stats, this.#log);
  }

  /**
   * Stops accepting, lets running requests end within `graceMs`, ends the workers, and has sinks and who wants to know of load told what
   * they have counted last. Idempotent.
   */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    this.updates.stop();
    this.#dynamicResources?.close();
    this.#onDemandClusters.close();
    this.scopeSets.close();
    this.routeTables.close();
    this.secrets.close();
    this.filterConfigs.close();
    this.#sources.close();
    this.#healthDelegate?.close();
    this.#flush.stop();
    this.statSinks.eventStream?.close();
    this.runtime.close();
    this.drainManager.close();
    this.#overload?.close();
    this.taps.close();
    this.#tlsReloads.close();
    this.#fileWatches.close();
    this.clusterManager.stop();
    const endTelling = tellConnectionsLeft(this.#connectionsLeft, graceMs);
    await this.workers.stop(graceMs);
    endTelling();
    this.#watchdog.close();
    this.#loopStats.close();
    // Behind the last request, and before the last flush, which has its counts.
    await this.#loadReporter?.finish();
    this.#sinksClosed ??= this.statSinks.close(() => this.#flush.finish());
    await this.#sinksClosed;
  }
}
