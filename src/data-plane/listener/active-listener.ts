// A listener of one worker: accepts, runs the listener filters, chooses the filter chain (step 1 of the request flow),
// and counts the connections of all its chains.

import type { Socket } from 'node:net';
import { formatAddress } from '../../base/address.ts';
import { errorMessage } from '../../base/errors.ts';
import type {
  DrainProgress,
  FilterChainChoice,
  FilterChainSnapshot,
  InheritedSockets,
  ListenerSnapshot,
  MatchTree,
  NetworkFilterSnapshot,
  SecuredChain,
} from '../../snapshot/index.ts';
import { LISTENER_STATS, LISTENER_WORKER_STATS } from '../../stats/index.ts';
import { AccessLog } from '../access-log/access-log.ts';
import { ListenerDrain } from '../drains.ts';
import type { IngressFacts } from '../format/facts.ts';
import { DiscoveringFilters } from '../network/discovering-filters.ts';
import { DownstreamConnection } from '../network/downstream-connection.ts';
import { type ConnectionFilters, NetworkFilterChain } from '../network/network-filter-chain.ts';
import { LimitedReads } from '../network/shared-reads.ts';
import type { ExpensiveStream, TerminalFilter } from '../network/terminal-filter.ts';
import type { Overload } from '../overload.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { AcceptLimits } from './accept-limit.ts';
import { type SocketOptionSetter, socketOptionSetter } from './accepted-socket-options.ts';
import { ActiveFilterChain, type FilterChainOwner } from './active-filter-chain.ts';
import type { DatagramService } from './datagram-service.ts';
import { compileChainTree } from './filter-chain-tree.ts';
import { FilterChains, type LeaveOptions } from './filter-chains.ts';
import { ListenerAccessLog } from './listener-access-log.ts';
import { REFUSED } from './listener-filter/filter.ts';
import {
  ListenerFilterPhase,
  type ListenerFilterPhaseOwner,
  type PhaseEnd,
} from './listener-filter/listener-filter-phase.ts';
import { ListenerFilters } from './listener-filter/listener-filters.ts';
import type { ListenersByAddress } from './listeners-by-address.ts';
import type { ListeningSocket, ListeningSocketOwner } from './listening-socket.ts';
import { ListeningSockets } from './listening-sockets.ts';

/** As loggers know this file. */
const FILE = 'src/data-plane/listener/active-listener.ts';

const {
  connections_accepted_per_socket_event,
  downstream_cx_accept_paused,
  downstream_cx_accept_resumed,
  downstream_cx_active,
  downstream_cx_destroy,
  downstream_cx_length_ms,
  downstream_cx_overflow,
  downstream_cx_overload_reject,
  downstream_cx_total,
  downstream_cx_transport_socket_connect_timeout,
  downstream_global_cx_overflow,
  downstream_listener_filter_error,
  downstream_listener_filter_remote_close,
  downstream_pre_cx_active,
  downstream_pre_cx_timeout,
  extension_config_missing,
  network_extension_config_missing,
  no_filter_chain_match,
} = LISTENER_STATS.index;
const WORKER = LISTENER_WORKER_STATS.index;
const NO_BYTES = Buffer.alloc(0);
/** Pauses of accepting that are this close are one in the log. */
const PAUSE_LOG_INTERVAL_MS = 60_000;

/** What an end of the listener filters counts as. */
const PHASE_END_STATS: Partial<Record<PhaseEnd, number>> = {
  'remote-close': downstream_listener_filter_remote_close,
  'remote-error': downstream_listener_filter_error,
  timeout: downstream_pre_cx_timeout,
};

/** Makes the terminal filter of a chain. @param drain that it asks. @param onMissing told of connections that find none. */
export type CreateFilter = (
  chain: FilterChainSnapshot,
  ingress: IngressFacts,
  drain: ListenerDrain,
  onMissing: () => void,
) => TerminalFilter;

