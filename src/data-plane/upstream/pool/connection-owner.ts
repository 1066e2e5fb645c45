// What a pool and the connections that it has made know of each other, whatever their protocol.

import type { UpstreamStream } from '../../http/codec/upstream-stream.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';
import type { Opening } from '../opening.ts';
import type { PoolHost } from './pool-host.ts';

/** What a codec provides. */
export interface PooledConnection {
  /** Streams that it takes now; 0 before it is connected. */
  readonly freeStreams: number;
  /** Streams beside those that it will take when it is connected, or knows more of its peer. */
  readonly comingStreams: number;
  /** Kept by the pool: whether it is among those that take streams, and how many it takes, now or later. */
  isReady: boolean;
  expected: number;

  /** One of the streams that it takes; whoever gets it starts it at once. */
  openStream(): UpstreamStream;
  /** Ends it with what it carries. */
  close(): void;
  /** Takes no further streams: closes now if it carries none, otherwise after them. One that connects may go on. */
  closeAfterStreams(): void;
}

/** What the pool provides. */
export interface ConnectionOwner {
  /** Under which the connection and its requests have their places. */
  readonly breaker: CircuitBreaker;
  /** How each connection begins. */
  readonly opening: Opening;
  /** Another connection, which is just coming about, is what this one has become. */
  onReplaced(connection: PooledConnection, by: PooledConnection): void;
  onConnected(connection: PooledConnection): void;
  onConnectFailed(connection: PooledConnection, error: NodeJS.ErrnoException | null): void;
  onConnectTimeout(connection: PooledConnection): void;
  /** A stream is done, and its connection may carry another in its place. */
  onStreamEnd(connection: PooledConnection): void;
  /** The streams that it takes, now or later, have become other ones. */
  onCapacity(connection: PooledConnection): void;
  /** An established connection has ended. @param lostStreams that it carried to the last. */
  onClosed(connection: PooledConnection, lostStreams: number): void;
}

/** Begins to connect. */
export type OpenConnection = (context: WorkerContext, host: PoolHost, owner: ConnectionOwner) => PooledConnection;
