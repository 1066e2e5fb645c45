// Everything that runs in one worker: its listening sockets, connections and upstream pools. The worker's
// entry point feeds it snapshots and lifecycle commands; it never asks the main thread for anything but the
// cells of stats that are met first at run time.

import { type Clock, SYSTEM_CLOCK } from '../base/clock.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import { loopSystem, meterLoop } from '../base/loop-meter.ts';
import { type Random, SYSTEM_RANDOM } from '../base/random.ts';
import type { Loggers } from '../log/index.ts';
import type {
  AccessLogFileSettings,
  DrainProgress,
  DrainState,
  FilterNews,
  HostRefusal,
  HostsUpdate,
  InheritedSockets,
  ListenerSnapshot,
  OverloadState,
  PackedCluster,
  PublishedExtension,
  PublishedPlace,
  PublishedRoutes,
  PublishedScopes,
  RuntimeTexts,
  SecuredChain,
  SecuredTransport,
  StreamReset,
  WorkerToMain,
  WorkerWatchdog,
} from '../snapshot/index.ts';
import { DISPATCHER_STATS, type WorkerStats } from '../stats/index.ts';
import type { Http1Codec } from '../wasm/http1.ts';
import type { Http2Module } from '../wasm/http2.ts';
import type { LbKernel } from '../wasm/lb.ts';
import type { SharedRecords } from '../wasm/shared-memory.ts';
import type { AccessLoggerRegistry } from './access-log/access-logger.ts';
import { assembleListener } from './assemble.ts';
import type { HttpFilterRegistry } from './http/filter.ts';
import type { Taps } from './http/taps.ts';
import type { ActiveListener } from './listener/active-listener.ts';
import { ListenersByAddress } from './listener/listeners-by-address.ts';
import { resetExpensiveStreams } from './network/expensive-streams.ts';
import type { NetworkFilterRegistry } from './network/network-filter.ts';
import { chooseReadMode } from './network/read-mode.ts';
import type { ReadMode } from './network/socket-events.ts';
import type { TracerRegistry } from './tracing/tracer.ts';
import { ClusterMap } from './upstream/cluster-map.ts';
import { watchMain } from './watchdog.ts';
import { type AskFor, type ReportOutlier, type RequestHost, WorkerContext } from './worker-context.ts';

export interface DataPlaneDependencies {
  readonly stats: WorkerStats;
  /** Host and cluster records in shared memory, written by all workers. */
  readonly records: SharedRecords;
  /** Opens balancers that main has made in shared memory. */
  readonly lbKernel: LbKernel;
  readonly codec: Http1Codec;
  readonly http2: Http2Module;
  /** Cell of HTTP2_STATS, of clients. */
  readonly http2Block: number;
  readonly loggers: Loggers;
  readonly workerIndex: number;
  readonly accessLogFiles: AccessLogFileSettings;
  /** Tells main of a checked host that asks to be left out; nobody is told without. */
  readonly reportHostFailure?: (cluster: string, recordAddress: number) => void;
  /** Tells main of a host that has failed as often in a row as it may; nobody is told without. */
  readonly reportOutlier?: ReportOutlier;
  /** Tells main of a filter that cannot be made of its configuration; nobody is told without. */
  readonly reportUnfitFilter?: (place: PublishedPlace, reason: string) => void;
  /** Asks main for a host that is not there yet; nobody is asked without. */
  readonly requestHost?: RequestHost;
  /** Asks main for what requests wait for; nothing is ever there without. */
  readonly askFor?: AskFor;
  /** Gives main what filters tell their like in other workers; nobody is told without. */
  readonly sendNews?: (news: readonly FilterNews[]) => void;
  /** The HTTP filters that snapshots may name. */
  readonly httpFilters: HttpFilterRegistry;
  /** The same of network filters. */
  readonly networkFilters: NetworkFilterRegistry;
  /** The tracers that snapshots may name; none when absent. */
  readonly tracers?: TracerRegistry;
  /** The access loggers that snapshots may name; none when absent. */
  readonly accessLoggers?: AccessLoggerRegistry;
  /** Tells main what a tap has recorded; nobody is told without. */
  readonly sendTrace?: (message: WorkerToMain) => void;
  /** First part of the names of the proxy's own headers, without its final '-'; defaults to `x-proxy`. */
  readonly headerPrefix?: string;
  /** Where this proxy runs; defaults to nobody knows. */
  readonly localZone?: string;
  /** Of this machine; who came from this machine keeps its address without. */
  readonly localAddress?: string;
  /** Defaults to the system's clock. */
  readonly clock?: Clock;
  /** Where balancers start; defaults to the system's randomness. */
  readonly random?: Random;
  /** Fixes the way of reading sockets; by default it is found out before the first connection. */
  readonly readMode?: ReadMode | Promise<ReadMode>;
}