export class ActiveListener implements FilterChainOwner, ListenerFilterPhaseOwner, ListeningSocketOwner {
  readonly listenerFiltersTimeoutMs: number;
  readonly continueOnListenerFiltersTimeout: boolean;
  readonly #context: WorkerContext;
  readonly #filters: ListenerFilters;
  readonly #clusters: ClusterMap;
  readonly #listeners: ListenersByAddress<ActiveListener>;
  readonly #createFilter: CreateFilter;
  /** Null: it accepts connections. */
  readonly #datagrams: DatagramService | null;
  #snapshot: ListenerSnapshot;
  readonly #overload: Overload;
  /** Null where it binds to no port, or takes datagrams. */
  readonly #sockets: ListeningSockets | null;
  readonly #statBase: number;
  readonly #workerStatBase: number;
  readonly #chains: FilterChains;
  readonly #accessLog: ListenerAccessLog | null;
  readonly #limits: AcceptLimits;
  readonly #bufferLimitBytes: number;
  /** Null while the limit is no less than what a read brings. */
  readonly #limitedReads: LimitedReads | null;
  readonly #setSocketOptions: SocketOptionSetter | undefined;
  /** The same by address; null where they are the same for all. */
  readonly #ownSetters: readonly (SocketOptionSetter | undefined)[] | null;
  /** Connections whose filter chain is not chosen yet. */
  readonly #phases = new Set<ListenerFilterPhase>();
  /** Of connections that no chain takes. */
  readonly #noChain: IngressFacts;
  #pausedMs = Number.NEGATIVE_INFINITY;
  /** A connection has been refused for want of a network filter's configuration. */
  readonly #onMissing = (): void => this.#count(network_extension_config_missing, 1);

