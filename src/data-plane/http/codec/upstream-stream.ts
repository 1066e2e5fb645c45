// One request on a connection to an upstream, between its codec and whoever sends it: all that either knows of the other
// (docs/decisions/0040-one-stream-for-every-protocol.md). Step 4 of the request flow.
//
//   sender ──► UpstreamStream      start, send …, resume, abort
//   sender ◄── ResponseReceiver    onResponseHead, onResponseBody …, or onUpstreamReset
//
// Heads wait for connections, and are sent again: they are kept as HTTP/1 text (latin1, request line and fields, whatever
// protocol they came by), which is what a codec gets. For bodies and their framing see downstream-stream.ts.

import type { WireBytes } from '../../format/wire-bytes.ts';
import type { UpstreamFailure } from '../../upstream/pool/failure.ts';
import type { ConnectionEnds } from '../../upstream/upstream-facts.ts';
import type { Trailers } from '../trailers.ts';

/** What a codec provides, from `onStream` of its pool on to the end of the exchange. */
export interface UpstreamStream extends ConnectionEnds {
  /** As logs name it: `HTTP/1.1`. */
  readonly protocol: string;
  /** The request at hand is not the first one of its connection. */
  readonly isReused: boolean;
  /** A GOAWAY has said that nobody has looked at it; its connection takes no more. */
  readonly wasLeftBehind: boolean;
  /** That connection has taken others: the upstream gets on with its work. */
  readonly wereOthersTaken: boolean;
  /** Any byte of the response at hand has arrived. */
  readonly hasResponseBytes: boolean;
  /** Of the request, not taken by the kernel yet. */
  readonly unsentBytes: number;

  /**
   * Sends a request: its head and the first body bytes [start, end), whose memory is given away until drain.
   * @returns false when no more should be sent before `onUpstreamDrain`.
   */
  start(
    receiver: ResponseReceiver,
    method: number,
    head: string,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
  ): boolean;

  /** Sends more of the body; as in `start`. An empty range with `isEnd` only marks the end. */
  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean;

  /** Reads on after the receiver had returned false. */
  resume(): void;

  /**
   * Ends the request at hand without an answer; the receiver hears no more.
   * @param isReset a tunnel is broken off. A request that is cut is seen to be so by its framing.
   */
  abort(isReset: boolean): void;
}

/** What the sender provides. */
export interface ResponseReceiver {
  /** Of the request's body, one of Framing: of its bytes, and of what its head says. */
  readonly requestFraming: number;
  /** Of a request that has ended; its body holds none. Null without any. */
  readonly requestTrailers: Trailers | null;
  /** How much of the response may wait on its way to the client. */
  readonly bufferLimitBytes: number;
  /** Where the codec counts what is on the wire; null where nobody asks. */
  readonly upstreamWire: WireBytes | null;
  /** `:scheme` tells of the connection to the upstream, not of the client's. */
  readonly matchesUpstreamScheme: boolean;
  /** The request has asked for an upgrade, so that a 101 is a final head. */
  readonly awaitsUpgrade: boolean;
  /** The head of an interim response, but none of 101, lies in the codec's table. There may be several, or none. */
  onInterimHead(): void;
  /**
   * The final response head lies in the codec's table, the first body bytes in bytes[start..end).
   * @param isSlab the bytes stay untouched until `resume` when false is returned; otherwise they do not.
   * @returns false when the other side cannot take more for now; `resume` goes on.
   */
  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;
  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;
  /** Trailers of the response that ends with the next call. */
  onResponseTrailers(trailers: Trailers): void;
  /** The exchange is lost, with its connection or alone; nothing else follows. */
  onUpstreamReset(failure: UpstreamFailure, detail: string): void;
  /** What was sent has left; more may be sent. */
  onUpstreamDrain(): void;
}
