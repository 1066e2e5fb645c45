// One HTTP/2 connection to an upstream host: the socket below a session, and its place in the pool. Step 4 of the request
// flow. Prior knowledge: the session begins as soon as there is a connection, and requests do not wait for the upstream's
// settings.
//
//   CONNECTING ──connected──► OPEN ──limit, GOAWAY, drain──► OPEN, last streams ──the last has ended──► CLOSED
//       └───────failed─────────►└──────────── the peer's end, a fault, no answer to a ping ─────────────►┘
//
// Reading never stops: windows bound what the upstream may send for streams whose clients are slow.

import type { Socket } from 'node:net';
import type { Address } from '../../../../base/address.ts';
import type { Http2Settings } from '../../../../snapshot/index.ts';
import { CLUSTER_STATS, HTTP2_STATS, type Http2Stat } from '../../../../stats/index.ts';
import { tlsFailureOf } from '../../../../tls/failure.ts';
import type { Endpoint } from '../../../format/facts.ts';
import { BufferedBytes } from '../../../network/buffered-bytes.ts';
import { LastBytes } from '../../../network/last-bytes.ts';
import { plainAddress } from '../../../network/peer-address.ts';
import type { TlsFacts } from '../../../network/tls/connection-tls.ts';
import type { UpstreamConnectionStats } from '../../../upstream/connection-stats.ts';
import { connectToHost, type HostConnectionOwner } from '../../../upstream/host-connection.ts';
import { HTTP2_ALPN } from '../../../upstream/opening.ts';
import { type BegunConnection, ConnectionLife, type LifeOwner } from '../../../upstream/pool/connection-life.ts';
import type { ConnectionOwner, PooledConnection } from '../../../upstream/pool/connection-owner.ts';
import type { UpstreamFailure } from '../../../upstream/pool/failure.ts';
import type { PoolHost } from '../../../upstream/pool/pool-host.ts';
import type { ConnectionEnds, ConnectionTimes } from '../../../upstream/upstream-facts.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import type { UpstreamStream } from '../upstream-stream.ts';
import { ClientSession, type ClientSessionOwner } from './client-session.ts';
import type { Flushable } from './flush-queue.ts';
import { Keepalive } from './keepalive.ts';
import type { SessionFault } from './options.ts';

const {
  upstream_cx_close_notify,
  upstream_cx_http2_total,
  upstream_cx_max_requests,
  upstream_cx_protocol_error,
  upstream_cx_rx_bytes_total,
  upstream_cx_tx_bytes_total,
} = CLUSTER_STATS.index;
const { keepalive_timeout, pending_send_bytes, streams_active } = HTTP2_STATS.index;

/** As loggers know this file. */
const FILE = 'src/data-plane/http/codec/http2/client-connection.ts';

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 2;

