// The connections of one host that requests of one routing priority share, as requests and hosts see
// them: stream-pool.ts, and what tests put in its place.

import type { UpstreamStream } from '../../http/codec/upstream-stream.ts';
import type { PoolFailure } from './failure.ts';
import type { DrainablePool } from './host-pools.ts';

/** A request that wants a stream; it is told one of both, perhaps before `newStream` returns. */
export interface PoolClient {
  /** The stream is the client's, which starts it at once. */
  onStream(stream: UpstreamStream): void;
  onPoolFailure(failure: PoolFailure, transportDetail: string): void;
}

export interface ConnectionPool extends DrainablePool {
  /**
   * Gives the client a stream now, later, or tells why not.
   * @param isAgain it has had one already, whose upstream did not look at its request: it waits before those that are new.
   */
  newStream(client: PoolClient, isAgain?: boolean): void;

  /** Takes back a request that still waits; returns false when it does not. */
  cancel(client: PoolClient): boolean;

  /** Opens a connection for a request that is expected, unless there are enough. @returns whether one was opened. */
  openForNext(ratio: number): boolean;
}
