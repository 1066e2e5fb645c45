// A pool, as the connections see it that it has made.

import type { CircuitBreaker } from '../circuit-breaker.ts';

export interface ConnectionOwner<Connection> {
  /** Under which the connection and its requests have their places. */
  readonly breaker: CircuitBreaker;
  /** What each connection begins with; null for nothing. */
  readonly preamble: Buffer | null;
  onConnected(connection: Connection): void;
  onConnectFailed(connection: Connection, error: NodeJS.ErrnoException | null): void;
  onConnectTimeout(connection: Connection): void;
  /** A request is done, and the connection may carry another in its place. */
  onReusable(connection: Connection): void;
  /** An established connection has ended. */
  onClosed(connection: Connection): void;
}
