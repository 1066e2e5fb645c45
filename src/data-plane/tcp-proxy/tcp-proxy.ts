// The TCP proxy filter of one listener in one worker: what its connections share, and the list of them.

import { weightedIndex } from '../../base/random.ts';
import type { FilterChainSnapshot, TcpProxySettings } from '../../snapshot/index.ts';
import { TCP_PROXY_STATS } from '../../stats/index.ts';
import { AccessLog } from '../access-log/access-log.ts';
import type { IngressFacts } from '../format/facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { stateNumber, TCP_PROXY_CLUSTER, TCP_PROXY_IDLE_TIMEOUT_MS } from '../network/filter-state.ts';
import type { TerminalFilter } from '../network/terminal-filter.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import { contextAsking, type PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { WorkerContext } from '../worker-context.ts';
import { ApproachLog } from './approach-log.ts';
import { ClusterDemands } from './cluster-demands.ts';
import { compileSaidTlvs, type SaidTlvs } from './said-tlvs.ts';
import { TcpProxyConnection } from './tcp-proxy-connection.ts';
import { TunnelRequest } from './tunnel-request.ts';

const { downstream_cx_no_route, downstream_cx_total } = TCP_PROXY_STATS.index;

/** What a timer takes. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Where a connection may go. */
export interface TcpTarget {
  readonly cluster: string;
  /** What it asks of its host; null for nothing. */
  readonly asks: PickContext | null;
}

export class TcpProxy implements TerminalFilter {
  readonly settings: TcpProxySettings;
  /** First cell of TCP_PROXY_STATS in this worker's slab. */
  readonly statBase: number;
  /** Null when nothing is logged. */
  readonly accessLog: AccessLog | null;
  readonly approaches: ApproachLog | null;
  /** Null: bytes go to hosts as they are. */
  readonly tunnel: TunnelRequest | null;
  /** Null: a connection whose cluster is not known ends. */
  readonly demands: ClusterDemands | null;
  readonly ingress: IngressFacts;
  readonly #context: WorkerContext;
  /** Null for nothing. */
  readonly #saidTlvs: SaidTlvs | null;
  readonly #clusters: ClusterMap;
  readonly #targets: readonly TcpTarget[];
  readonly #weights: readonly number[];
  readonly #totalWeight: number;
  readonly #connections = new Set<TcpProxyConnection>();
  #isFinishing = false;

  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    chain: FilterChainSnapshot,
    ingress: IngressFacts,
    settings: TcpProxySettings,
  ) {
    this.#context = context;
    this.#clusters = clusters;
    this.settings = settings;
    this.#targets = settings.clusters.map(({ cluster, criteria }) => ({ cluster, asks: contextAsking(criteria) }));
    this.#weights = settings.clusters.map(({ weight }) => weight);
    this.#totalWeight = this.#weights.reduce((sum, weight) => sum + weight, 0);
    this.accessLog = AccessLog.compile(context, clusters, settings);
    this.tunnel = settings.tunnel === null ? null : new TunnelRequest(settings.tunnel);
    const { onDemand } = settings;
    this.demands = onDemand === undefined ? null : new ClusterDemands(context, onDemand, chain.onDemandStatBlock!);
    this.ingress = ingress;
    this.#saidTlvs = settings.tlvs === undefined ? null : compileSaidTlvs(context, settings.tlvs, ingress);
    this.approaches = this.accessLog && new ApproachLog(context, this.accessLog, ingress);
    this.statBase = context.stats.base(chain.filterStatBlock);
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  accept(downstream: DownstreamConnection): void {
    const { values } = this.#context.stats;
    values[this.statBase + downstream_cx_total]! += 1;
    if (this.#saidTlvs !== null) downstream.passedTlvs ??= this.#saidTlvs(downstream);
    const connection = new TcpProxyConnection(this.#context, this, downstream);
    this.#connections.add(connection);
    connection.start();
    if (this.#isFinishing) connection.endWhenQuietLater();
  }

  /** For an attempt to connect; its cluster may not exist. */
  chooseTarget(downstream: DownstreamConnection): TcpTarget {
    const ofFilter = downstream.state(TCP_PROXY_CLUSTER);
    if (ofFilter !== undefined) return { cluster: ofFilter, asks: null };
    const targets = this.#targets;
    if (targets.length === 1) return targets[0]!;
    return targets[weightedIndex(this.#weights, this.#context.random.u32() % this.#totalWeight)]!;
  }

  /** Undefined when there is no such cluster. */
  clusterOf({ cluster: name }: TcpTarget): Cluster | undefined {
    return this.#clusters.get(name);
  }

  /** A connection ends for want of its cluster. */
  noteNoCluster(): void {
    this.#context.stats.values[this.statBase + downstream_cx_no_route]! += 1;
  }

  /** Raw connections have no good moment to end: they run until one side closes, or until they are destroyed. */
  drain(): void {}

  finish(): void {
    this.#isFinishing = true;
    for (const connection of [...this.#connections]) connection.endWhenQuiet();
  }

  /** Its connections are no streams. */
  findExpensive(): void {}

  /** None of its timeouts is shortened. */
  rescaleTimeouts(): void {}

  destroyConnections(): void {
    for (const connection of [...this.#connections]) connection.destroy();
  }

  close(): void {
    this.accessLog?.close();
  }

  /** How long a connection may be silent; 0 for any time. */
  idleTimeoutMs(downstream: DownstreamConnection): number {
    return stateNumber(downstream.state(TCP_PROXY_IDLE_TIMEOUT_MS), MAX_TIMEOUT_MS) ?? this.settings.idleTimeoutMs;
  }

  /** How long a new connection may last; Infinity for any time. */
  drawDurationMs(): number {
    const { maxConnectionDurationMs: limitMs, maxConnectionDurationJitterPercent: jitterPercent } = this.settings;
    if (limitMs === 0) return Number.POSITIVE_INFINITY;
    const jitterMs = Math.floor((limitMs * jitterPercent) / 100);
    return jitterMs === 0 ? limitMs : limitMs + (this.#context.random.u32() % jitterMs);
  }

  onConnectionClosed(connection: TcpProxyConnection): void {
    this.#connections.delete(connection);
    connection.downstream.closed();
  }
}
