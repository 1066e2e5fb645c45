// Connections to hosts that a terminal filter of an extension opens itself, because it knows what is spoken over them.

import { CLUSTER_STATS, HOST_STATS } from '../../stats/index.ts';
import type { FilterHost, FilterLink, FilterUpstreams, LinkReceiver } from '../network/network-filter.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import { Host } from '../upstream/host.ts';
import { RequestHash } from '../upstream/load-balancer/pick-context.ts';
import type { WorkerContext } from '../worker-context.ts';
import { TcpUpstream, type TcpUpstreamOwner } from './tcp-upstream.ts';

const {
  upstream_cx_none_healthy,
  upstream_cx_overflow,
  upstream_internal_redirect_failed_total,
  upstream_internal_redirect_succeeded_total,
  upstream_rq_active,
  upstream_rq_timeout,
  upstream_rq_total,
} = CLUSTER_STATS.index;
const { rq_active, rq_error, rq_success, rq_timeout, rq_total } = HOST_STATS.index;

const NO_HOSTS: readonly Host[] = [];

export class RawUpstreams implements FilterUpstreams {
  readonly #context: WorkerContext;
  readonly #clusters: ClusterMap;
  readonly #bufferLimitBytes: number;

  /** @param bufferLimitBytes of answers that may wait for the filter. */
  constructor(context: WorkerContext, clusters: ClusterMap, bufferLimitBytes: number) {
    this.#context = context;
    this.#clusters = clusters;
    this.#bufferLimitBytes = bufferLimitBytes;
  }

  hostFor(name: string, key: Buffer): Host | null {
    const cluster = this.#clusters.get(name);
    // Where requests name their hosts, a key names none.
    if (cluster === undefined || cluster.destinations !== null) return null;
    const host = cluster.chooseHost(cluster.isHashed ? this.#hash(key) : null);
    if (host === null) this.#context.stats.values[cluster.statBase + upstream_cx_none_healthy]! += 1;
    return host;
  }

  hostAt(beside: FilterHost, name: string, port: number): Host | null {
    const { cluster, address } = ownHost(beside);
    const ip = name !== '' || address.kind !== 'ip' ? name : address.ip;
    const isThere = ({ address: at, hostname }: Host): boolean =>
      at.kind === 'ip' && at.port === port && (at.ip === ip || (hostname !== '' && hostname === ip));
    return cluster.hosts.find(isThere) ?? null;
  }

  members(name: string): readonly Host[] {
    return this.#clusters.get(name)?.members ?? NO_HOSTS;
  }

  reportStranger(beside: FilterHost, ip: string, port: number): void {
    this.#context.requestHost(ownHost(beside).cluster.name, { kind: 'ip', ip, port });
  }

  connect(host: FilterHost, receiver: LinkReceiver): FilterLink | null {
    const member = ownHost(host);
    const { cluster } = member;
    if (!member.tryAcquireConnection(cluster.breaker)) {
      this.#context.stats.values[cluster.statBase + upstream_cx_overflow]! += 1;
      return null;
    }
    return new RawLink(this.#context, member, receiver, this.#bufferLimitBytes);
  }

  #hash(key: Buffer): RequestHash {
    const kernel = this.#context.lbKernel;
    kernel.split(kernel.murmurHash2(key));
    const hash = new RequestHash(null);
    hash.add(kernel.hashHi | 0, kernel.hashLo | 0);
    return hash;
  }
}

function ownHost(host: FilterHost): Host {
  if (!(host instanceof Host)) throw new TypeError('a host that no cluster has given');
  return host;
}

class RawLink implements FilterLink, TcpUpstreamOwner, TimeoutOwner {
  readonly bufferLimitBytes: number;
  readonly #context: WorkerContext;
  readonly #host: Host;
  readonly #receiver: LinkReceiver;
  readonly #timer = new TimerEntry(this);
  readonly #upstream: TcpUpstream;
  /** Written before there is a connection, which is another socket in the end where there is TLS, or several addresses. */
  #early: Buffer | null = null;
  #isConnected = false;
  #isOver = false;

  constructor(context: WorkerContext, host: Host, receiver: LinkReceiver, bufferLimitBytes: number) {
    this.#context = context;
    this.#host = host;
    this.#receiver = receiver;
    this.bufferLimitBytes = bufferLimitBytes;
    const { breaker, settings } = host.cluster;
    const nowMs = context.clock.monotonicMs();
    context.wheel.arm(this.#timer, nowMs + settings.connectTimeoutMs);
    this.#upstream = new TcpUpstream(context, host, this, nowMs, breaker);
  }

  write(bytes: Buffer): boolean {
    if (this.#isOver) return true;
    if (this.#isConnected) return this.#upstream.write(bytes, bytes.length);
    this.#early = this.#early === null ? bytes : Buffer.concat([this.#early, bytes]);
    return false;
  }

  requestBegan(): void {
    this.#context.records.addActiveRequests(this.#host.record, 1);
    this.#count(upstream_rq_total, rq_total, 1);
    this.#count(upstream_rq_active, rq_active, 1);
  }

  requestEnded(outcome: 'answered' | 'failed' | 'timeout'): void {
    const { stats, records } = this.#context;
    const { statBase, outlier, cluster } = this.#host;
    records.addActiveRequests(this.#host.record, -1);
    this.#count(upstream_rq_active, rq_active, -1);
    stats.values[statBase + (outcome === 'answered' ? rq_success : rq_error)]! += 1;
    if (outcome !== 'timeout') return;
    stats.values[cluster.statBase + upstream_rq_timeout]! += 1;
    stats.values[statBase + rq_timeout]! += 1;
    outlier?.timedOut();
  }

  redirected(isFollowed: boolean): void {
    const { cluster } = this.#host;
    const stat = isFollowed ? upstream_internal_redirect_succeeded_total : upstream_internal_redirect_failed_total;
    this.#context.stats.values[cluster.statBase + stat]! += 1;
  }

  close(): void {
    if (!this.#leave()) return;
    this.#upstream.destroy();
  }

  /** Of the connect. */
  onTimeout(): void {
    if (!this.#isOver) this.#upstream.timeOut();
  }

  onUpstreamConnected(): void {
    this.#context.wheel.remove(this.#timer);
    this.#isConnected = true;
    this.#receiver.onConnected();
    const early = this.#early;
    this.#early = null;
    if (early !== null && this.write(early) && !this.#isOver) this.#receiver.onWritable();
  }

  onUpstreamConnectFailed(): void {
    this.#over();
  }

  onUpstreamBytes(bytes: Buffer, length: number): boolean {
    this.#receiver.onBytes(bytes.subarray(0, length));
    return true;
  }

  onUpstreamEnd(): void {
    this.#over();
    this.#upstream.destroy();
  }

  onUpstreamDrain(): void {
    this.#receiver.onWritable();
  }

  onUpstreamClosed(): void {
    this.#over();
  }

  onHostLeft(): void {
    if (!this.#isOver) this.#receiver.onHostLeft();
  }

  #over(): void {
    if (this.#leave()) this.#receiver.onClosed();
  }

  #leave(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#context.wheel.remove(this.#timer);
    return true;
  }

  #count(ofCluster: number, ofHost: number, change: number): void {
    const { values } = this.#context.stats;
    values[this.#host.cluster.statBase + ofCluster]! += change;
    values[this.#host.statBase + ofHost]! += change;
  }
}
