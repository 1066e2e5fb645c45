// The terminal filter of a filter chain: it owns the connections that the listener accepts for it.

import type { DownstreamConnection } from './downstream-connection.ts';
import type { Refusal } from './network-filter.ts';

/** When the process ends, a raw connection without bytes for this time has nothing more to say. */
export const QUIET_MS = 250;

/** A client that comes while the process ends has so long for its first bytes, and behind its handshake for its first request. */
export const NEWCOMER_MS = 1000;

/** A stream that holds bytes which wait to be sent or to be used. */
export interface ExpensiveStream {
  readonly heldBytes: number;
  resetExpensive(): void;
}

/** Told of connections that have to be secured, or to pass other filters, before the filter gets them. */
export interface ApproachObserver {
  /** At the beginning of each of both. */
  onBegun(connection: DownstreamConnection): void;
  /** It is closed, and the filter never gets it. */
  onFailed(connection: DownstreamConnection): void;
}

export interface TerminalFilter {
  readonly connectionCount: number;
  /** Nobody where it is absent or null. */
  readonly approaches?: ApproachObserver | null;
  /**
   * Asked when a connection has been accepted and is let in by the filters before this one. One that is let in has a place until
   * `release`, once, when it is over. All are where it is absent.
   */
  admit?(connection: DownstreamConnection): Refusal | null;
  release?(connection: DownstreamConnection): void;
  /**
   * Takes over an accepted connection; whatever becomes of it, `closed` of the connection is called in the end. Runs
   * in the turn of the accept, or in that in which a listener filter has finished with the socket, a handshake is done or a network
   * filter lets it go on: that may be behind `finish`.
   */
  accept(connection: DownstreamConnection): void;
  /** A drain has begun: its connections, where they can be told so, hear of it by and by. None where it is absent. */
  announceDrain?(): void;
  /** Lets what runs finish. @param endsIdle whether the rest is ended, or may begin once more. Idempotent. */
  drain(endsIdle: boolean): void;
  /** The process ends, `drain` has been called: ends also what would go on as long as its peers like, without loss. */
  finish(): void;
  /** Adds the streams that hold `fromBytes` or more. */
  findExpensive(fromBytes: number, found: ExpensiveStream[]): void;
  /** Timeouts that depend on overload may have changed. */
  rescaleTimeouts(): void;
  /** Ends every connection now. */
  destroyConnections(): void;
  /** There are no connections any more, and none will come: gives back what it holds. Once. */
  close(): void;
}
