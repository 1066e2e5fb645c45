// What a stream needs of the connection that it came by. Streams, router and statistics know no more of the
// downstream protocol than this.

import type { DownstreamFacts } from '../format/facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { BodyMode } from './codec/http1/response-writer.ts';
import type { StreamLimit } from './stream-limits.ts';

/** Of the stream at hand. */
export interface StreamDeadlines {
  /** Lets a limit pass at this time, unless another does before. */
  limitStream(limit: StreamLimit, atMs: number): void;
  /** There are no limits any more. */
  clearLimits(): void;
  /** Replaces the time after which the stream counts as idle; 0 for never. */
  setStreamIdleTimeout(timeoutMs: number, nowMs: number): void;
}

export interface DownstreamCodec {
  readonly downstream: DownstreamConnection;
  /** Soft bound of what waits to be sent to the client; in steps of a read. */
  readonly bufferLimitBytes: number;
  /** Peer's address without port; an IPv4 one in its own notation also when it came by IPv6. Empty for a pipe. */
  readonly peerAddress: string;
  /** True when the peer's address is one of a private network. */
  readonly isPeerInternal: boolean;
  /** What x-forwarded-for says of the peer. */
  readonly forwardedAddress: string;
  /** The connection, for logs and header values; made at the first question. */
  readonly facts: DownstreamFacts;
  readonly deadlines: StreamDeadlines;

  /** Sends an interim 100. */
  writeContinue(): void;

  /**
   * Sends a response head with the first body bytes; `mustClose` says that the head announced the end of the
   * connection. @returns false when no more should come before `onDownstreamDrain`.
   */
  writeHead(
    head: string,
    mode: BodyMode,
    mustClose: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
  ): boolean;

  /** Sends more of the body; see ResponseWriter.write for `isPinnable`. */
  writeBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean;

  /** The response is complete. A request that is not ends its connection: what comes of it is thrown away. */
  endStream(nowMs: number): void;

  /** Breaks off a response that has begun and cannot be finished. */
  resetStream(): void;

  /** The stream can take request bytes again. */
  resumeRequest(): void;

  /** The request at hand asks for a tunnel: bytes behind it wait for the answer, and are never taken for a request. */
  awaitTunnel(): void;

  /** The response that was written opens the tunnel: what comes from now on is body without framing. */
  openTunnel(): void;

  /**
   * There will be no tunnel.
   * @returns false when bytes have come that must not be taken for a request: the response has to be the last one.
   */
  refuseTunnel(): boolean;

  /** The request has arrived in full, as far as HTTP frames it. */
  readonly isMessageDone: boolean;
}