/** How often a shutdown looks whether the last connection has ended. */
const SHUTDOWN_CHECK_MS = 10;
/** The same of a listener that was stopped. */
const DRAIN_CHECK_MS = 50;

interface Drain {
  /** Monotonic. */
  endMs: number;
  readonly onGone: (() => void)[];
}

export interface StopOptions {
  /** The listener that takes over the sockets on addresses of both; null for none. */
  readonly successor?: number | null;
  /** Whether connections without a request are ended, or may have one more; defaults to the first. */
  readonly endsIdle?: boolean;
  /** In which connections end with their responses; those that are left behind it are cut. Without one, none is cut. */
  readonly drain?: DrainProgress;
  /** Called once, in a later turn, when nothing of the listener is left. */
  readonly onGone?: () => void;
}

export interface ChainUpdate {
  /** Of connections of chains that are gone. */
  readonly drain: DrainProgress;
  /** Called once, when new connections meet the new chains. */
  readonly onApplied: () => void;
  /** Called once, in a later turn, when the last connection of chains that are gone has ended. */
  readonly onGone: () => void;
}

export class DataPlane {
  readonly #context: WorkerContext;
  readonly #clusters: ClusterMap;
  readonly #listeners = new Map<number, ActiveListener>();
  /** What has changed of listeners that are being opened. */
  readonly #opening = new Map<number, ((listener: ActiveListener | undefined) => void)[]>();
  readonly #byAddress = new ListenersByAddress<ActiveListener>();
  /** Stopped listeners whose connections go on. */
  readonly #draining = new Map<ActiveListener, Drain>();
  #watchesDrains = false;
  readonly #readMode: ReadMode | Promise<ReadMode> | undefined;
  #readModeChosen: Promise<void> | undefined;
  #shutdown: Promise<void> | undefined;
  #endWatch = (): void => {};
  #endMeter = (): void => {};

