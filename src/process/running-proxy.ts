// One running proxy: threads, server, admin interface and access log, from a loaded configuration until its end. There may
// be several in a process. What a process has only one of (signals, its end, its standard streams, the handler of
// uncaught exceptions) belongs to whoever makes one: src/process/serve.ts for the program. Main thread.

import type { Address } from '../base/address.ts';
import { type Clock, SYSTEM_CLOCK } from '../base/clock.ts';
import { errorMessage, stackFrames, WeirError } from '../base/errors.ts';
import { FaultBoundary } from '../base/fault-boundary.ts';
import { settleMemory } from '../base/garbage.ts';
import { ProcessMemory } from '../base/process-memory.ts';
import { type SystemCalls, trimAllocator } from '../base/system-calls.ts';
import { formatVersion, revisionNumber, type Version } from '../base/version.ts';
import type { ServerOptions } from '../cli/index.ts';
import type { LoadBootstrapResult } from '../config/index.ts';
import { loadPartsAtNeed, Server, WorkerPool } from '../control-plane/index.ts';
import { loadStatSinkKinds } from '../extensions/stat-sink-registry.ts';
import type { LogDestination, Loggers } from '../log/index.ts';
import type { RunningAdmin } from './admin.ts';
import type { AdminAccessLog } from './admin-access-log.ts';
import type { Epoch } from './hot-restart/epoch.ts';
import { SpareMemory } from './spare-memory.ts';

const MEGABYTE = 1e6;

export interface ProxyLog {
  readonly loggers: Loggers;
  /** Where lines go; absent where nothing can be opened anew. */
  readonly destination?: Pick<LogDestination, 'reopen'>;
}

export interface RunningProxyParts {
  readonly concurrency: number;
  readonly version: Version;
  readonly log: ProxyLog;
  /** Flags of Node for the threads; those of the process when absent. */
  readonly threadFlags?: readonly string[];
  /** Asked once, when the threads have their work: what makes them takes milliseconds. */
  readonly systemCalls: () => SystemCalls | undefined;
  /** Begins the clean shutdown: what /quitquitquit does. */
  readonly quit: () => void;
}

export class RunningProxy {
  readonly faults: FaultBoundary;
  readonly #parts: RunningProxyParts;
  readonly #clock: Clock;
  readonly #workers: WorkerPool;
  #server: Server | undefined;
  #adminAddress: Address | undefined;
  #admin: Promise<RunningAdmin | undefined> = Promise.resolve(undefined);
  /** The admin interface's own; those of listeners are the workers'. */
  #accessLog: AdminAccessLog | undefined;
  /** Undefined before the start has settled. */
  #spareMemory: SpareMemory | undefined;
  #isStopping = false;

  /** Starts the threads, which load their code while the caller loads the configuration. */
  constructor(parts: RunningProxyParts) {
    const { loggers } = parts.log;
    this.#parts = parts;
    this.faults = new FaultBoundary((where, error) => {
      loggers.get('main').error(`fault in ${where}: ${String(error)}`, stackFrames(error));
    });
    this.#clock = this.faults.clock(SYSTEM_CLOCK);
    const { concurrency, threadFlags } = parts;
    this.#workers = new WorkerPool({ concurrency, loggers, clock: this.#clock, faults: this.faults, threadFlags });
  }

  /** Undefined until the configuration has been taken in. */
  get server(): Server | undefined {
    return this.#server;
  }

  /** With the port in use; undefined without an interface, and while it does not answer. */
  get adminAddress(): Address | undefined {
    return this.#adminAddress;
  }

