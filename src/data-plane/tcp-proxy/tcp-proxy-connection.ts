// One proxied TCP connection: the client's socket and an upstream that its bytes go to, both ways, unread.
//
//   CONNECTING ──upstream up──► OPEN ──client gone, bytes left──► FLUSHING ──sent──► CLOSED
//     │                          │ ├────upstream closed──► ENDING ──client has all─────►│
//     │                          │ └────upstream reset──► BREAKING ──client has all────►│ with a reset
//     └──no upstream, client gone┴──both ends said, client reset, idle─────────────────►┘
//
// An end of stream on one side is passed on behind the last byte, and the other direction goes on. So is the reset of an
// upstream: what it sent before is the client's, and none of it may be in our system any more (Delivery). The reset of a
// client is passed on at once: what waits for the upstream is thrown away. A stream that was cut never looks complete.
// Each direction holds at most what one read has brought while the other side cannot take more.

import type { Socket } from 'node:net';
import { JitteredBackoff } from '../../base/backoff.ts';
import { CLUSTER_STATS, TCP_PROXY_STATS } from '../../stats/index.ts';
import { type AccessLogType, StreamFacts } from '../format/stream-facts.ts';
import { BufferedBytes } from '../network/buffered-bytes.ts';
import { connectionFacts } from '../network/connection-facts.ts';
import { Delivery, type DeliveryOwner } from '../network/delivery.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { PausedPeer, type PausedPeerOwner } from '../network/paused-peers.ts';
import { attachAccepted, resetSocket, resumeAccepted, type SocketOwner } from '../network/socket-events.ts';
import { QUIET_MS } from '../network/terminal-filter.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import { ResponseFlag } from '../response-flags.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { HostUser, NoHostReason } from '../upstream/destinations.ts';
import type { Host } from '../upstream/host.ts';
import { type PickContext, RequestHash } from '../upstream/load-balancer/pick-context.ts';
import { UpstreamEnd } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { TcpProxy } from './tcp-proxy.ts';
import { TcpUpstream, type TcpUpstreamOwner } from './tcp-upstream.ts';

const NO_HOST_FLAGS: Readonly<Record<NoHostReason, number>> = {
  none: ResponseFlag.UH,
  overflow: ResponseFlag.UO,
  dns: ResponseFlag.DF,
};
const { upstream_cx_connect_attempts_exceeded, upstream_cx_none_healthy, upstream_cx_overflow } = CLUSTER_STATS.index;
const {
  downstream_cx_rx_bytes_buffered,
  downstream_cx_rx_bytes_total,
  downstream_cx_tx_bytes_buffered,
  downstream_cx_tx_bytes_total,
  downstream_flow_control_paused_reading_total,
  downstream_flow_control_resumed_reading_total,
  idle_timeout,
  max_downstream_connection_duration,
  upstream_flush_active,
  upstream_flush_total,
} = TCP_PROXY_STATS.index;

const CONNECTING = 0;
const OPEN = 1;
const FLUSHING = 2;
const ENDING = 3;
const BREAKING = 4;
const CLOSED = 5;
const NEVER = Number.POSITIVE_INFINITY;
const IDLE_TIMEOUT_DETAILS = 'tcp_session_idle_timeout';
const LAST_ENTRY = 'TcpConnectionEnd';
const MAX_DURATION_DETAILS = 'max_connection_duration_reached';

