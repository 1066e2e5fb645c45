// The upstream half of a proxied TCP connection: one attempt to reach one host, then the bytes.

import type { Socket } from 'node:net';
import type { Address } from '../../base/address.ts';
import { CLUSTER_STATS } from '../../stats/index.ts';
import type { Endpoint } from '../format/facts.ts';
import { BulkReads } from '../network/bulk-reads.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { freeGiven } from '../network/given-memory.ts';
import { LastBytes } from '../network/last-bytes.ts';
import { PausedPeer, type PausedPeerOwner } from '../network/paused-peers.ts';
import { plainAddress } from '../network/peer-address.ts';
import { readLimit } from '../network/shared-reads.ts';
import { SLAB_SIZES, UNKNOWN_LENGTH } from '../network/slab-pool.ts';
import { resetSocket, resumeUpstream } from '../network/socket-events.ts';
import type { TlsFacts } from '../network/tls/connection-tls.ts';
import type { CircuitBreaker } from '../upstream/circuit-breaker.ts';
import { UpstreamConnectionStats } from '../upstream/connection-stats.ts';
import type { Host } from '../upstream/host.ts';
import { connectToHost, type HostConnectionOwner } from '../upstream/host-connection.ts';
import { NO_ALPN } from '../upstream/opening.ts';
import { connectFailure, transportDetail, type UpstreamFailure } from '../upstream/pool/failure.ts';
import type { ConnectionTimes } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { ProxiedUpstream } from './proxied-upstream.ts';

const { upstream_cx_rx_bytes_total, upstream_cx_tx_bytes_total } = CLUSTER_STATS.index;

/** The downstream half, as the upstream half sees it. */
export interface TcpUpstreamOwner {
  /** How much may wait on its way to the client. */
  readonly bufferLimitBytes: number;
  onUpstreamConnected(): void;
  /** The attempt has failed; another may be made. @param transportDetail what the system said of it, or empty. */
  onUpstreamConnectFailed(transportDetail: string, failure: UpstreamFailure): void;
  /** @returns false when no more should come before `resume`; a slab stays untouched until then. */
  onUpstreamBytes(bytes: Buffer, length: number, isSlab: boolean): boolean;
  onUpstreamEnd(): void;
  onUpstreamDrain(): void;
  onUpstreamClosed(error: NodeJS.ErrnoException | null): void;
  /** The host has left its cluster, or that has gone. Of no interest to who ends with its client. */
  onHostLeft?(): void;
}

export class TcpUpstream implements ProxiedUpstream, HostConnectionOwner, PausedPeerOwner {
  readonly host: Host;
  remoteAddress: Address;
  /** Null for a plain connection. */
  tls: TlsFacts | null = null;
  readonly #context: WorkerContext;
  readonly #owner: TcpUpstreamOwner;
  /** Of a host with several addresses, or TLS: a stand-in until the connection is there. */
  #socket: Socket;
  readonly #stats: UpstreamConnectionStats;
  readonly #bulk = new BulkReads();
  #isConnected = false;
  #isClosed = false;
  #isPaused = false;
  /** Null as long as the upstream takes bytes. */
  #lastBytes: LastBytes | null = null;
  /** Null until the upstream has ended its side. */
  #endedPeer: PausedPeer | null = null;
  #slab: Buffer | null = null;
  /** What the kernel has not taken in full. */
  #unsent: Buffer | null = null;

  /** @param breaker for which the caller has acquired a place at the host; it is given back here. @param downstream whose bytes it carries; null for nobody's. */
  constructor(
    context: WorkerContext,
    host: Host,
    owner: TcpUpstreamOwner,
    nowMs: number,
    breaker: CircuitBreaker,
    downstream: DownstreamConnection | null = null,
  ) {
    this.#context = context;
    this.host = host;
    this.#owner = owner;
    this.#stats = new UpstreamConnectionStats(context, host, breaker, nowMs);
    host.addRawConnection(this);
    this.remoteAddress = host.address;
    this.#socket = connectToHost(context, host, this, host.openingFor(downstream), NO_ALPN);
  }