  constructor(deps: DataPlaneDependencies) {
    this.#context = new WorkerContext({
      ...deps,
      clock: deps.clock ?? SYSTEM_CLOCK,
      random: deps.random ?? SYSTEM_RANDOM,
    });
    this.#clusters = new ClusterMap(this.#context);
    this.#readMode = deps.readMode;
  }

  /** Connections from clients that are open now. */
  get connectionCount(): number {
    return [...this.#listeners.values(), ...this.#draining.keys()].reduce(
      (sum, listener) => sum + listener.connectionCount,
      0,
    );
  }

  /** @param giveBack what the start has left: not while there are clients, who would have to wait for it. */
  settle(giveBack: () => void): void {
    if (this.connectionCount === 0) giveBack();
  }

  /** Bytes of private read buffers that connections hold now; 0 when no long body is on its way. */
  get readSlabBytes(): number {
    return this.#context.slabs.outstandingBytes;
  }

  /**
   * Swaps in new versions of clusters; pools of removed clusters and hosts drain.
   * @param onApplied called once, when nothing in this worker uses the removed hosts any more; perhaps at once.
   */
  updateClusters(
    updated: readonly PackedCluster[],
    removed: readonly string[],
    onApplied: () => void = () => {},
  ): void {
    this.#clusters.update(updated, removed, onApplied);
  }

  /** Takes over what has changed about the members of a cluster. @param onApplied as for updateClusters. */
  updateHosts(update: HostsUpdate, onApplied: () => void): void {
    this.#clusters.updateHosts(update, onApplied);
  }

  /** Has connections of a cluster be secured by other settings. @param onApplied called once, when they are. */
  secureCluster(name: string, transports: readonly SecuredTransport[], onApplied: () => void): void {
    try {
      this.#clusters.secure(name, transports);
    } finally {
      onApplied();
    }
  }

  /** Takes in a route table. @param onGone called once, when no request goes by the one that it replaces. */
  updateRoutes(routes: PublishedRoutes, onGone: () => void = () => {}): void {
    this.#context.routeTables.publish(routes, onGone);
  }

  /** @param onGone as for updateRoutes. */
  removeRoutes(id: number, onGone: () => void): void {
    this.#context.routeTables.remove(id, onGone);
  }

  /** Takes in what has changed about a set of scopes. */
  updateScopes(scopes: PublishedScopes): void {
    this.#context.scopeSets.update(scopes);
  }

  removeScopes(id: number): void {
    this.#context.scopeSets.remove(id);
  }

  /** What filters of other workers tell their like. */
  hearNews(news: readonly FilterNews[]): void {
    this.#context.filterNews.told(news);
  }

  newsTaken(): void {
    this.#context.filterNews.taken();
  }

  /** Main has answered what was asked for. */
  answerDemand(question: number, isThere: boolean): void {
    this.#context.demands.answered(question, isThere);
  }

  /** Takes in a filter's configuration. @param onGone called once, when no request uses the one that it replaces. */
  updateFilter(filter: PublishedExtension, onGone: () => void = () => {}): void {
    this.#context.discoveredFilters.publish(filter, onGone);
  }

  /** @param onGone as for updateFilter. */
  removeFilter(id: number, onGone: () => void): void {
    this.#context.discoveredFilters.remove(id, onGone);
  }

  /** There is no room for a host that was wanted. @param address as text. */
  refuseHost(cluster: string, address: string, reason: HostRefusal): void {
    this.#clusters.refuseHost(cluster, address, reason);
  }

  /**
   * Starts to accept. @param ports by address of the listener, 0 lets the system choose. Resolves with the bound ones
   * (0 for a pipe); rejects with a WeirError when binding fails.
   * @param predecessor that goes on with addresses of both until it is stopped with this one as its successor.
   * @param inherited sockets of another process that listen on its addresses.
   */
  async listen(
    listener: ListenerSnapshot,
    ports: readonly number[],
    predecessor: number | null = null,
    inherited: InheritedSockets | null = null,
  ): Promise<readonly number[]> {
    const changes: ((opened: ActiveListener | undefined) => void)[] = [];
    this.#opening.set(listener.id, changes);
    let opened: ActiveListener | undefined;
    this.#readModeChosen ??= this.#chooseReadMode();
    await this.#readModeChosen;
    const active = assembleListener(this.#context, this.#clusters, this.#byAddress, listener);
    const former = predecessor === null ? undefined : this.#listeners.get(predecessor);
    try {
      const boundPorts = await active.listen(ports, inherited, former);
      this.#listeners.set(listener.id, active);
      const isForConnections = listener.settings.udp === undefined;
      if (isForConnections) this.#byAddress.add(active, listener.settings.addresses, boundPorts);
      opened = active;
      return boundPorts;
    } catch (error) {
      active.close();
      throw error;
    } finally {
      this.#opening.delete(listener.id);
      for (const change of changes) change(opened);
    }
  }

  /** Has handshakes of a listener go by other settings. @param onApplied called once, when they do. */
  secureListener(id: number, chains: readonly SecuredChain[], onApplied: () => void = () => {}): void {
    try {
      this.#change(id, (listener) => listener?.secure(chains));
    } finally {
      onApplied();
    }
  }

  /** Gives a listener the filter chains of another snapshot of the same id; former ones that are not among them leave. */
  updateChains(snapshot: ListenerSnapshot, { drain, onApplied, onGone }: ChainUpdate): void {
    this.#change(snapshot.id, (listener) => {
      try {
        if (listener === undefined) onGone();
        else listener.updateChains(snapshot, { drain, nowMs: this.#context.clock.monotonicMs(), onGone });
        this.#watchDrains();
      } finally {
        // Should it fail, all is as it was, and what former chains have is not given back.
        onApplied();
      }
    });
  }

  /** @param change is given undefined when there is no such listener; one that is being opened, when it is open. */
  #change(id: number, change: (listener: ActiveListener | undefined) => void): void {
    const opening = this.#opening.get(id);
    if (opening === undefined) change(this.#listeners.get(id) ?? this.#stopped(id));
    else opening.push(change);
  }

  /** Beats for the main thread to see, and looks whether that goes on, until the shutdown. Once. */
  watchMain(settings: WorkerWatchdog): void {
    const { clock, records, stats, logs } = this.#context;
    this.#endWatch = watchMain(settings, { clock, records, stats, log: logs.main });
  }

  /** Records times of this thread's event loop until the shutdown. Once. @param block of DISPATCHER_STATS. */
  meterLoop(block: number): void {
    const { clock, stats } = this.#context;
    const base = stats.base(block);
    const { loop_duration_us, poll_delay_us } = DISPATCHER_STATS.index;
    this.#endMeter = meterLoop(loopSystem(clock), {
      turned: (us) => stats.record(base + loop_duration_us, us),
      delayed: (us) => stats.record(base + poll_delay_us, us),
    });
  }

  /** What is to be recorded of requests. */
  get taps(): Taps {
    return this.#context.taps;
  }

  /** The boundary of what runs outside of any connection: its faults are logged and counted as the server's. */
  get faults(): FaultBoundary {
    return this.#context.faults;
  }

  /** Has health checks fail, or succeed again, by order of the operator. */
  failHealthChecks(isFailing: boolean): void {
    this.#context.serverHealth.isFailing = isFailing;
  }

  /** Replaces the values of the runtime; what depends on them follows with the next request. */
  updateRuntime(texts: RuntimeTexts): void {
    this.#context.runtime.replace(texts);
  }

  /** Access logs open their files anew, so that renamed ones can be taken away. */
  reopenAccessLogs(): void {
    this.#context.logFiles.reopen();
  }

  /** Stops accepting; open connections of the listener go on. */
  async stopListener(id: number, options: StopOptions = {}): Promise<void> {
    const { successor = null, endsIdle = true, drain, onGone = (): void => {} } = options;
    const listener = this.#listeners.get(id) ?? this.#stopped(id);
    if (listener === undefined) {
      onGone();
      return;
    }
    if (successor !== null) this.#listeners.get(successor)?.takeOver(listener);
    this.#stop(listener, drain?.durationMs ?? Number.POSITIVE_INFINITY, onGone);
    if (drain === undefined) listener.drain(endsIdle);
    else listener.beginDrain(drain);
  }

  /** Descriptors of the sockets that a listener has on one of its addresses, for another process; the caller's. */
  shareSockets(id: number, addressIndex: number): readonly number[] {
    return this.#listeners.get(id)?.share(addressIndex) ?? [];
  }

  /** The process that sockets came from has left them to this one. */
  ownSockets(): void {
    for (const listener of this.#listeners.values()) listener.ownSockets();
  }

  /**
   * Stops accepting; open connections of the listener go on as if it did not. @param onGone as in StopOptions.
   * @param leavesPaths of unix sockets to the process that they are shared with.
   */
  stopAccepting(id: number, onGone: () => void, leavesPaths = false): void {
    const listener = this.#listeners.get(id);
    if (listener === undefined) {
      onGone();
      return;
    }
    listener.stop(leavesPaths);
    this.#stop(listener, Number.POSITIVE_INFINITY, onGone);
  }

  /** Takes over which listeners drain. */
  updateDrains(drains: DrainState): void {
    this.#context.drains.begin(drains);
    for (const listener of [...this.#listeners.values(), ...this.#draining.keys()]) listener.announceDrain();
  }

  /** Takes over what the overload manager asks for. */
  updateOverload(state: OverloadState): void {
    this.#context.overload.update(state);
    for (const listener of [...this.#listeners.values(), ...this.#draining.keys()]) listener.onOverloadChanged();
  }

  /** Ends the streams that hold the most, some of them at a time. */
  resetStreams(reset: StreamReset): void {
    const listeners = [...this.#listeners.values(), ...this.#draining.keys()];
    const count = resetExpensiveStreams(listeners, reset.fromBytes);
    this.#context.stats.values[this.#context.stats.base(reset.countCell)]! += count;
  }

  /** That has been stopped before, and has connections. */
  #stopped(id: number): ActiveListener | undefined {
    return [...this.#draining.keys()].find(({ snapshot }) => snapshot.id === id);
  }

  #stop(listener: ActiveListener, drainMs: number, onGone: () => void): void {
    this.#listeners.delete(listener.snapshot.id);
    this.#byAddress.remove(listener);
    listener.stop();
    const endMs = this.#context.clock.monotonicMs() + drainMs;
    const before = this.#draining.get(listener);
    if (before === undefined) this.#draining.set(listener, { endMs, onGone: [onGone] });
    else {
      before.endMs = Math.min(before.endMs, endMs);
      before.onGone.push(onGone);
    }
    this.#watchDrains();
  }

  /**
   * Stops accepting, lets running requests finish with `connection: close`, closes idle connections at once and raw
   * ones when they fall silent, and cuts what is left after `graceMs`. Resolves when no connection is left. Idempotent.
   */
  shutdown(graceMs: number): Promise<void> {
    this.#shutdown ??= this.#drainAll(graceMs);
    return this.#shutdown;
  }

  async #drainAll(graceMs: number): Promise<void> {
    for (const id of [...this.#listeners.keys()]) await this.stopListener(id);
    for (const listener of this.#draining.keys()) {
      listener.drain(true);
      listener.finish();
    }
    const { clock, wheel, logFiles, accessLoggers } = this.#context;
    const deadlineMs = clock.monotonicMs() + graceMs;
    while (this.connectionCount > 0 && clock.monotonicMs() < deadlineMs) {
      await new Promise<void>((resolve) => clock.after(SHUTDOWN_CHECK_MS, resolve));
    }
    for (const listener of this.#draining.keys()) listener.destroyConnections();
    this.#draining.clear();
    await accessLoggers.close();
    this.#clusters.close();
    wheel.close();
    await logFiles.close();
    this.#endWatch();
    this.#endMeter();
  }

  #watchDrains(): void {
    if (this.#watchesDrains) return;
    this.#watchesDrains = true;
    this.#context.clock.after(DRAIN_CHECK_MS, () => {
      this.#watchesDrains = false;
      if (this.#checkDrains()) this.#watchDrains();
    });
  }

  /** @returns whether anything drains still. */
  #checkDrains(): boolean {
    const nowMs = this.#context.clock.monotonicMs();
    let areChainsLeft = false;
    for (const listener of [...this.#listeners.values(), ...this.#draining.keys()]) {
      if (listener.letChainsGo(nowMs)) areChainsLeft = true;
    }
    for (const [listener, { endMs, onGone }] of this.#draining) {
      if (nowMs >= endMs) listener.destroyConnections();
      if (listener.isUsed) continue;
      this.#draining.delete(listener);
      listener.close();
      for (const tell of onGone) tell();
    }
    return areChainsLeft || this.#draining.size > 0;
  }

  async #chooseReadMode(): Promise<void> {
    this.#context.readMode = await (this.#readMode ?? chooseReadMode());
    const log = this.#context.logs.main.ofFile('src/data-plane/data-plane.ts');
    log.debug(`worker reads accepted sockets by ${this.#context.readMode}`);
  }
}