  /**
   * Resolves when the proxy is live and its admin interface answers.
   * @param options those that the configuration was loaded by. @param loaded without errors.
   * @param epoch of hot restarts; absent where there are none.
   * @throws WeirError when it cannot be; call `stop` then as well.
   */
  async start(options: ServerOptions, loaded: LoadBootstrapResult, epoch?: Epoch): Promise<void> {
    const { version, log, systemCalls } = this.#parts;
    const bootstrap = loaded.bootstrap!;
    const [statSinkKinds, parts] = await Promise.all([
      loadStatSinkKinds(bootstrap.statSinks),
      loadPartsAtNeed(bootstrap),
    ]);
    // The configuration is a good one: from here on the process before this one gives way.
    const inherited = await epoch?.stopAdminOfParent(bootstrap.admin?.address);
    if (this.#isStopping) throw new WeirError('WEIR_STOPPED', 'stopped before it was started');
    const server = new Server({
      bootstrap,
      parts,
      workers: this.#workers,
      loggers: log.loggers,
      clock: this.#clock,
      faults: this.faults,
      revisionNumber: revisionNumber(version),
      versionText: formatVersion(version),
      unknownFields: loaded.unknownFields,
      deprecatedFields: loaded.deprecatedFields,
      dynamicFields: options,
      statSinkKinds,
      statTags: options.statsTag.map(statTag),
      fileFlushIntervalMs: options.fileFlushIntervalMsec,
      drainMs: options.drainTimeS * 1000,
      drainStrategy: options.drainStrategy,
      localAddressFamily: options.localAddressIpVersion,
      ...(epoch && { restart: epoch.restart }),
    });
    this.#server = server;
    const started = server.start();
    // The threads are at work now.
    this.#admin = this.#openAdmin(server, options, loaded, systemCalls(), inherited);
    const [, admin] = await Promise.all([started, this.#admin]);
    await epoch?.takeOver(server, admin);
    this.#adminAddress = admin?.address;
  }

  /**
   * The start is over: threads give back what it has left, and what becomes spare from here on follows.
   * @returns bytes that this one has given back.
   */
  settle(): number {
    this.#workers.settle();
    const givenBack = settleMemory();
    if (this.#server !== undefined && !this.#isStopping) this.#spareMemory ??= this.#giveSpareMemoryBack(this.#server);
    return givenBack;
  }

  #giveSpareMemoryBack(server: Server): SpareMemory {
    const memory = new ProcessMemory();
    const log = this.#parts.log.loggers.get('main').ofFile('src/process/running-proxy.ts');
    return new SpareMemory({
      clock: this.#clock,
      residentBytes: () => memory.read().residentBytes,
      connections: () => server.listenerManager.activeConnections(),
      trim: trimAllocator,
      onGivenBack: (bytes) => log.debug(`${(bytes / MEGABYTE).toFixed(0)} MB given back to the system`),
    });
  }

  /** Opens all files of logs anew, where they are now. */
  reopenLogs(): void {
    const { log } = this.#parts;
    for (const destination of [log.destination, this.#accessLog]) {
      try {
        destination?.reopen();
      } catch (error) {
        log.loggers.get('main').error(errorMessage(error));
      }
    }
    this.#workers.reopenAccessLogs();
    this.#server?.clusterManager.reopenEventLogs();
  }

  /** Stops accepting, lets running requests end within `graceMs`, and gives everything back. Also after a failed start. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    this.#spareMemory?.stop();
    await this.#server?.stop(graceMs);
    // A failure to open it has been told of by `start`.
    await this.#admin.then((opened) => opened?.close()).catch(() => {});
    this.#adminAddress = undefined;
    // Without a server there is nobody else to do it.
    await this.#workers.stop(graceMs);
    this.#accessLog?.close();
  }

  async #openAdmin(
    server: Server,
    options: ServerOptions,
    { faults: configFaults }: LoadBootstrapResult,
    systemCalls: SystemCalls | undefined,
    inherited: number | undefined,
  ): Promise<RunningAdmin | undefined> {
    const { version, log, quit } = this.#parts;
    const { loggers } = log;
    if (!server.bootstrap.admin) {
      loggers.get('main').warning('No admin address given, so no admin HTTP server started.');
      return undefined;
    }
    const { accessLogs } = server.bootstrap.admin;
    if (accessLogs.length > 0) {
      const { AdminAccessLog } = await import('./admin-access-log.ts');
      const onDropped = (count: number): void => loggers.countDropped(count);
      this.#accessLog = new AdminAccessLog(accessLogs, {
        clock: this.#clock,
        runtime: server.runtime.values,
        onDropped,
      });
    }
    const { startAdmin } = await import('./admin.ts');
    return startAdmin({
      server,
      workers: this.#workers,
      clock: this.#clock,
      options,
      version,
      loggers,
      systemCalls,
      faults: this.faults,
      configFaults,
      accessLog: this.#accessLog,
      quit,
      reopenLogs: () => this.reopenLogs(),
      inherited,
    });
  }
}

/** @param text `name:value`, as the command line has checked it. */
function statTag(text: string): { name: string; value: string } {
  const colon = text.indexOf(':');
  return { name: text.slice(0, colon), value: text.slice(colon + 1) };
}
