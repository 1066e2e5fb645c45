// A connection to a host that says by ALPN which protocol it speaks: until the handshake is done nobody knows how many streams it
// will take. Step 4 of the request flow.
//
//   CONNECTING ──handshake done──► its codec takes its place in the pool, socket and life included
//       └──failed, timeout──► over
//
// What the host chose last is expected of its next connections; before it has chosen, HTTP/2. A server that names nothing
// speaks HTTP/1.1 (docs/decisions/0052-protocols-by-alpn.md).

import type { Socket } from 'node:net';
import type { Address } from '../../../base/address.ts';
import type { Http2Settings } from '../../../snapshot/index.ts';
import { Http1ClientConnection } from '../../http/codec/http1/client-connection.ts';
import { Http2ClientConnection } from '../../http/codec/http2/client-connection.ts';
import { likelyStreams } from '../../http/codec/http2/client-session.ts';
import type { UpstreamStream } from '../../http/codec/upstream-stream.ts';
import type { UpstreamSocketOwner } from '../../network/socket-events.ts';
import type { TlsFacts } from '../../network/tls/connection-tls.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { type AttemptsOwner, attemptConnection } from '../host-connection.ts';
import { EITHER_ALPN } from '../opening.ts';
import { ConnectionLife, type LifeOwner } from './connection-life.ts';
import type { ConnectionOwner, PooledConnection } from './connection-owner.ts';
import type { PoolHost } from './pool-host.ts';

export class NegotiatedConnection implements PooledConnection, AttemptsOwner, LifeOwner {
  readonly freeStreams = 0;
  isReady = false;
  expected = 0;
  readonly #context: WorkerContext;
  readonly #host: PoolHost;
  readonly #pool: ConnectionOwner;
  readonly #http2: Http2Settings;
  readonly #life: ConnectionLife;
  /** Stands in for the one that is secured. */
  readonly #standIn: Socket;
  #isOver = false;

  constructor(context: WorkerContext, host: PoolHost, pool: ConnectionOwner, http2: Http2Settings) {
    this.#context = context;
    this.#host = host;
    this.#pool = pool;
    this.#http2 = http2;
    this.#standIn = attemptConnection(context, host, this, pool.opening, EITHER_ALPN);
    this.#life = new ConnectionLife(context, host, pool.breaker, this);
  }

  // ---- From the pool ----

  get comingStreams(): number {
    if (!this.#host.choosesHttp2) return 1;
    const { maxRequestsPerConnection } = this.#host.cluster.settings;
    const likely = likelyStreams(this.#http2, this.#host.http2Streams);
    return Math.min(likely, maxRequestsPerConnection || Number.MAX_SAFE_INTEGER);
  }

  openStream(): UpstreamStream {
    throw new Error('a connection without a protocol has no streams');
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#life.ended(true);
    this.#standIn.destroy();
    this.#pool.onClosed(this, 0);
  }

  closeAfterStreams(): void {
    // As any that connects, it goes on.
  }

  // ---- From the attempt ----

  readBuffer(): Buffer {
    return this.#context.codec.readBuffer;
  }

  onFurtherAttempt(): void {
    this.#life.stats.attemptedAgain();
  }

  onChosen(socket: Socket, address: Address, tls: TlsFacts | null): UpstreamSocketOwner {
    this.#isOver = true;
    this.#host.choosesHttp2 = tls?.protocol === 'h2';
    const begun = { life: this.#life, socket };
    const codec = this.#host.choosesHttp2
      ? new Http2ClientConnection(this.#context, this.#host, this.#pool, this.#http2, begun)
      : new Http1ClientConnection(this.#context, this.#host, this.#pool, begun);
    this.#pool.onReplaced(this, codec);
    return codec.onChosen(socket, address, tls);
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#life.connectFailed(error);
    this.#pool.onConnectFailed(this, error);
  }

  onFault(error: unknown): void {
    this.#context.logFault(`the connection to ${this.#host.label}`, error);
    this.onClose(null);
  }

  // ---- From its life ----

  onConnectTimeout(): void {
    this.#isOver = true;
    this.#standIn.destroy();
    this.#pool.onConnectTimeout(this);
  }
}
