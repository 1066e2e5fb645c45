// One proxied TCP connection: the client's socket and an upstream that its bytes go to, both ways, unread.
//
//   (AWAITING ──client's first bytes──►) (its cluster has to be discovered, ──there──►)
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
import { TCP_PROXY_STATS } from '../../stats/index.ts';
import type { StreamFacts } from '../format/stream-facts.ts';
import type { Trailers } from '../http/trailers.ts';
import { BufferedBytes } from '../network/buffered-bytes.ts';
import { Delivery, type DeliveryOwner } from '../network/delivery.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { PausedPeer, type PausedPeerOwner } from '../network/paused-peers.ts';
import { attachAccepted, resetSocket, resumeAccepted, type SocketOwner } from '../network/socket-events.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import { ResponseFlag } from '../response-flags.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { NoHostReason } from '../upstream/destinations.ts';
import type { Host } from '../upstream/host.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import { UpstreamEnd } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import { ConnectionEntries } from './connection-entries.ts';
import type { ProxiedUpstream } from './proxied-upstream.ts';
import { SilenceLimits } from './silence-limits.ts';
import type { TcpProxy } from './tcp-proxy.ts';
import { TcpUpstream, type TcpUpstreamOwner } from './tcp-upstream.ts';
import { type TunnelOwner, TunnelUpstream } from './tunnel-upstream.ts';
import { UpstreamSearch, type UpstreamSearchOwner } from './upstream-search.ts';

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

const AWAITING = 0;
const CONNECTING = 1;
const OPEN = 2;
const FLUSHING = 3;
const ENDING = 4;
const BREAKING = 5;
const CLOSED = 6;
const NEVER = Number.POSITIVE_INFINITY;
const IDLE_TIMEOUT_DETAILS = 'tcp_session_idle_timeout';
const MAX_DURATION_DETAILS = 'max_connection_duration_reached';
const NO_TUNNEL_HOSTNAME_DETAILS = 'tunnel_hostname_unusable';