export class TcpProxyConnection
  implements SocketOwner, HostUser<Host>, TcpUpstreamOwner, PausedPeerOwner, DeliveryOwner, TimeoutOwner
{
  readonly downstream: DownstreamConnection;
  readonly #context: WorkerContext;
  readonly #filter: TcpProxy;
  readonly #socket: Socket;
  readonly #timer: TimerEntry;
  #state: number = CONNECTING;
  #cluster: Cluster | undefined = undefined;
  #upstream: TcpUpstream | null = null;
  #attempts = 0;
  /** Null until an attempt has failed, or without waits between attempts. */
  #backoff: JitteredBackoff | null = null;
  /** Null when nothing is logged. */
  #facts: StreamFacts | null = null;
  #upstreamEnd: UpstreamEnd | null = null;
  /** Bytes that came before the upstream was there. */
  readonly #early: Buffer[] = [];
  /** Bytes from the client that wait for the upstream to be there, and bytes that the client has not taken. */
  readonly #held: BufferedBytes;
  readonly #unsent: BufferedBytes;
  #isReadStopped = false;
  /** Null before reading from the client stops for the first time, or comes to its end. */
  #pausedPeer: PausedPeer | null = null;
  #hasClientEnded = false;
  /** Of the last that the client gets; null before the upstream has gone. */
  #delivery: Delivery | null = null;
  /** The process ends: silence is the end. */
  #isEnding = false;
  /** Of the connect timeout or the wait between attempts while CONNECTING, else of the idle timeout. */
  #deadlineMs = NEVER;
  /** When the connection is too old. */
  #endMs = NEVER;
  #nextLogMs = NEVER;

  constructor(context: WorkerContext, filter: TcpProxy, downstream: DownstreamConnection) {
    this.#context = context;
    this.#filter = filter;
    this.downstream = downstream;
    this.#socket = downstream.socket;
    this.#timer = new TimerEntry(this);
    this.#held = new BufferedBytes(context, filter.statBase + downstream_cx_rx_bytes_buffered);
    this.#unsent = new BufferedBytes(context, filter.statBase + downstream_cx_tx_bytes_buffered);
    if (filter.accessLog !== null) {
      const ends = connectionFacts(context, downstream);
      this.#facts = new StreamFacts(context.clock, downstream.startMs, ends, LAST_ENTRY, filter.ingress);
    }
    attachAccepted(downstream.socket, this, context.readMode);
  }

  get bufferLimitBytes(): number {
    return this.downstream.bufferLimitBytes;
  }

  /** Looks for an upstream; ends the connection when there is none. */
  start(): void {
    const nowMs = this.#context.clock.monotonicMs();
    const { furtherLogEntries } = this.#filter.settings;
    this.#endMs = nowMs + this.#filter.drawDurationMs();
    if (furtherLogEntries.onStart) this.#logOnTheWay('TcpConnectionStart', nowMs);
    if (furtherLogEntries.intervalMs > 0 && this.#facts !== null)
      this.#nextLogMs = nowMs + furtherLogEntries.intervalMs;
    this.#connect();
  }

  /** Ends both sides now; they see a reset if bytes wait that neither will get, or one has been reset. */
  destroy(): void {
    if (this.#state === CLOSED) return;
    if (this.#unsentBytes > 0 || this.#state === BREAKING) {
      this.#reset();
      return;
    }
    this.#close(false);
    this.#socket.destroy();
  }

  /** Ends the connection as soon as nothing moves and nothing is on its way: the process ends. */
  endWhenQuiet(): void {
    if (this.#state === CONNECTING) {
      this.destroy();
      return;
    }
    this.#isEnding = true;
    this.#touch();
    this.#arm();
  }

  /** The same for one that comes then: it may connect first. */
  endWhenQuietLater(): void {
    if (this.#state === CONNECTING) this.#isEnding = true;
    else this.endWhenQuiet();
  }

  // ---- The client's socket ----

  onBytes(chunk: Buffer, length: number): boolean {
    this.#count(downstream_cx_rx_bytes_total, length);
    if (this.#facts !== null) this.#facts.bytesReceived += length;
    if (this.#state >= FLUSHING) return true;
    if (this.#state === CONNECTING) {
      this.#early.push(chunk.subarray(0, length));
      this.#held.note(this.#held.bytes + length);
      this.#stopReading();
      return false;
    }
    this.#touch();
    if (this.#upstream!.write(chunk, length)) return true;
    this.#pauseClient();
    return false;
  }

  onEnd(): void {
    this.#hasClientEnded = true;
    if (this.#state > OPEN) return;
    this.#context.pausedPeers.ended(this.#watchedClient);
    if (this.#state === CONNECTING) return;
    this.#upstream!.end();
  }

  onDrain(): void {
    this.#unsent.note(0);
    this.#upstream?.resume();
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    const upstream = this.#upstream;
    if (error === null && this.#state === OPEN && upstream!.unsentBytes > 0) this.#flush(upstream!);
    else this.#close(error !== null);
  }

  onFault(error: unknown): void {
    this.#context.logFault('a proxied connection', error);
    this.#close(true);
  }

  /** An end waits for its turn behind the bytes before it; a reset does not. */
  onPausedPeerGone(isReset: boolean): void {
    if (!isReset) return;
    this.#close(true);
    this.#socket.destroy();
  }

  // ---- The upstream ----

  onUpstreamConnected(): void {
    this.#state = OPEN;
    this.#upstream!.host.outlier?.served();
    this.#upstreamEnd?.noteConnection(this.#upstream!);
    this.#touch();
    this.#arm();
    if (this.#filter.settings.furtherLogEntries.onConnected) {
      this.#logOnTheWay('TcpUpstreamConnected', this.#context.clock.monotonicMs());
    }
    const bytes = Buffer.concat(this.#early.splice(0));
    this.#held.note(0);
    const isSent = bytes.length === 0 || this.#upstream!.write(bytes, bytes.length);
    if (this.#hasClientEnded) this.#upstream!.end();
    else if (isSent) this.#readOn();
    else this.#pauseClient();
  }

  onUpstreamConnectFailed(failure: string): void {
    this.#upstream = null;
    this.#note(ResponseFlag.UF);
    if (this.#facts !== null && failure !== '') this.#facts.upstreamTransportFailure = failure;
    if (this.#attempts < this.#filter.settings.maxConnectAttempts) {
      this.#connectAgain();
      return;
    }
    this.#note(ResponseFlag.URX);
    this.#countCluster(this.#cluster!, upstream_cx_connect_attempts_exceeded);
    this.destroy();
  }

  onUpstreamBytes(bytes: Buffer, length: number, isSlab: boolean): boolean {
    if (this.#state !== OPEN) return true;
    this.#touch();
    this.#count(downstream_cx_tx_bytes_total, length);
    if (this.#facts !== null) this.#facts.bytesSent += length;
    const { writer } = this.#context;
    const isTaken = isSlab
      ? writer.pinned(this.#socket, '', bytes, 0, length, '')
      : writer.copied(this.#socket, '', bytes, 0, length);
    if (!isTaken) this.#unsent.note(this.#socket.writableLength);
    return isTaken;
  }

  onUpstreamEnd(): void {
    if (this.#state === OPEN) this.#socket.end();
  }

  onUpstreamDrain(): void {
    if (this.#state === OPEN) this.#resumeClient();
  }

  onUpstreamClosed(error: NodeJS.ErrnoException | null): void {
    this.#upstream = null;
    if (this.#state === FLUSHING) {
      this.#reset();
      return;
    }
    // What was received before is still the client's, for as long as it may take.
    this.#state = error === null ? ENDING : BREAKING;
    if (error === null) {
      this.#socket.end();
      // When it has ended as well, the socket closes by itself.
      this.#resumeClient();
    }
    this.#delivery = new Delivery(this.#context, this.#socket, this);
    this.#delivery.start();
  }

  onDeliveryProgress(): void {
    this.#touch();
    this.#arm();
  }

  onDelivered(): void {
    if (this.#state === BREAKING) this.#reset();
    else this.#socket.destroy();
  }

  onTimeout(nowMs: number): void {
    if (nowMs >= this.#endMs) {
      this.#note(ResponseFlag.DT);
      this.#endBecause(max_downstream_connection_duration, MAX_DURATION_DETAILS);
      return;
    }
    if (nowMs >= this.#nextLogMs) {
      this.#logOnTheWay('TcpPeriodic', nowMs);
      this.#nextLogMs = nowMs + this.#filter.settings.furtherLogEntries.intervalMs;
    }
    if (nowMs >= this.#deadlineMs) this.#onDeadline();
    if (this.#state !== CLOSED) this.#arm();
  }

  // ---- Inside ----

  #onDeadline(): void {
    if (this.#state === CONNECTING) {
      if (this.#upstream === null) this.#connect();
      else this.#upstream.timeOut();
    } else if (this.#isEnding) this.#onQuiet();
    else this.#endBecause(idle_timeout, IDLE_TIMEOUT_DETAILS);
  }

  /** Bytes that a slow peer has not taken yet are waited for. */
  #onQuiet(): void {
    if (this.#unsentBytes > 0 || this.#delivery !== null) this.#touch();
    else this.destroy();
  }

  /** Bytes on their way to either side. */
  get #unsentBytes(): number {
    return this.#socket.writableLength + (this.#upstream?.unsentBytes ?? 0);
  }

  #endBecause(stat: number, details: string): void {
    this.#count(stat, 1);
    if (this.#facts !== null) this.#facts.connectionTerminationDetails = details;
    this.destroy();
  }

  #connectAgain(): void {
    const { connectBackoff: settings } = this.#filter.settings;
    if (settings === null) {
      this.#connect();
      return;
    }
    const { random, clock } = this.#context;
    this.#backoff ??= new JitteredBackoff(random, settings.baseMs, settings.maxMs);
    this.#deadlineMs = clock.monotonicMs() + this.#backoff.nextMs();
    this.#arm();
  }

  /** Every attempt draws its cluster anew. */
  #connect(): void {
    const target = this.#filter.chooseTarget(this.downstream);
    const cluster = this.#filter.clusterOf(target);
    cluster?.acquire();
    this.#cluster?.release();
    this.#cluster = cluster;
    if (cluster === undefined) {
      this.#note(ResponseFlag.NR);
      this.destroy();
      return;
    }
    this.#attempts++;
    if (this.#facts !== null) {
      this.#facts.upstreamCluster = cluster.settings.name;
      this.#facts.clusterMetadata = cluster.settings.metadata;
    }
    if (cluster.destinations !== null) {
      // Whoever is asked keeps the time.
      this.#deadlineMs = NEVER;
      const asked = cluster.destinations.contextOf(null, connectionFacts(this.#context, this.downstream));
      cluster.destinations.choose(asked, cluster.breaker, this);
      return;
    }
    const host = cluster.chooseHost(cluster.isHashed ? this.#hash(cluster, target.asks) : target.asks);
    if (host === null) this.onNoHost('none');
    else this.onHost(host);
  }

  onNoHost(reason: NoHostReason): void {
    const isFull = reason === 'overflow';
    this.#note(NO_HOST_FLAGS[reason]);
    if (!isFull) this.#countCluster(this.#cluster!, upstream_cx_none_healthy);
    this.destroy();
  }

  onHost(host: Host): void {
    const { cluster } = host;
    this.#context.traffic.connectionForwarded(this.downstream, cluster.name, host.label);
    if (!host.tryAcquireConnection(cluster.breaker)) {
      this.#note(ResponseFlag.UO);
      this.#countCluster(cluster, upstream_cx_overflow);
      this.destroy();
      return;
    }
    const nowMs = this.#context.clock.monotonicMs();
    this.#deadlineMs = nowMs + cluster.settings.connectTimeoutMs;
    this.#arm();
    if (this.#facts !== null) {
      this.#upstreamEnd = new UpstreamEnd(host);
      this.#facts.upstream = this.#upstreamEnd;
    }
    this.#upstream = new TcpUpstream(this.#context, host, this, nowMs, cluster.breaker, this.downstream);
  }

  /** Equal for all connections of one client. */
  #hash(cluster: Cluster, asks: PickContext | null): PickContext | null {
    const { remoteAddress } = this.downstream;
    const { policies } = cluster.settings.hashing;
    // Of what a cluster hashes by, this is all that a connection has.
    const hashesSourceIp =
      policies.length > 0 ? policies.some(({ kind }) => kind === 'source-ip') : this.#filter.settings.hashesSourceIp;
    if (!hashesSourceIp || remoteAddress === '') return asks;
    const { lbKernel } = this.#context;
    const hash = new RequestHash(asks?.criteria ?? null);
    lbKernel.hashLatin1(remoteAddress);
    hash.add(lbKernel.hashHi | 0, lbKernel.hashLo | 0);
    return hash;
  }

  /** The client has gone, but what it sent belongs to the upstream. */
  #flush(upstream: TcpUpstream): void {
    this.#state = FLUSHING;
    this.#pausedPeer?.resume();
    this.#endMs = NEVER;
    this.#count(upstream_flush_total, 1);
    this.#count(upstream_flush_active, 1);
    upstream.end();
    upstream.resume();
  }

  /** The upstream does not take more. A client that waits for its upstream to be there does not count as held back. */
  #pauseClient(): void {
    this.#stopReading();
    this.#count(downstream_flow_control_paused_reading_total, 1);
  }

  #resumeClient(): void {
    if (!this.#isReadStopped) return;
    this.#count(downstream_flow_control_resumed_reading_total, 1);
    this.#readOn();
  }

  #readOn(): void {
    if (!this.#isReadStopped) return;
    this.#isReadStopped = false;
    this.#pausedPeer!.resume();
    resumeAccepted(this.#socket, this.#context.readMode);
  }

  #stopReading(): void {
    this.#isReadStopped = true;
    this.#context.pausedPeers.pause(this.#watchedClient);
  }

  get #watchedClient(): PausedPeer {
    this.#pausedPeer ??= new PausedPeer(this, this.#socket);
    return this.#pausedPeer;
  }

  #touch(): void {
    const timeoutMs = this.#isEnding ? QUIET_MS : this.#filter.settings.idleTimeoutMs;
    this.#deadlineMs = timeoutMs > 0 ? this.#context.clock.monotonicMs() + timeoutMs : NEVER;
  }

  #arm(): void {
    const nextMs = Math.min(this.#deadlineMs, this.#endMs, this.#nextLogMs);
    if (nextMs !== NEVER) this.#context.wheel.arm(this.#timer, nextMs);
  }

  /** Breaks both sides off. */
  #reset(): void {
    this.#close(true);
    resetSocket(this.#socket);
  }

  /** @param isReset the client's side is broken off, and the upstream's is to be. */
  #close(isReset: boolean): void {
    if (this.#state === CLOSED) return;
    if (this.#state === FLUSHING) this.#count(upstream_flush_active, -1);
    this.#state = CLOSED;
    this.#held.note(0);
    this.#unsent.note(0);
    this.#pausedPeer?.resume();
    this.#delivery?.stop();
    this.#context.wheel.remove(this.#timer);
    if (isReset) this.#upstream?.reset();
    else this.#upstream?.destroy();
    this.#upstream = null;
    this.#cluster?.destinations?.cancel(this);
    this.#log(this.#context.clock.monotonicMs());
    this.#cluster?.release();
    this.#filter.onConnectionClosed(this);
  }

  #note(flag: number): void {
    if (this.#facts !== null) this.#facts.flags |= flag;
  }

  /** Writes an entry as if the connection ended now. */
  #log(nowMs: number): void {
    const facts = this.#facts;
    if (facts === null) return;
    facts.attempts = this.#attempts;
    facts.noteFiltered(this.downstream);
    facts.endMs = nowMs;
    this.#filter.accessLog!.write(facts);
  }

  #logOnTheWay(type: AccessLogType, nowMs: number): void {
    const facts = this.#facts;
    if (facts === null) return;
    facts.accessLogType = type;
    this.#log(nowMs);
    facts.accessLogType = LAST_ENTRY;
  }

  #count(stat: number, n: number): void {
    this.#context.stats.values[this.#filter.statBase + stat]! += n;
  }

  #countCluster(cluster: Cluster, stat: number): void {
    this.#context.stats.values[cluster.statBase + stat]! += 1;
  }
}
