// How a proxied TCP connection comes to the host that it is to connect to. Worker thread.
//
//   target drawn ──(its cluster has to be discovered, ──there──►)──► cluster ──► host, or a tunnel through one of its hosts
//        ▲              └──missing, late──► no cluster                 └──none, no room──► no host
//        └── after a wait ── the attempt has failed, and there may be another
//
// Holds the cluster of the attempt until the connection has ended, and the deadline of whatever the attempt waits for.

import { JitteredBackoff } from '../../base/backoff.ts';
import type { HashInput } from '../../snapshot/index.ts';
import { CLUSTER_STATS } from '../../stats/index.ts';
import { connectionFacts } from '../network/connection-facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { ResponseFlag } from '../response-flags.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { HostUser, NoHostReason } from '../upstream/destinations.ts';
import type { Host } from '../upstream/host.ts';
import { type PickContext, RequestHash } from '../upstream/load-balancer/pick-context.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { ClusterDemands } from './cluster-demands.ts';
import type { TcpProxy, TcpTarget } from './tcp-proxy.ts';

const NO_HOST_FLAGS: Readonly<Record<NoHostReason, number>> = {
  none: ResponseFlag.UH,
  overflow: ResponseFlag.UO,
  dns: ResponseFlag.DF,
};
const { upstream_cx_connect_attempts_exceeded, upstream_cx_none_healthy, upstream_cx_overflow } = CLUSTER_STATS.index;
const NEVER = Number.POSITIVE_INFINITY;

/** The connection that searches. Each attempt ends in one of the last three, perhaps before the call that has begun it returns. */
export interface UpstreamSearchOwner {
  /** The deadline may have come nearer. */
  onDeadlineSet(): void;
  /** An attempt begins. */
  onCluster(cluster: Cluster): void;
  /** Room on it is taken. @param nowMs the connect timeout runs from here. */
  onHostFound(host: Host, nowMs: number): void;
  /** The filter tunnels: the tunnel picks the host. */
  onTunnelWanted(cluster: Cluster, pick: PickContext | null): void;
  /** @param flag why, for the log. */
  onNoUpstream(flag: number): void;
}

export class UpstreamSearch implements HostUser<Host> {
  /** Of this attempt, or the last; undefined before the first, and when it is not known. */
  cluster: Cluster | undefined = undefined;
  attempts = 0;
  /** Monotonic, of the connect timeout or of any wait; Infinity for none, or when whoever is asked keeps the time. */
  deadlineMs: number = NEVER;
  readonly #context: WorkerContext;
  readonly #filter: TcpProxy;
  readonly #downstream: DownstreamConnection;
  readonly #owner: UpstreamSearchOwner;
  /** What the waiting for a cluster that has to be discovered ends by; null when it does not wait. */
  #leaveDemand: (() => void) | null = null;
  /** Null until an attempt has failed, or without waits between attempts. */
  #backoff: JitteredBackoff | null = null;

  constructor(context: WorkerContext, filter: TcpProxy, downstream: DownstreamConnection, owner: UpstreamSearchOwner) {
    this.#context = context;
    this.#filter = filter;
    this.#downstream = downstream;
    this.#owner = owner;
  }

