// One member of a cluster as this worker sees it: where it is, where it is counted, and its connection pools.
// A host keeps its object over host-set updates for as long as its address, or the name of a member
// whose address changes, stays in the cluster. Connections keep the address that they were made to.
//
//   ACTIVE ──left the cluster──► RETIRED ──last connection and waiting request gone──► UNUSED
//
// Main may give the places of a host in shared memory to another one once every worker is done with it, so a
// retired host tells when that is.

import { isIP } from 'node:net';
import { type Address, formatAddress, type IpAddress } from '../../base/address.ts';
import type { ConfiguredHealth, HostSnapshot, Metadata, ServerCredentials } from '../../snapshot/index.ts';
import { type ClusterPriority, HealthFlag, HealthMask } from '../../wasm/shared-records.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { UPSTREAM_SERVER_NAME } from '../network/filter-state.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { Cluster } from './cluster.ts';
import type { Opening } from './opening.ts';
import { OutlierMonitor } from './outlier-monitor.ts';
import type { ConnectionPool } from './pool/connection-pool.ts';
import { type CreatePool, createPool, type PoolProtocol } from './pool/create-pool.ts';
import { HostPools } from './pool/host-pools.ts';
import { NamedPools } from './pool/named-pools.ts';
import { PoolChoice } from './pool/pool-choice.ts';
import type { PoolHost } from './pool/pool-host.ts';
import { NO_NAMES, type ServerNames } from './request-server-name.ts';
import type { ResponseCodeStats } from './response-code-stats.ts';
import type { UpstreamTls } from './tls/upstream-tls.ts';

/** Health that others have found wanting, not the configuration. */
const FAILED = HealthFlag.failedActiveHealthCheck | HealthFlag.failedOutlierCheck;

/** A connection that belongs to no pool. */
export interface RawConnection {
  /** Its host has turned unhealthy, and its cluster wants no connection to such hosts. */
  onHostFailed(): void;
  /** Its host has left the cluster. */
  onHostLeft?(): void;
}

/** Follows its host, whose settings may change while a pool stays. */
class HostOpening implements Opening {
  readonly preamble: Buffer | null;
  readonly sentName: string;
  readonly verifiedName: string;
  readonly #host: Host;

  constructor(host: Host, preamble: Buffer | null, names: ServerNames = NO_NAMES) {
    this.#host = host;
    this.preamble = preamble;
    this.sentName = names.sentName;
    this.verifiedName = names.verifiedName;
  }

  get tls(): UpstreamTls | null {
    return this.#host.tls;
  }

  get hostname(): string {
    return this.#host.hostname;
  }
}

export class Host implements PoolHost {
  readonly cluster: Cluster;
  /** Where new connections go. */
  address: Address;
  /** Of a host with several addresses: where new connections are tried, in this order. Null with one. */
  connectOrder: readonly IpAddress[] | null;
  /** The address as text, for logs. */
  label: string;
  /** What requests name it by, where they do: its address, or its name and port. The same as text. */
  readonly destination: Address;
  readonly key: string;
  /** Byte address of the record in shared memory. */
  readonly record: number;
  /** First cell of HOST_STATS in this worker's slab. */
  readonly statBase: number;
  /** Null when nobody wants to know of outliers. */
  readonly outlier: OutlierMonitor | null;
  /** The configured DNS name, or empty. */
  hostname: string;
  canary: boolean;
  /** 0 is the most preferred. */
  priority: number;
  configuredHealth: ConfiguredHealth;
  /** For formats. */
  metadata: Metadata | undefined;
  /** How its connections are secured; null for plain ones. */
  tls: UpstreamTls | null;
  choosesHttp2 = true;
  http2Streams = Number.POSITIVE_INFINITY;
  /** Null unless its zone and that of this proxy are known. */
  readonly zoneCodes: ResponseCodeStats | null;
  readonly #context: WorkerContext;
  readonly #pools: PoolChoice<HostPools<ConnectionPool>>;
  /** Null unless requests say what servers are asked for. */
  readonly #namedPools: PoolChoice<NamedPools<ConnectionPool>> | null;
  /** Proxied TCP connections, which belong to no pool. */
  readonly #rawConnections = new Set<RawConnection>();
  /** By its health flags when they were looked at last. */
  #isFailed: boolean;
  /** Main has been told that the host wants to be left out. */
  #isReported = false;
  #onUnused: (() => void) | null = null;