  /**
   * @param listeners those of the worker.
   */
  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    snapshot: ListenerSnapshot,
    listeners: ListenersByAddress<ActiveListener>,
    overload: Overload,
    createFilter: CreateFilter,
    datagrams: DatagramService | null = null,
  ) {
    const { settings } = snapshot;
    this.#context = context;
    this.#clusters = clusters;
    this.#listeners = listeners;
    this.#overload = overload;
    this.#createFilter = createFilter;
    this.#datagrams = datagrams;
    this.#snapshot = snapshot;
    this.#statBase = context.stats.base(snapshot.statBlock);
    this.#workerStatBase = context.stats.base(snapshot.workerStatBlocks[context.workerIndex]!);
    this.#filters = new ListenerFilters(context, snapshot.listenerFilters);
    this.listenerFiltersTimeoutMs = settings.listenerFiltersTimeoutMs;
    this.continueOnListenerFiltersTimeout = settings.continueOnListenerFiltersTimeout;
    this.#noChain = { chainName: '', chainMetadata: undefined, listenerMetadata: settings.metadata };
    this.#limits = new AcceptLimits(context, snapshot);
    const log = AccessLog.compile(context, clusters, settings);
    this.#accessLog = log === null ? null : new ListenerAccessLog(context, log);
    const compileTree = (tree: MatchTree<FilterChainChoice>) => compileChainTree(context, tree, this.#noChain);
    this.#chains = new FilterChains((chain) => this.#activate(chain), compileTree);
    this.#chains.replace(snapshot);
    this.#bufferLimitBytes = settings.bufferLimitBytes;
    this.#limitedReads = LimitedReads.below(settings.bufferLimitBytes);
    this.#setSocketOptions = socketOptionSetter(settings.socketOptions);
    this.#ownSetters =
      settings.ownKeepalives?.map((own) =>
        own === null ? this.#setSocketOptions : socketOptionSetter({ ...settings.socketOptions, keepalive: own }),
      ) ?? null;
    const accepts = settings.bindsToPort && datagrams === null;
    this.#sockets = accepts ? new ListeningSockets(context, settings, this) : null;
  }

  get snapshot(): ListenerSnapshot {
    return this.#snapshot;
  }

  #activate(chain: FilterChainSnapshot): ActiveFilterChain {
    const context = this.#context;
    const { settings, tls } = chain;
    const ingress = {
      chainName: settings.name,
      chainMetadata: settings.metadata,
      listenerMetadata: this.#snapshot.settings.metadata,
    };
    const drain = new ListenerDrain(context, this.#snapshot.settings);
    const timeoutMs = settings.transportConnectTimeoutMs ?? 0;
    return new ActiveFilterChain(context, this, {
      id: chain.id,
      ingress,
      filters: this.#networkFilters(chain.networkFilters, ingress),
      filter: this.#createFilter(chain, ingress, drain, this.#onMissing),
      drain,
      security: tls === undefined ? null : { snapshot: tls, timeoutMs },
    });
  }

  #networkFilters(snapshots: readonly NetworkFilterSnapshot[], ingress: IngressFacts): ConnectionFilters | null {
    const context = this.#context;
    if (snapshots.every(({ discoveredId }) => discoveredId === undefined)) {
      return NetworkFilterChain.compile(context, this.#clusters, snapshots, ingress);
    }
    return new DiscoveringFilters(context, this.#clusters, snapshots, ingress, this.#onMissing);
  }

  /** Has new connections meet the chains of another snapshot, which differs in nothing else. */
  updateChains(snapshot: ListenerSnapshot, leave: LeaveOptions): void {
    const gone = this.#chains.replace(snapshot);
    this.#snapshot = snapshot;
    this.#chains.leave(gone, leave);
  }

  /** Cuts connections of former chains whose time is over. @returns whether there are any such chains left. */
  letChainsGo(nowMs: number): boolean {
    return this.#chains.letGo(nowMs);
  }

  /** Has handshakes from now on go by other settings. */
  secure(chains: readonly SecuredChain[]): void {
    for (const { index, tls } of chains) this.#chains.current[index]?.secure(tls);
  }

  get connectionCount(): number {
    const before = this.#phases.size + (this.#datagrams?.sessionCount ?? 0);
    return this.#chains.all.reduce((sum, chain) => sum + chain.connectionCount, before);
  }

  /**
   * @param ports by address; 0 lets the system choose.
   * @param inherited by address, descriptors of sockets that listen there already; null where there are none.
   * @param predecessor that accepts on addresses of both, until they are taken over from it.
   * @returns the bound ports, 0 for a pipe; those given where it binds to none. @throws WeirError WEIR_LISTEN when an address
   *   cannot be had.
   */
  async listen(
    ports: readonly number[],
    inherited: InheritedSockets | null,
    predecessor?: ActiveListener,
  ): Promise<readonly number[]> {
    if (!this.snapshot.settings.bindsToPort) return ports;
    try {
      if (this.#datagrams !== null) return await this.#datagrams.listen(ports);
      const bound = await this.#sockets!.listen(
        ports,
        inherited,
        predecessor === undefined ? null : predecessor.#sockets,
      );
      this.#holdClients();
      return bound;
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  /** Descriptors of all sockets on one address, for another process, which are the caller's. @param index of the address. */
  share(index: number): number[] {
    return this.#sockets?.share(index) ?? [];
  }

  /** Sockets that came from another process are this one's alone. */
  ownSockets(): void {
    this.#sockets?.own();
  }

  /** Accepts from now on in the place of another on addresses of both: no client that waits there is lost. */
  takeOver(predecessor: ActiveListener): void {
    if (predecessor.#sockets !== null) this.#sockets?.takeOver(predecessor.#sockets);
  }

  /** Closes the listening sockets; accepted connections go on. Idempotent. @param leavesPaths as for ListeningSocket.close. */
  stop(leavesPaths = false): void {
    this.#sockets?.close(leavesPaths);
    this.#datagrams?.stop();
  }

  /** Connections are here, or sockets of them that hold places under limits. */
  get isUsed(): boolean {
    return this.connectionCount > 0 || this.#limits.held > 0;
  }

  /** Has responses end their connections, more and more of them. */
  beginDrain(progress: DrainProgress): void {
    for (const chain of this.#chains.all) chain.beginDrain(progress);
  }

  /** Drains of the worker have begun, perhaps one of this listener. */
  announceDrain(): void {
    for (const chain of this.#chains.all) chain.announceDrain();
  }

  /** Lets what runs finish. @param endsIdle as for TerminalFilter; who has only just come may begin. */
  drain(endsIdle: boolean): void {
    if (endsIdle) for (const phase of this.#phases) phase.endIfSilent();
    for (const chain of this.#chains.all) chain.drain(endsIdle);
  }

  /** The process ends, `drain` has been called: see TerminalFilter. */
  finish(): void {
    for (const chain of this.#chains.all) chain.finish();
  }

  /** What is asked for may have changed. */
  onOverloadChanged(): void {
    this.#holdClients();
    for (const chain of this.#chains.all) chain.rescaleTimeouts();
  }

  findExpensive(fromBytes: number, found: ExpensiveStream[]): void {
    if (this.snapshot.settings.bypassesOverload) return;
    for (const chain of this.#chains.all) chain.findExpensive(fromBytes, found);
  }

  /** Or lets them in. */
  #holdClients(): void {
    this.#sockets?.hold(this.#overload.stopsAccepting);
  }

  destroyConnections(): void {
    for (const phase of this.#phases) phase.destroy();
    for (const chain of this.#chains.all) chain.destroyConnections();
  }

  /** It is stopped, and not used any more: gives back what it holds. Once. */
  close(): void {
    this.#filters.close();
    this.#accessLog?.close();
    this.#datagrams?.close();
    for (const chain of this.#chains.all) chain.close();
  }

  // ---- What becomes of a connection ----

  onPhaseEnded(phase: ListenerFilterPhase, end: PhaseEnd): void {
    this.#phases.delete(phase);
    this.#count(downstream_pre_cx_active, -1);
    const stat = PHASE_END_STATS[end];
    if (stat !== undefined) this.#count(stat, 1);
  }

  onListenerFiltersDone(connection: DownstreamConnection): void {
    this.#choose(connection, false);
  }

  /** @param isUnread nobody has looked at its bytes. */
  #choose(connection: DownstreamConnection, isUnread: boolean): void {
    try {
      if (this.snapshot.settings.handsOver && this.#handsOver(connection, isUnread)) return;
      this.#context.traffic.connectionOpened(connection);
      const chain = this.#chains.find(connection);
      if (chain !== undefined) {
        this.#accessLog?.onOpened(connection, chain.ingress);
        chain.accept(connection);
        return;
      }
      this.#count(no_filter_chain_match, 1);
      const log = this.#context.logs.connection.ofFile(FILE);
      if (log.enabled('debug')) log.debug(`no filter chain for a connection from ${connection.remoteAddress}`);
      this.#accessLog?.onUnmatched(connection, this.#noChain);
      connection.socket.destroy();
    } catch (error) {
      this.onFault(error);
      connection.socket.destroy();
      connection.closed();
    }
  }

  /** @returns false where the connection stays here: nobody else owns the address that it was meant for. */
  #handsOver(connection: DownstreamConnection, isUnread: boolean): boolean {
    const { originalDestination: meant, isHandedOver, socket } = connection;
    if (meant === null || isHandedOver) return false;
    const owner = this.#listeners.ownerOf(meant);
    if (owner === undefined || owner === this) return false;
    this.#limits.handOver(socket, owner.#limits);
    // How a socket is read stays as it is once it has been read.
    const next = connection.handedOver(owner.#bufferLimitBytes);
    owner.#begin(socket, next, owner.#setSocketOptions, isUnread && this.#limitedReads === null);
    return true;
  }

  onConnectionOpened(): void {
    const { values } = this.#context.stats;
    values[this.#statBase + downstream_cx_total]! += 1;
    values[this.#statBase + downstream_cx_active]! += 1;
    values[this.#workerStatBase + WORKER.downstream_cx_total]! += 1;
    values[this.#workerStatBase + WORKER.downstream_cx_active]! += 1;
  }

  onHandshakeTimeout(): void {
    this.#count(downstream_cx_transport_socket_connect_timeout, 1);
  }

  onConnectionClosed(connection: DownstreamConnection): void {
    const { stats, clock, traffic } = this.#context;
    this.#accessLog?.onClosed(connection);
    stats.values[this.#statBase + downstream_cx_active]! -= 1;
    stats.values[this.#statBase + downstream_cx_destroy]! += 1;
    stats.values[this.#workerStatBase + WORKER.downstream_cx_active]! -= 1;
    const nowMs = clock.monotonicMs();
    stats.record(this.#statBase + downstream_cx_length_ms, nowMs - connection.startMs);
    traffic.connectionClosed(connection, nowMs);
  }

  // ---- Accepting ----

  onAcceptError(error: Error): void {
    this.#context.logs.connection.error(`accepting failed: ${errorMessage(error)}`);
  }

  onFault(error: unknown): void {
    this.#context.logFault(`accepting on ${formatAddress(this.snapshot.settings.addresses[0])}`, error);
  }

  onRefused(): void {
    this.#count(downstream_cx_overload_reject, 1);
  }

  onPaused(): void {
    this.#count(downstream_cx_accept_paused, 1);
    this.#logPause();
  }

  onResumed(): void {
    this.#count(downstream_cx_accept_resumed, 1);
  }

  onAccepted(socket: Socket, from: ListeningSocket): void {
    // libuv takes one client from a listening socket and looks at all others before it takes the next.
    this.#context.stats.record(this.#statBase + connections_accepted_per_socket_event, 1);
    // Where clients cannot be left waiting, they are refused.
    if (this.#overload.stopsAccepting || this.#overload.rejectsConnection()) {
      this.#count(downstream_cx_overload_reject, 1);
      socket.destroy();
      return;
    }
    const refusedBy = this.#limits.admit(socket);
    if (refusedBy !== null) {
      this.#count(refusedBy === 'global' ? downstream_global_cx_overflow : downstream_cx_overflow, 1);
      socket.destroy();
      return;
    }
    const nowMs = this.#context.clock.monotonicMs();
    const connection = new DownstreamConnection(socket, nowMs, this.#bufferLimitBytes);
    this.#begin(socket, connection, this.#ownSetters === null ? this.#setSocketOptions : this.#setterOf(from));
  }

  #setterOf(from: ListeningSocket): SocketOptionSetter | undefined {
    return this.#ownSetters![this.#sockets!.addressOf(from)];
  }

  #begin(
    socket: Socket,
    connection: DownstreamConnection,
    setOptions: SocketOptionSetter | undefined,
    isUnread = true,
  ): void {
    if (setOptions !== undefined) this.#configure(socket, setOptions);
    if (isUnread) this.#limitedReads?.apply(socket);
    const met = this.#filters.current;
    if (met === null) {
      this.#count(extension_config_missing, 1);
      socket.destroy();
      return;
    }
    const { filters } = met;
    let next = 0;
    // A client that lets the server speak first is not waited for by who does not look at it.
    while (next < filters.length) {
      const filter = filters[next]!;
      if (filter.readsBytes && filter.isDisabledFor?.(connection) !== true) break;
      if (!filter.readsBytes && filter.inspect(NO_BYTES, 0, 0, connection) === REFUSED) {
        socket.destroy();
        return;
      }
      next++;
    }
    if (next === filters.length) {
      this.#choose(connection, isUnread);
      return;
    }
    this.#count(downstream_pre_cx_active, 1);
    this.#phases.add(new ListenerFilterPhase(this.#context, this, connection, met, next));
  }

  #configure(socket: Socket, set: SocketOptionSetter): void {
    try {
      set(socket);
    } catch (error) {
      // The client may be gone already, or the system may know the option for another kind of socket only.
      const log = this.#context.logs.connection.ofFile(FILE);
      if (log.enabled('debug')) log.debug(`socket options cannot be set: ${errorMessage(error)}`);
    }
  }

  /** One line for a time of want, not one for each of its pauses. */
  #logPause(): void {
    const { clock, logs } = this.#context;
    const nowMs = clock.monotonicMs();
    const isKnown = nowMs - this.#pausedMs < PAUSE_LOG_INTERVAL_MS;
    this.#pausedMs = nowMs;
    if (isKnown) return;
    const where = formatAddress(this.snapshot.settings.addresses[0]);
    logs.connection.warning(`accepting on ${where} pauses: the descriptors of the process run short`);
  }

  #count(stat: number, n: number): void {
    this.#context.stats.values[this.#statBase + stat]! += n;
  }
}