  /** This end of the connection, while it is open; for logs. */
  get localEndpoint(): Endpoint {
    return { ip: plainAddress(this.#socket.localAddress ?? ''), port: this.#socket.localPort ?? 0 };
  }

  get times(): ConnectionTimes {
    return this.#stats;
  }

  get ends(): this {
    return this;
  }

  /** Bytes that the kernel has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** @param bytes given away. @returns false when no more should come before `onUpstreamDrain`. */
  write(bytes: Buffer, length: number): boolean {
    this.#stats.count(upstream_cx_tx_bytes_total, length);
    const isTaken = this.#context.writer.owned(this.#socket, '', bytes, 0, length);
    if (isTaken) return true;
    this.#unsent = bytes;
    this.#stats.backedUp(this.#socket.writableLength);
    return false;
  }

  /** Sends the end of the stream behind what was written. */
  end(): void {
    if (this.#unsent === null) this.#socket.end();
    // Behind an end no `drain` comes.
    else this.#socket.end(() => this.#noteSent());
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#stats.resumedReading();
    this.#lastBytes?.wait(false);
    resumeUpstream(this.#socket);
  }

  noteServed(): void {
    this.host.outlier?.served();
  }

  /** The connect timeout has passed. */
  timeOut(): void {
    this.#stats.connectTimedOut();
    this.host.outlier?.timedOut();
    this.destroy();
    this.#owner.onUpstreamConnectFailed('', 'connection timeout');
  }

  destroy(): void {
    if (this.#isClosed) return;
    this.#leave(true);
    this.#socket.destroy();
  }

  onHostFailed(): void {
    if (this.#isClosed || !this.#isConnected) return;
    this.destroy();
    this.#owner.onUpstreamClosed(null);
  }

  onHostLeft(): void {
    if (!this.#isClosed) this.#owner.onHostLeft?.();
  }

  /** Ends the connection as one that was broken off, at once. */
  reset(): void {
    if (this.#isClosed) return;
    this.#leave(true);
    resetSocket(this.#socket);
  }

  readBuffer(): Buffer {
    return this.#slab ?? this.#sharedBuffer;
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
    if (this.#isClosed) return;
    this.#isConnected = true;
    this.#stats.connected(this.#context.clock.monotonicMs());
    this.host.outlier?.connected();
    this.#owner.onUpstreamConnected();
  }

  onBytes(chunk: Buffer, length: number): boolean {
    if (this.#isClosed) return false;
    this.#stats.count(upstream_cx_rx_bytes_total, length);
    const isSlab = chunk === this.#slab;
    const goesOn = this.#owner.onUpstreamBytes(chunk, length, isSlab);
    if (this.#isClosed) return false;
    this.#isPaused = !goesOn;
    if (!goesOn) this.#stats.pausedReading();
    this.#lastBytes?.wait(this.#isPaused);
    this.#adaptBuffer(chunk, length, isSlab && goesOn);
    return goesOn;
  }

  onEnd(): void {
    if (this.#isClosed) return;
    this.#owner.onUpstreamEnd();
    if (this.#isClosed) return;
    this.#endedPeer = new PausedPeer(this, this.#socket);
    this.#context.pausedPeers.ended(this.#endedPeer);
  }

  /** A reset, but one behind the last byte: nothing of what was received is cut. */
  onPausedPeerGone(): void {
    this.onClose(null);
    this.#socket.destroy();
  }

  onDrain(): void {
    this.#noteSent();
    if (!this.#isClosed) this.#owner.onUpstreamDrain();
  }

  onSendFailed(error: NodeJS.ErrnoException): void {
    if (this.#isClosed) return;
    this.#lastBytes = new LastBytes(this.#context, () => {
      this.onClose(error);
      this.#socket.destroy();
    });
    this.#lastBytes.wait(this.#isPaused);
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    if (this.#isClosed) return;
    this.#leave(false);
    if (this.#isConnected) {
      this.#owner.onUpstreamClosed(error);
      return;
    }
    this.#stats.connectFailed(error);
    this.host.outlier?.failed();
    this.#owner.onUpstreamConnectFailed(transportDetail(error), connectFailure(error));
  }

  onFault(error: unknown): void {
    this.#context.logFault(`the connection to ${this.host.label}`, error);
    this.onClose(new Error('fault', { cause: error }));
  }

  /** The kernel has taken everything. */
  #noteSent(): void {
    if (this.#unsent === null) return;
    freeGiven(this.#unsent);
    this.#unsent = null;
    this.#stats.drained();
  }

  #adaptBuffer(chunk: Buffer, length: number, isSlabFree: boolean): void {
    const shared = this.#sharedBuffer;
    this.#bulk.note(length, Math.min(chunk.length, shared.length));
    if (this.#bulk.isBulk && shared.length >= SLAB_SIZES[0]) {
      this.#slab ??= this.#context.slabs.take(UNKNOWN_LENGTH, this.#bufferLimitBytes);
    } else if (isSlabFree && this.#slab !== null) {
      this.#context.slabs.give(this.#slab);
      this.#slab = null;
    }
  }

  /** How much may wait for the client. */
  get #bufferLimitBytes(): number {
    return Math.min(this.host.cluster.settings.bufferLimitBytes, this.#owner.bufferLimitBytes);
  }

  /** What all connections read through, or the part of it that may wait for the client. */
  get #sharedBuffer(): Buffer {
    const { readBuffer } = this.#context.codec;
    const limitBytes = this.#bufferLimitBytes;
    return limitBytes >= readBuffer.length ? readBuffer : readBuffer.subarray(0, readLimit(limitBytes));
  }

  #leave(isLocal: boolean): void {
    this.#isClosed = true;
    this.#lastBytes?.remove();
    this.#endedPeer?.resume();
    if (this.#slab !== null) this.#context.slabs.forget(this.#slab);
    this.#slab = null;
    this.#stats.closed(isLocal);
    this.host.removeRawConnection(this);
  }
}