  /** @param create makes the pool of one routing priority. */
  constructor(context: WorkerContext, cluster: Cluster, snapshot: HostSnapshot, create: CreatePool = createPool) {
    this.#context = context;
    this.cluster = cluster;
    cluster.acquire();
    this.address = snapshot.address;
    this.connectOrder = snapshot.connectOrder ?? null;
    this.label = formatAddress(snapshot.address);
    const { named } = snapshot;
    this.destination = named === undefined ? snapshot.address : { kind: 'ip', ip: named.name, port: named.port };
    this.key = formatAddress(this.destination);
    this.record = snapshot.recordAddress;
    this.statBase = context.stats.base(snapshot.statBlock);
    const { name, outlierRules } = cluster;
    const { recordAddress, outlierBlock } = snapshot;
    this.outlier =
      outlierRules === null ? null : new OutlierMonitor(context, outlierRules, name, recordAddress, outlierBlock);
    this.hostname = snapshot.hostname;
    this.canary = snapshot.canary;
    this.priority = snapshot.priority;
    this.configuredHealth = snapshot.health;
    this.metadata = snapshot.metadata;
    this.tls = cluster.tlsOf(snapshot.metadata);
    this.zoneCodes = cluster.codesOfZone(snapshot.locality.zone);
    const use = cluster.settings.http2?.use;
    const protocolFor = (isHttp2Client: boolean): PoolProtocol => {
      if (use === 'by-alpn') return use;
      return use === 'always' || (use === 'like-client' && isHttp2Client) ? 'http2' : 'http1';
    };
    const makePools = (
      downstream: DownstreamConnection | null,
      isHttp2: boolean,
      names?: ServerNames,
    ): HostPools<ConnectionPool> => {
      const opening = new HostOpening(this, cluster.preambleFor(downstream), names ?? this.#ownNames);
      const protocol = protocolFor(isHttp2);
      return new HostPools((priority) => create(context, this, cluster.breakerFor(priority), opening, protocol));
    };
    const sharing = { isPerClient: cluster.settings.poolsPerClient, isLikeClient: use === 'like-client' };
    this.#pools = new PoolChoice(sharing, makePools);
    this.#namedPools =
      cluster.requestServerName === null
        ? null
        : new PoolChoice(sharing, (...of) => new NamedPools((names) => makePools(...of, names)));
    this.#isFailed = (this.healthFlags & FAILED) !== 0;
  }

  /** Connections for requests of all clients, unless cluster or client want others. */
  get pools(): HostPools<ConnectionPool> {
    return this.#pools.shared;
  }

  /** HealthFlag bits. Main makes new host lists when they change: only where requests name their hosts do they look. */
  get healthFlags(): number {
    return this.#context.records.healthFlags(this.record);
  }

  get credentials(): ServerCredentials | null {
    return this.cluster.settings.credentials ?? null;
  }

  /** Neither unhealthy nor degraded. */
  get isHealthy(): boolean {
    return (this.healthFlags & (HealthMask.unhealthy | HealthMask.degraded)) === 0;
  }

  get isUnhealthy(): boolean {
    return (this.healthFlags & HealthMask.unhealthy) !== 0;
  }

  /** A request has named it, and was turned away. */
  noteWanted(): void {
    this.#context.records.noteWanted(this.record);
  }

  /** What its server is asked for, where that is what requests call it. No server is asked for an address. */
  get #ownNames(): ServerNames {
    const { destination } = this;
    if (this.cluster.settings.forwardProxy?.namesServers !== true || destination.kind !== 'ip') return NO_NAMES;
    return {
      sentName: isIP(destination.ip) === 0 ? destination.ip.replace(/\.$/, '') : '',
      verifiedName: destination.ip.replace(/\.$/, ''),
    };
  }

  /** How connections begin that carry something for a client, or for nobody. */
  openingFor(downstream: DownstreamConnection | null): Opening {
    const sentName = downstream?.state(UPSTREAM_SERVER_NAME);
    const names = sentName === undefined ? this.#ownNames : { ...this.#ownNames, sentName };
    return new HostOpening(this, this.cluster.preambleFor(downstream), names);
  }

  /**
   * The connections that requests of a routing priority use.
   * @param downstream whom the request is sent for; null for nobody.
   */
  poolFor(priority: ClusterPriority, downstream: DownstreamConnection | null): ConnectionPool {
    return this.#pools.of(downstream).for(priority);
  }

  /** The same where requests say what servers are asked for. @returns null when that are too many names at once. */
  poolNamed(
    priority: ClusterPriority,
    downstream: DownstreamConnection | null,
    names: ServerNames,
  ): ConnectionPool | null {
    return this.#namedPools!.of(downstream).of(names)?.for(priority) ?? null;
  }

