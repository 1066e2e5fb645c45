// One exchange on a client's connection, between its codec and the HTTP stream that it belongs to: all that either knows of
// the other. Codecs own framing, the fields of a connection, its deadlines, and the form of a head
// (docs/decisions/0040-one-stream-for-every-protocol.md). Steps 2, 3 and 5 of the request flow.
//
//   codec ──► RequestReceiver     begin, onRequestBody …, drain, deadlines, the end of the connection
//   codec ◄── DownstreamStream    prepareHead, writeHead, writeBody …, endStream or resetStream
//
// A body is bytes[start..end) of a buffer, and its framing is one of Framing: of the head in the codec's table when it
// comes, and told with prepareHead when it goes. The bytes are those of the body itself but for Framing.CHUNKED, the fast
// path of bodies that pass from HTTP/1 to HTTP/1 as they came: they hold chunks that a codec has checked. Whoever does not
// write chunks takes them off (chunk-framing.ts). Trailers never are among the bytes.

import type { WireBytes } from '../../format/wire-bytes.ts';
import { ResponseFlag } from '../../response-flags.ts';
import type { StreamLimit } from '../stream-limits.ts';
import type { Trailers } from '../trailers.ts';
import type { StreamConnection } from './stream-connection.ts';

/** Of the stream at hand. */
export interface StreamDeadlines {
  /** Of a client that takes nothing of a response that is over; 0 for any time. The connection manager's until another is set. */
  flushTimeoutMs: number;
  /** Lets a limit pass at this time, unless another does before. */
  limitStream(limit: StreamLimit, atMs: number): void;
  /** There are no limits any more. */
  clearLimits(): void;
  /** Replaces the time after which the stream counts as idle; 0 for never. */
  setStreamIdleTimeout(timeoutMs: number, nowMs: number): void;
}

/** What was written of a response, for those who asked. */
export interface ResponseNotes {
  /** @param head in its kept form: HTTP/1 text, latin1, whatever was sent. */
  noteResponse(head: string, bodyBytes: number, nowMs: number): void;
}

/** Why a stream is broken off, as far as a protocol can say so. */
export const ResetReason = {
  /** Its response cannot be finished. */
  internal: 0,
  /** Nobody wants the rest of it. */
  cancelled: 1,
  /** It took more than there is. */
  overload: 2,
  /** Its upstream has broken it off. What was sent before is still the client's. */
  upstream: 3,
  /** Its request is not what it should be. */
  malformed: 4,
} as const;
export type ResetReason = (typeof ResetReason)[keyof typeof ResetReason];

/** How a stream has ended before its response did. */
export interface StreamLoss {
  /** This side has ended it. */
  readonly isLocal: boolean;
  /** It was broken off: so is what its tunnel leads to. */
  readonly isReset: boolean;
  /** Bit of ResponseFlag. */
  readonly flag: number;
  readonly details: string;
}

/** The stream's connection has ended under it. The flag names no side, the details do. */
export function connectionLoss(isLocal: boolean, isReset: boolean): StreamLoss {
  const details = isLocal ? 'downstream_local_disconnect' : 'downstream_remote_disconnect';
  return { isLocal, isReset, flag: ResponseFlag.DC, details };
}

/** What a codec provides. */
export interface DownstreamStream {
  /** That it came by. */
  readonly connection: StreamConnection;
  readonly deadlines: StreamDeadlines;
  /** As logs name it: `HTTP/1.1`. */
  readonly protocol: string;
  /** All of the request has arrived, as far as its protocol frames it. */
  readonly isMessageDone: boolean;
  /** The client can have trailers behind the response whose head is prepared. */
  readonly takesTrailers: boolean;
  /** Of the response that ends with the next call. */
  set responseTrailers(trailers: Trailers);

  /** Sends an interim 100. */
  writeContinue(): void;

  /** Sends the head of an interim response, which lies in the codec's table. @returns false when this client gets none. */
  writeInterim(): boolean;

  /**
   * The response's head lies in the codec's table with all edits. Adds what belongs to this connection and writes it down.
   * Once per response, and followed by `writeHead`.
   * @param framing of the body's bytes, one of Framing.
   * @param isEnd there will be no body but what comes with the head.
   * @param isNoted somebody asks for what is sent: `writeHead` gets notes.
   * @returns 0, or a negative code for codecError(): such a head cannot be sent, and another answer may take its place.
   */
  prepareHead(framing: number, isEnd: boolean, isNoted: boolean): number;

  /**
   * Sends the prepared head and the first body bytes, which are borrowed.
   * @param notes null when nobody asks.
   * @returns false when no more should come before `onDownstreamDrain`.
   */
  writeHead(
    notes: ResponseNotes | null,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    nowMs: number,
  ): boolean;

  /**
   * Sends more of the body.
   * @param isPinnable the bytes stay untouched until `onDownstreamDrain` when false is returned; otherwise they do not.
   */
  writeBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean;

  /**
   * Completes the head of a reply of the proxy's own, which comes whole: adds what belongs to this connection.
   * @param lines status line and fields of the kept form, each with its line end.
   * @param isLast nothing may follow it on a connection that carries one message after the other. @returns the kept form.
   */
  prepareReply(lines: string, isLast: boolean): string;

  /** Sends a reply with a head that `prepareReply` has made. */
  writeReply(head: string, body: Buffer): void;

  /** The response is complete. A request that is not has no reader any more: what comes of it is thrown away. */
  endStream(nowMs: number): void;

  /** Breaks off a response that has begun and cannot be finished. */
  resetStream(reason: ResetReason): void;

  /** The stream can take request bytes again. */
  resumeRequest(): void;

  /** The request at hand asks for a tunnel: bytes behind it wait for the answer, and are never taken for a request. */
  awaitTunnel(): void;

  /** The response that was written opens the tunnel: what comes from now on is body without framing. */
  openTunnel(): void;

  /**
   * There will be no tunnel.
   * @returns whether the request has thereby come to its end.
   */
  refuseTunnel(): boolean;
}

/** What an HTTP stream provides, once its codec has a request head. */
export interface RequestReceiver {
  /** All of the request has arrived, what its tunnel carries included. */
  readonly isRequestComplete: boolean;
  /** Of both bodies, beside what the connection itself holds. */
  readonly heldBytes: number;
  /** Where the codec counts what is on the wire; null where nobody asks. */
  readonly downstreamWire: WireBytes | null;
  /** Of the request that ends with the next call; its body holds none. */
  requestTrailers: Trailers | null;

  /**
   * The head lies in the codec's table; the first body bytes, in bytes[start..end), are given away.
   * @returns false when no more of the body should come before `resumeRequest`.
   */
  begin(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean;

  /** More of the body; the same rules. */
  onRequestBody(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean;

  /** What was written has left. */
  onDownstreamDrain(): void;

  /** The request's body broke its protocol; nothing after it can be read. */
  onProtocolViolation(status: number, reason: string): void;

  /** The stream is lost, with its connection or alone. Nothing else follows. */
  onDownstreamGone(loss: StreamLoss): void;

  // Deadlines that have passed.
  onLimit(limit: StreamLimit): void;
  onRequestTimeout(): void;
  onIdleTimeout(): void;

  /** It holds too much of what is scarce. */
  onTooExpensive(): void;

  /** By order of the overload manager nothing of the client is read any more. */
  onDispatchAborted(): void;
}
