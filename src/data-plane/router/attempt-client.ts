// Who a request to an upstream is sent for: the stream itself, or, where one attempt may not be enough, what stands
// between the stream and its attempts.

import type { WireBytes } from '../format/wire-bytes.ts';
import type { UpstreamLimit } from '../http/stream-limits.ts';
import type { Trailers } from '../http/trailers.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { RequestTally } from '../route/request-tally.ts';
import type { AttemptTrace } from '../tracing/attempt-trace.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';
import type { OverrideHost } from '../upstream/override-hosts.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { AttemptEntry } from './attempt-entry.ts';

/** What becomes of a response whose head has come. */
export const Verdict = {
  /** It goes on to the client of the request. */
  pass: 0,
  /** Nobody gets it, because the request is tried again. */
  retried: 1,
  /** Nobody gets it, because another attempt may bring a better one. */
  dropped: 2,
  /** Nobody gets it, because the request goes where it leads. */
  followed: 3,
} as const;
export type Verdict = (typeof Verdict)[keyof typeof Verdict];

export interface AttemptClient {
  /** Method of the request. */
  readonly methodId: number;
  /** It is one of gRPC. */
  readonly isGrpc: boolean;
  readonly isInternal: boolean;
  /** Where the request is counted beside its cluster; null for nowhere. */
  readonly tally: RequestTally | null;
  /** Whom it is sent for; null for nobody. */
  readonly downstream: DownstreamConnection | null;
  /** The host that a filter wants for this attempt; null where none does. */
  readonly overrideHost: OverrideHost | null;
  /** For the whole response, and for one attempt; 0 for any time. */
  readonly timeoutMs: number;
  readonly perTryTimeoutMs: number;
  /** How much of the response may wait on its way to the client. */
  readonly bufferLimitBytes: number;
  /** The request wants a tunnel, and has had no answer yet. */
  readonly awaitsTunnel: boolean;
  /** Where the bytes of its attempts are counted; null where nobody asks. */
  readonly upstreamWire: WireBytes | null;
  /** `:scheme` tells of the connection to the upstream, not of the client's. */
  readonly matchesUpstreamScheme: boolean;
  /** A 101 may be the answer. */
  readonly awaitsUpgrade: boolean;
  /** The request has arrived in full, and when: monotonic. */
  readonly isRequestComplete: boolean;
  readonly requestCompleteMs: number;
  /** Of the request's body, one of Framing. */
  readonly requestFraming: number;
  /** Of a request that has ended; its body holds none. */
  readonly requestTrailers: Trailers | null;
  /** Of a response whose end comes with the next call. */
  responseTrailers: Trailers | null;

  /** An attempt goes to this host. @param attempts counts from 1. */
  onUpstreamHost(host: Host, attempts: number): void;

  /** The request goes out, with this head. */
  onUpstreamConnection(connection: ConnectionEnds, head: string): void;

  /** The span of an attempt that begins; null where attempts have none. @param number counts from 1. */
  traceAttempt(cluster: Cluster, number: number): AttemptTrace | null;

  /** The entry of an attempt that begins; null where attempts are not logged. */
  logAttempt(): AttemptEntry | null;

  /** More of the request's body may come. */
  onUpstreamWritable(): void;

  /** The head of an interim response lies in the codec. @returns whether the client gets it, which binds it to this attempt. */
  onInterimHead(): boolean;

  /** The response head lies in the codec, and nobody has counted it. What does not pass ends the attempt. */
  judgeResponse(): Verdict;

  /** The response head lies in the codec. @returns false when no more should come before `resumeResponse`. */
  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean;
  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;

  // One of these ends the attempt.
  /** @param isUnresolved it has a name without an address. */
  onNoHealthyUpstream(isUnresolved: boolean): void;
  onUpstreamFailure(failure: UpstreamFailure, transport: string, wasRetried: boolean): void;
}

/** The stream that a request belongs to, as those see it who may make several attempts. */
export interface RequestClient extends AttemptClient {
  /** Bits of ResponseFlag. */
  flags: number;
  /** A retry goes to another cluster: the first one has been replaced. */
  useCluster(cluster: Cluster): void;
  /** No further attempt is made because this limit of the last one has passed. */
  onTryLimit(limit: UpstreamLimit): void;
  /** More of the body has come than is kept for a retry, and there is no attempt that takes it. */
  onReplayAbandoned(): void;
}