  /**
   * Takes places for a connection: one of its own, and one of the cluster.
   * @returns false when either has no more.
   */
  tryAcquireConnection(breaker: CircuitBreaker): boolean {
    const { records } = this.#context;
    if (!records.tryAcquireHostConnection(this.record, breaker.maxConnectionsPerHost)) return false;
    if (breaker.tryAcquireConnection()) return true;
    records.addActiveConnections(this.record, -1);
    return false;
  }

  /** The same beyond any limit. */
  acquireConnection(breaker: CircuitBreaker): void {
    this.#context.records.addActiveConnections(this.record, 1);
    breaker.acquireConnection();
  }

  /** It has as many connections as one host may have. */
  isFull({ maxConnectionsPerHost }: CircuitBreaker): boolean {
    return this.#context.records.activeConnections(this.record) >= maxConnectionsPerHost;
  }

  /** Takes over new settings. */
  update(snapshot: HostSnapshot): void {
    this.address = snapshot.address;
    this.connectOrder = snapshot.connectOrder ?? null;
    this.label = formatAddress(snapshot.address);
    this.hostname = snapshot.hostname;
    this.canary = snapshot.canary;
    this.priority = snapshot.priority;
    this.configuredHealth = snapshot.health;
    this.metadata = snapshot.metadata;
    const tls = this.cluster.tlsOf(snapshot.metadata);
    if (tls === this.tls) return;
    this.tls = tls;
    this.renewConnections();
  }

  /** Main has changed health flags. */
  noteHealth(): void {
    this.#isReported = false;
    const wasFailed = this.#isFailed;
    this.#isFailed = (this.healthFlags & FAILED) !== 0;
    if (this.#isFailed && !wasFailed) this.#onFailed();
  }

  /** An answer of the host asks to leave it out. Main is told once, until it publishes what became of that. */
  reportFailure(): void {
    if (this.#isReported || (this.healthFlags & HealthFlag.excludedViaImmediateHealthCheckFail) !== 0) return;
    this.#isReported = true;
    this.#context.reportHostFailure(this.cluster.name, this.record);
  }

  /** Closes a pool that carries nothing. @returns as HostPools.closeUnused. */
  closeUnusedPool(priority: ClusterPriority): boolean {
    return this.#pools.closeUnused(priority) || (this.#namedPools?.closeUnused(priority) ?? false);
  }

  /** Replaces all connections: idle ones close now, busy ones after their request. */
  renewConnections(): void {
    this.#pools.renew();
    this.#namedPools?.renew();
  }

  /** The host has left its cluster. @param onUnused told once, when nothing here refers to it any more. */
  retire(onUnused: () => void): void {
    this.#onUnused = onUnused;
    this.#pools.drain();
    this.#namedPools?.drain();
    for (const connection of [...this.#rawConnections]) connection.onHostLeft?.();
    this.onUserGone();
  }

  /** It has left, and something uses it still. */
  get isRetired(): boolean {
    return this.#onUnused !== null;
  }

  /** Ends all pooled connections now. */
  close(): void {
    this.#pools.close();
    this.#namedPools?.close();
  }

  addRawConnection(connection: RawConnection): void {
    this.#rawConnections.add(connection);
  }

  removeRawConnection(connection: RawConnection): void {
    this.#rawConnections.delete(connection);
    this.onUserGone();
  }

  /** A connection or a waiting request has gone: of interest to a retired host, and to pools of clients that have left. */
  onUserGone(): void {
    this.#pools.forgetUnused();
    this.#namedPools?.forgetUnused();
    if (this.#onUnused === null || this.#isUsed()) return;
    // The caller may have a last word to count, on the stack above, or a request to send once more.
    queueMicrotask(() => this.#tellUnused());
  }

  #tellUnused(): void {
    const onUnused = this.#onUnused;
    if (onUnused === null || this.#isUsed()) return;
    this.#onUnused = null;
    onUnused();
    this.cluster.release();
  }

  /** A check has failed, or the host was ejected: what uses it should go elsewhere. */
  #onFailed(): void {
    this.renewConnections();
    if (!this.cluster.settings.closeConnectionsOnHostHealthFailure) return;
    for (const connection of [...this.#rawConnections]) connection.onHostFailed();
  }

  #isUsed(): boolean {
    return this.#pools.isUsed || (this.#namedPools?.isUsed ?? false) || this.#rawConnections.size > 0;
  }
}
