// Who a request to an upstream is sent for: the stream itself, or, where one attempt may not be enough, what stands
// between the stream and its attempts.

import type { Trailers } from '../http/trailers.ts';
import type { Host } from '../upstream/host.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';

export interface AttemptClient {
  /** Method of the request. */
  readonly methodId: number;
  readonly isInternal: boolean;
  /** How much of the response may wait on its way to the client. */
  readonly bufferLimitBytes: number;
  /** The request wants a tunnel, and has had no answer yet. */
  readonly awaitsTunnel: boolean;
  /** A 101 may be the answer. */
  readonly awaitsUpgrade: boolean;
  /** The request has arrived in full, and when: monotonic. */
  readonly isRequestComplete: boolean;
  readonly requestCompleteMs: number;
  /** Of a request whose end comes with this call; its body holds none. */
  readonly requestTrailers: Trailers | null;
  /** Of a response whose end comes with the next call. */
  responseTrailers: Trailers | null;

  /** An attempt goes to this host. @param attempts counts from 1. */
  onUpstreamHost(host: Host, attempts: number): void;

  /** The request goes out, with this head. */
  onUpstreamConnection(connection: ConnectionEnds, head: string): void;

  /** More of the request's body may come. */
  onUpstreamWritable(): void;

  /** The response head lies in the codec. @returns false when no more should come before `resumeResponse`. */
  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean;
  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;

  // One of these ends the attempt.
  onNoHealthyUpstream(): void;
  onUpstreamFailure(failure: UpstreamFailure, transport: string, wasRetried: boolean): void;
}
