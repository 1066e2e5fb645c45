// A client's connection, between its connection manager and the codec that reads it: all that either knows of the other. A
// connection is made by a row of codecs.ts, of bytes (DownstreamConnection: what is read and written, and what is known of
// both ends) and of a CodecOwner.

import type { HttpConnectionManagerSettings } from '../../../snapshot/index.ts';
import type { HeadLimits } from '../../../wasm/http1.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import type { ExpensiveStream } from '../../network/filter.ts';
import type { Overload } from '../../overload.ts';
import type { LocalReply } from '../local-reply.ts';
import type { ResponseLines } from '../response-edits.ts';
import type { DownstreamStream, RequestReceiver, StreamConnection } from './downstream-stream.ts';

/** What a codec provides. */
export interface ServerConnection {
  readonly downstream: DownstreamConnection;
  /** Of one protocol: what CodecOwner counts in its name. */
  readonly protocol: ConnectionProtocol;
  /** True while a request or the start of one is at hand. */
  readonly isBusy: boolean;
  /** Ends the connection if nothing runs on it; otherwise as soon as that is so, and the client is told as its protocol can. */
  drain(): void;
  /** The process ends: so does a tunnel, as soon as nothing moves. A request ends with its response. */
  finish(): void;
  /** Ends the connection now; what runs on it is broken off. */
  destroy(): void;
  /** Timeouts that depend on overload may have changed. */
  rescaleTimeouts(): void;
  /** Adds the streams that hold `fromBytes` or more. */
  findExpensive(fromBytes: number, found: ExpensiveStream[]): void;
}

export type ConnectionProtocol = 'http1' | 'http2';

/** What a connection manager provides. */
export interface CodecOwner {
  readonly settings: HttpConnectionManagerSettings;
  readonly headLimits: HeadLimits;
  readonly overload: Overload;
  readonly responseLines: ResponseLines;
  /** First cell of HTTP_STATS in this worker's slab. */
  readonly statBase: number;
  /** True when the process ends: tunnels end with their first silence. */
  readonly isFinishing: boolean;

  /**
   * The stream of the request whose head lies in the codec's table; `begin` follows.
   * @param startedMs monotonic times of the head's first byte and of its last.
   */
  newStream(stream: DownstreamStream, startedMs: number, headMs: number): RequestReceiver;

  /**
   * Counts and logs a request that never became a stream, because nothing of it could be read.
   * @param startedMs monotonic, of its first byte.
   * @returns the lines of the answer's head, for `prepareReply`; its body is the reply's.
   */
  refuseRequest(connection: StreamConnection, reply: LocalReply, startedMs: number): string;

  /** Whether the response at hand is the last one of its connection, by a drain or for overload; counted then. Once per response. */
  endsWithResponse(): boolean;

  /** Whether a drain ends a connection after a response that has not said so; counted then. */
  endsBetweenRequests(): boolean;

  onConnectionClosed(connection: ServerConnection, isLocal: boolean, hadStream: boolean): void;
}
