// A client's connection, between its connection manager and the codec that reads it: all that either knows of the other.
// What is read and written, and what is known of both ends, is the DownstreamConnection's. Step 2 of the request flow.

import type { HttpConnectionManagerSettings } from '../../../snapshot/index.ts';
import type { HeadLimits } from '../../../wasm/http1.ts';
import type { ExpensiveStream } from '../../network/terminal-filter.ts';
import type { Overload } from '../../overload.ts';
import type { InternalAddresses } from '../internal-addresses.ts';
import type { LocalReply } from '../local-reply.ts';
import type { ResponseLines } from '../response-edits.ts';
import type { DownstreamStream, RequestReceiver } from './downstream-stream.ts';
import type { StreamConnection } from './stream-connection.ts';

/** What a codec provides. */
export interface ServerConnection {
  readonly connection: StreamConnection;
  /** In whose name the connection counts; null before anybody knows. */
  readonly codec: CodecName | null;
  /** True while a request or the start of one is at hand. */
  readonly isBusy: boolean;
  /** Ends the connection if nothing runs on it; otherwise as soon as that is so, and the client is told as its protocol can. */
  drain(): void;
  /** Has the client told within this time that the connection ends, if it can be told before its next response. */
  drainWithin(timeoutMs: number): void;
  /** One that comes while the process ends: a request begins within this time, or it ends. */
  expectSoon(timeoutMs: number): void;
  /** The process ends: so does a tunnel, as soon as nothing moves. A request ends with its response. */
  finish(): void;
  /** Ends the connection now; what runs on it is broken off. */
  destroy(): void;
  /** Timeouts that depend on overload may have changed. */
  rescaleTimeouts(): void;
  /** Adds the streams that hold `fromBytes` or more. */
  findExpensive(fromBytes: number, found: ExpensiveStream[]): void;
}

/** Those that there are. */
export type CodecName = 'http1' | 'http2';

/** The answer to what never became a stream. */
export interface Refusal {
  /** Of its head, without the empty one behind them. */
  readonly lines: string;
  readonly body: Buffer;
}

/** What a connection manager provides. */
export interface CodecOwner {
  readonly settings: HttpConnectionManagerSettings;
  readonly headLimits: HeadLimits;
  readonly overload: Overload;
  readonly responseLines: ResponseLines;
  readonly internalAddresses: InternalAddresses;
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
   */
  refuseRequest(connection: StreamConnection, reply: LocalReply, protocol: string, startedMs: number): Refusal;

  /** Whether the response at hand is the last one of its connection, by a drain or for overload; counted then. Once per response. */
  endsWithResponse(): boolean;

  /** Whether a drain ends a connection after a response that has not said so; counted then. */
  endsBetweenRequests(): boolean;

  /** A connection is told of a drain without a response. */
  onDrainNotice(): void;

  /** The connection has turned out to be one of its `codec`. */
  onCodecKnown(connection: ServerConnection): void;

  /**
   * What a connection of no known codec has brought is no HTTP/1: perhaps it is the beginning of HTTP/2, which takes it over
   * then, with these bytes.
   */
  takeOver(connection: ServerConnection, bytes: Buffer): boolean;

  onConnectionClosed(connection: ServerConnection, isLocal: boolean, hadStream: boolean): void;
}