export class TcpProxyConnection
  implements
    SocketOwner,
    UpstreamSearchOwner,
    TcpUpstreamOwner,
    TunnelOwner,
    PausedPeerOwner,
    DeliveryOwner,
    TimeoutOwner
{
  readonly downstream: DownstreamConnection;
  readonly #context: WorkerContext;
  readonly #filter: TcpProxy;
  readonly #socket: Socket;
  readonly #timer: TimerEntry;
  #state: number = AWAITING;
  readonly #search: UpstreamSearch;
  #upstream: ProxiedUpstream | null = null;
  readonly #entries: ConnectionEntries;
  /** Null when nobody asks for them. */
  readonly #facts: StreamFacts | null;
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
  readonly #silence: SilenceLimits;
  /** When the connection is too old. */
  #endMs = NEVER;

  constructor(context: WorkerContext, filter: TcpProxy, downstream: DownstreamConnection) {
    this.#context = context;
    this.#filter = filter;
    this.downstream = downstream;
    this.#socket = downstream.socket;
    this.#search = new UpstreamSearch(context, filter, downstream, this);
    this.#silence = new SilenceLimits(context.clock, filter.idleTimeoutMs(downstream), filter.settings);
    this.#timer = new TimerEntry(this);
    this.#held = new BufferedBytes(context, filter.statBase + downstream_cx_rx_bytes_buffered);
    this.#unsent = new BufferedBytes(context, filter.statBase + downstream_cx_tx_bytes_buffered);
    this.#entries = new ConnectionEntries(context, filter, downstream);
    this.#facts = this.#entries.facts;
    attachAccepted(downstream.socket, this, context.readMode);
  }

  get bufferLimitBytes(): number {
    return this.downstream.bufferLimitBytes;
  }

  /** Looks for an upstream, unless the client has to speak first; ends the connection when there is none. */
  start(): void {
    const nowMs = this.#context.clock.monotonicMs();
    this.#endMs = nowMs + this.#filter.drawDurationMs();
    this.#entries.begin(nowMs);
    if (this.#filter.settings.awaitsData) {
      this.#silence.noteProgress();
      this.#arm();
      return;
    }
    this.#state = CONNECTING;
    this.#search.start();
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
    if (this.#state <= CONNECTING) {
      this.destroy();
      return;
    }
    this.#silence.shorten();
    this.#silence.noteProgress();
    this.#arm();
  }

  /** The same for one that comes then: it may connect first. */
  endWhenQuietLater(): void {
    if (this.#state === CONNECTING) this.#silence.shorten();
    else this.endWhenQuiet();
  }

  // ---- The client's socket ----

  onBytes(chunk: Buffer, length: number): boolean {
    this.#count(downstream_cx_rx_bytes_total, length);
    if (this.#facts !== null) this.#facts.bytesReceived += length;
    if (this.#state >= FLUSHING) return true;
    if (this.#state <= CONNECTING) {
      this.#early.push(chunk.subarray(0, length));
      this.#held.note(this.#held.bytes + length);
      this.#stopReading();
      if (this.#state === AWAITING) {
        this.#state = CONNECTING;
        this.#silence.pause();
        this.#search.start();
      }
      return false;
    }
    this.#silence.noteClient();
    if (this.#upstream!.write(chunk, length)) return true;
    this.#pauseClient();
    return false;
  }

  onEnd(): void {
    this.#hasClientEnded = true;
    this.#silence.clientEnded();
    if (this.#state > OPEN) return;
    if (this.#state === AWAITING) {
      this.destroy();
      return;
    }
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

  // ---- The search for an upstream ----

  onDeadlineSet(): void {
    this.#arm();
  }

  onCluster(cluster: Cluster): void {
    if (this.#facts !== null) this.#noteCluster(this.#facts, cluster);
  }

  onHostFound(host: Host, nowMs: number): void {
    this.#noteHost(host);
    this.#upstream = new TcpUpstream(this.#context, host, this, nowMs, host.cluster.breaker, this.downstream);
  }

  onTunnelWanted(cluster: Cluster, pick: PickContext | null): void {
    const tunnel = this.#filter.tunnel!;
    const head = tunnel.headFor(this.#facts!);
    if (head === null) {
      if (this.#facts !== null) this.#facts.connectionTerminationDetails = NO_TUNNEL_HOSTNAME_DETAILS;
      this.#endWith(ResponseFlag.NR);
      return;
    }
    const upstream = new TunnelUpstream(this.#context, cluster, this, tunnel, head, pick);
    this.#upstream = upstream;
    this.#search.limitConnect(cluster);
    upstream.start();
  }

  onNoUpstream(flag: number): void {
    this.#endWith(flag);
  }

  // ---- The upstream ----

  onUpstreamConnected(): void {
    this.#state = OPEN;
    this.#upstream!.noteServed();
    this.#upstreamEnd?.noteConnection(this.#upstream!.ends);
    this.#facts?.noteConnectionReady(this.#context.clock.monotonicMs());
    this.#search.connected();
    if (!this.#hasClientEnded) this.#silence.noteClient();
    this.#silence.noteUpstream();
    this.#arm();
    this.#entries.connected(this.#search.attempts);
    const bytes = Buffer.concat(this.#early.splice(0));
    this.#held.note(0);
    const isSent = bytes.length === 0 || this.#upstream!.write(bytes, bytes.length);
    if (this.#hasClientEnded) this.#upstream!.end();
    else if (isSent) this.#readOn();
    else this.#pauseClient();
  }

  onTunnelHost(host: Host): void {
    this.#context.traffic.connectionForwarded(this.downstream, host.cluster.name, host.label);
    this.#noteHost(host);
  }

  /** The answer has the time of a connect. */
  onTunnelAsked(): void {
    this.#search.limitConnect(this.#search.cluster!);
  }

  onTunnelOpened(head: string): void {
    const facts = this.#facts;
    if (facts !== null && head !== '') facts.responseHead = head;
    this.onUpstreamConnected();
  }

  onTunnelTrailers(trailers: Trailers): void {
    if (this.#facts !== null) this.#facts.responseTrailers = trailers;
  }

  onTunnelUnavailable(reason: NoHostReason): void {
    this.#upstream = null;
    this.#search.noTunnelHost(reason);
  }

  onUpstreamConnectFailed(failure: string): void {
    this.#upstream = null;
    this.#note(ResponseFlag.UF);
    if (this.#facts !== null && failure !== '') this.#facts.upstreamTransportFailure = failure;
    if (!this.#search.tryAgain()) this.#endWith(ResponseFlag.URX);
  }

  onUpstreamBytes(bytes: Buffer, length: number, isSlab: boolean): boolean {
    if (this.#state !== OPEN) return true;
    this.#silence.noteUpstream();
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
    this.#silence.upstreamEnded();
    if (this.#state === OPEN) this.#socket.end();
  }

  onUpstreamDrain(): void {
    if (this.#state === OPEN) this.#resumeClient();
  }

  onUpstreamClosed(error: Error | null): void {
    this.#upstream = null;
    this.#silence.sidesEnded();
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
    this.#silence.noteProgress();
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
    this.#entries.passTime(nowMs, this.#search.attempts);
    if (nowMs >= this.#search.deadlineMs) this.#onSearchLate();
    else if (nowMs >= this.#silence.endMs) this.#onSilence(nowMs);
    if (this.#state !== CLOSED) this.#arm();
  }

  // ---- Inside ----

  #onSearchLate(): void {
    if (this.#upstream === null) this.#search.passDeadline();
    else this.#upstream.timeOut();
  }

  /** While the process ends, bytes that a slow peer has not taken yet are waited for. */
  #onSilence(nowMs: number): void {
    if (!this.#silence.isShort || !this.#silence.isIdle(nowMs)) this.#endBecause(idle_timeout, IDLE_TIMEOUT_DETAILS);
    else if (this.#unsentBytes > 0 || this.#delivery !== null) this.#silence.noteProgress();
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

  #noteCluster(facts: StreamFacts, { settings }: Cluster): void {
    facts.upstreamCluster = settings.name;
    facts.clusterMetadata = settings.metadata;
  }

  #noteHost(host: Host): void {
    if (this.#facts === null) return;
    this.#upstreamEnd = new UpstreamEnd(host);
    this.#facts.noteHostChosen(this.#upstreamEnd);
    // Hosts of an aggregate cluster are others'.
    this.#noteCluster(this.#facts, host.cluster);
  }

  /** The client has gone, but what it sent belongs to the upstream. */
  #flush(upstream: ProxiedUpstream): void {
    this.#state = FLUSHING;
    this.#pausedPeer?.resume();
    this.#endMs = NEVER;
    this.#silence.sidesEnded();
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

  #arm(): void {
    const nextMs = Math.min(this.#search.deadlineMs, this.#silence.endMs, this.#endMs, this.#entries.nextMs);
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
    this.#entries.end(this.#search.attempts);
    this.#search.end();
    this.#filter.onConnectionClosed(this);
  }

  #endWith(flag: number): void {
    this.#note(flag);
    this.destroy();
  }

  #note(flag: number): void {
    if (this.#facts !== null) this.#facts.flags |= flag;
  }

  #count(stat: number, n: number): void {
    this.#context.stats.values[this.#filter.statBase + stat]! += n;
  }
}