  /** Every attempt draws its cluster anew. */
  start(): void {
    const target = this.#filter.chooseTarget(this.#downstream);
    if (this.#filter.demands === null || this.#filter.clusterOf(target) !== undefined) this.#goTo(target);
    else this.#awaitCluster(this.#filter.demands, target);
  }

  /** The attempt has failed. @returns whether there is another, which has begun or will when its time has come. */
  tryAgain(): boolean {
    const { maxConnectAttempts, connectBackoff: settings } = this.#filter.settings;
    if (this.attempts >= maxConnectAttempts) {
      this.#count(this.cluster!, upstream_cx_connect_attempts_exceeded);
      return false;
    }
    if (settings === null) {
      this.start();
      return true;
    }
    const { random, clock } = this.#context;
    this.#backoff ??= new JitteredBackoff(random, settings.baseMs, settings.maxMs);
    this.#setDeadline(clock.monotonicMs() + this.#backoff.nextMs());
    return true;
  }

  /** The deadline has passed, and there is no upstream whose connect timeout it could be. */
  passDeadline(): void {
    if (this.#leaveDemand === null) {
      this.start();
      return;
    }
    this.#filter.demands!.noteLate();
    this.#endWithoutCluster();
  }

  /** The connect timeout of a cluster begins. @returns the time of this moment. */
  limitConnect(cluster: Cluster): number {
    const nowMs = this.#context.clock.monotonicMs();
    this.#setDeadline(nowMs + cluster.settings.connectTimeoutMs);
    return nowMs;
  }

  /** There is an upstream. */
  connected(): void {
    this.deadlineMs = NEVER;
  }

  /** The connection has ended: nothing is waited for, and the cluster is let go. Once. */
  end(): void {
    this.#leaveDemand?.();
    this.cluster?.destinations?.cancel(this);
    this.cluster?.release();
  }

  onNoHost(reason: NoHostReason): void {
    if (reason !== 'overflow') this.#count(this.cluster!, upstream_cx_none_healthy);
    this.#owner.onNoUpstream(NO_HOST_FLAGS[reason]);
  }

  onHost(host: Host): void {
    const { cluster } = host;
    this.#context.traffic.connectionForwarded(this.#downstream, cluster.name, host.label);
    if (!host.tryAcquireConnection(cluster.breaker)) {
      this.#count(cluster, upstream_cx_overflow);
      this.#owner.onNoUpstream(ResponseFlag.UO);
      return;
    }
    this.#owner.onHostFound(host, this.limitConnect(cluster));
  }

  /** A tunnel has found no host. */
  noTunnelHost(reason: NoHostReason): void {
    this.#owner.onNoUpstream(NO_HOST_FLAGS[reason]);
  }

  #setDeadline(deadlineMs: number): void {
    this.deadlineMs = deadlineMs;
    this.#owner.onDeadlineSet();
  }

  /** @param target another one is not drawn: that might have to be discovered as well. */
  #awaitCluster(demands: ClusterDemands, target: TcpTarget): void {
    const leave = demands.ask(target.cluster, () => {
      this.#leaveDemand = null;
      this.#goTo(target);
    });
    if (leave === undefined) {
      this.#endWithoutCluster();
      return;
    }
    this.#leaveDemand = leave;
    this.#setDeadline(this.#context.clock.monotonicMs() + demands.timeoutMs);
  }

  #endWithoutCluster(): void {
    this.#filter.noteNoCluster();
    this.#owner.onNoUpstream(ResponseFlag.NC);
  }

  #goTo(target: TcpTarget): void {
    const cluster = this.#filter.clusterOf(target);
    cluster?.acquire();
    this.cluster?.release();
    this.cluster = cluster;
    if (cluster === undefined) {
      this.#endWithoutCluster();
      return;
    }
    this.attempts++;
    this.#owner.onCluster(cluster);
    const pick = this.#pickContext(cluster, target.asks);
    if (this.#filter.tunnel !== null) {
      this.#owner.onTunnelWanted(cluster, pick);
      return;
    }
    if (cluster.destinations !== null) {
      // Whoever is asked keeps the time.
      this.deadlineMs = NEVER;
      cluster.destinations.choose(pick, cluster.breaker, this);
      return;
    }
    const host = cluster.chooseHost(pick);
    if (host === null) this.onNoHost('none');
    else this.onHost(host);
  }

  /** What the choice of a host may go by. */
  #pickContext(cluster: Cluster, asks: PickContext | null): PickContext | null {
    if (cluster.destinations !== null) {
      return cluster.destinations.contextOf(null, connectionFacts(this.#context, this.#downstream));
    }
    return cluster.isHashed ? this.#hash(cluster, asks) : asks;
  }

  /** Equal for all connections that are the same in what is hashed. */
  #hash(cluster: Cluster, asks: PickContext | null): PickContext | null {
    const { policies } = cluster.settings.hashing;
    const inputs: readonly HashInput[] = policies.length > 0 ? policies : this.#filter.settings.hashInputs;
    const { lbKernel } = this.#context;
    const hash = new RequestHash(asks?.criteria ?? null);
    for (const input of inputs) {
      const text = this.#hashed(input);
      if (text === '') continue;
      lbKernel.hash(text);
      hash.add(lbKernel.hashHi | 0, lbKernel.hashLo | 0);
    }
    return hash.hasHash ? hash : asks;
  }

  /** Empty where there is nothing to hash: of most of what a cluster hashes by, a connection has none. */
  #hashed(input: HashInput): string {
    if (input.kind === 'source-ip') return this.#downstream.remoteAddress;
    return input.kind === 'filter-state' ? (this.#downstream.state(input.key) ?? '') : '';
  }

  #count(cluster: Cluster, stat: number): void {
    this.#context.stats.values[cluster.statBase + stat]! += 1;
  }
}