export class Http2ClientConnection
  implements PooledConnection, HostConnectionOwner, LifeOwner, ClientSessionOwner, ConnectionEnds, Flushable
{
  readonly host: PoolHost;
  readonly #context: WorkerContext;
  readonly #pool: ConnectionOwner;
  readonly #session: ClientSession;
  /** Of a host with several addresses, or TLS: a stand-in until the connection is there. */
  #socket: Socket;
  /** The host's may be another one by now. */
  remoteAddress: Address;
  /** Null for a plain connection. */
  tls: TlsFacts | null = null;
  readonly #life: ConnectionLife;
  readonly #stats: UpstreamConnectionStats;
  readonly #pending: BufferedBytes;
  readonly #keepalive: Keepalive | null;
  #state: number = CONNECTING;
  #requestsLeft: number;
  /** It takes no further streams. */
  #isLast = false;
  /** Null as long as the upstream takes bytes. */
  #lastBytes: LastBytes | null = null;
  isReady = false;
  expected = 0;

  /** @param begun null for one that is to be made. */
  constructor(
    context: WorkerContext,
    host: PoolHost,
    pool: ConnectionOwner,
    http2: Http2Settings,
    begun: BegunConnection | null = null,
  ) {
    const { cluster } = host;
    const { settings } = cluster;
    this.#context = context;
    this.host = host;
    this.#pool = pool;
    this.#requestsLeft = settings.maxRequestsPerConnection || Number.MAX_SAFE_INTEGER;
    this.#session = new ClientSession(context, this, http2, cluster.responseHeadLimits, host.http2Streams);
    this.#keepalive = http2.keepalive === null ? null : new Keepalive(context, this, http2.keepalive);
    this.remoteAddress = host.address;
    this.#socket = begun?.socket ?? connectToHost(context, host, this, pool.opening, HTTP2_ALPN);
    this.#life = begun?.life ?? new ConnectionLife(context, host, pool.breaker, this);
    this.#life.owner = this;
    this.#stats = this.#life.stats;
    this.#stats.count(upstream_cx_http2_total);
    this.#pending = new BufferedBytes(context, cluster.http2StatBase + pending_send_bytes);
  }

  // ---- From the pool ----

  get freeStreams(): number {
    if (this.#state !== OPEN || this.#isLast) return 0;
    return Math.min(this.#session.freeStreams, this.#requestsLeft);
  }

  get comingStreams(): number {
    if (this.#state === CONNECTING) return Math.min(this.#session.likelyStreams, this.#requestsLeft);
    if (this.#state === CLOSED || this.#isLast) return 0;
    return Math.min(this.#session.comingStreams, this.#requestsLeft - this.freeStreams);
  }

  openStream(): UpstreamStream {
    this.#life.used();
    this.#keepalive?.beforeStream(this.#context.clock.monotonicMs());
    this.#stats.beginRequest(0);
    this.#countSession(streams_active, 1);
    const stream = this.#session.openStream(this.#stats.requests > 1);
    this.#requestsLeft--;
    if (this.#requestsLeft === 0) {
      this.#stats.count(upstream_cx_max_requests);
      this.#isLast = true;
    }
    return stream;
  }

  close(): void {
    this.#close(true, null, '');
  }

  closeAfterStreams(): void {
    if (this.#state !== OPEN) return;
    this.#isLast = true;
    if (this.#session.streamCount === 0) this.#close(true, null, '');
    else this.#pool.onCapacity(this);
  }

  // ---- From the socket ----

  readBuffer(): Buffer {
    return this.#context.codec.readBuffer;
  }

  onFurtherAttempt(): void {
    this.#stats.attemptedAgain();
  }

  onChosen(socket: Socket, address: Address, tls: TlsFacts | null): this {
    this.#socket = socket;
    this.tls = tls;
    this.remoteAddress = address;
    return this;
  }

  onConnect(): void {
    if (this.#state !== CONNECTING) return;
    this.#state = OPEN;
    const nowMs = this.#context.clock.monotonicMs();
    this.#life.connected(nowMs);
    this.#session.start();
    this.#keepalive?.start(nowMs);
    this.#pool.onConnected(this);
  }

  onBytes(chunk: Buffer, length: number): boolean {
    this.#stats.count(upstream_cx_rx_bytes_total, length);
    if (this.#state !== OPEN) return false;
    this.#keepalive?.received(this.#context.clock.monotonicMs());
    this.#session.receive(chunk, length);
    this.#lastBytes?.wait(false);
    return this.#state === OPEN;
  }

  onEnd(): void {
    this.#close(false, 'connection termination', '');
  }

  onDrain(): void {
    if (this.#state !== OPEN) return;
    this.#stats.drained();
    this.#session.drained();
  }

  onSendFailed(): void {
    if (this.#state !== OPEN) return;
    this.#isLast = true;
    this.#pool.onCapacity(this);
    this.#lastBytes = new LastBytes(this.#context, () => this.onEnd());
    this.#lastBytes.wait(false);
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    if (this.#state !== CONNECTING) {
      this.#close(false, 'connection termination', tlsFailureOf(error));
      return;
    }
    this.#state = CLOSED;
    this.#life.connectFailed(error);
    this.#pool.onConnectFailed(this, error);
  }

  onFault(error: unknown): void {
    this.#context.logFault(`the connection to ${this.host.label}`, error);
    this.onClose(null);
  }

  onConnectTimeout(): void {
    this.#state = CLOSED;
    this.#socket.destroy();
    this.#pool.onConnectTimeout(this);
  }

  // ---- From the session ----

  get ends(): ConnectionEnds {
    return this;
  }

  get times(): ConnectionTimes {
    return this.#stats;
  }

  get localEndpoint(): Endpoint {
    return { ip: plainAddress(this.#socket.localAddress ?? ''), port: this.#socket.localPort ?? 0 };
  }

  onDirty(): void {
    this.#context.http2.flushes.add(this);
  }

  flush(): void {
    if (this.#state !== OPEN) return;
    this.#pending.note(this.#session.pendingBytes);
    this.#session.flush();
  }

  write(slab: Buffer, length: number): boolean {
    this.#stats.count(upstream_cx_tx_bytes_total, length);
    const isTaken = this.#socket.write(slab.subarray(0, length));
    if (!isTaken) this.#stats.backedUp(this.#socket.writableLength);
    return isTaken;
  }

  count(stat: number): void {
    this.#stats.count(stat);
  }

  countSession(stat: Http2Stat): void {
    this.#countSession(HTTP2_STATS.index[stat], 1);
  }

  onStreamEnd(): void {
    this.#stats.endRequest();
    this.#countSession(streams_active, -1);
    if (this.#session.streamCount === 0) this.#life.idle(this.#context.clock.monotonicMs());
    this.#pool.onStreamEnd(this);
    this.#closeIfDone();
  }

  onStreamCut(): void {
    this.#stats.cutRequest(true);
    this.#countSession(streams_active, -1);
    this.#pool.onStreamEnd(this);
  }

  onPeerStreams(most: number): void {
    this.host.http2Streams = most;
  }

  onCapacity(): void {
    if (this.#state === OPEN) this.#pool.onCapacity(this);
  }

  onGoaway(): void {
    if (!this.#isLast) this.#stats.count(upstream_cx_close_notify);
    this.#isLast = true;
    this.onCapacity();
    this.#closeIfDone();
  }

  onPong(): void {
    this.#keepalive?.onPong(this.#context.clock.monotonicMs());
  }

  onSessionFault({ reason }: SessionFault): void {
    this.#stats.count(upstream_cx_protocol_error);
    const log = this.#context.logs.http.ofFile(FILE);
    if (log.enabled('debug')) log.debug(`upstream ${this.host.label} broke the protocol: ${reason}`);
    this.flush();
    this.#close(true, 'protocol error', reason);
  }

  // ---- From the pings ----

  sendPing(): void {
    this.#session.ping();
  }

  onPingTimeout(): void {
    this.#countSession(keepalive_timeout, 1);
    this.#close(true, 'connection termination', '');
  }

  // ---- Life ----

  #closeIfDone(): void {
    if (this.#isLast && this.#state === OPEN && this.#session.streamCount === 0) this.close();
  }

  /** @param failure that the streams hear of; null when nobody wants to know. */
  #close(isLocal: boolean, failure: UpstreamFailure | null, detail: string): void {
    if (this.#state === CLOSED) return;
    const lost = this.#session.end();
    for (const _ of lost) this.#stats.cutRequest(isLocal);
    this.#countSession(streams_active, -lost.length);
    this.#state = CLOSED;
    this.#keepalive?.remove();
    this.#lastBytes?.remove();
    this.#pending.note(0);
    this.#life.ended(isLocal);
    this.#socket.destroy();
    this.#pool.onClosed(this, lost.length);
    if (failure !== null) for (const stream of lost) stream.lose(failure, detail);
  }

  #countSession(stat: number, change: number): void {
    this.#context.stats.values[this.host.cluster.http2StatBase + stat]! += change;
  }
}
