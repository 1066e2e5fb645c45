// The facts of one stream, or of one raw connection, as they come in. Made only where a log or a header value will ask
// for them; whoever runs the stream writes the fields at the places where things happen.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Metadata, MetadataSource, Moment } from '../../snapshot/index.ts';
import { NO_FLAGS } from '../response-flags.ts';
import type { DownstreamFacts, Endpoint, FormatFacts, IngressFacts, UpstreamFacts } from './facts.ts';
import { HeadText } from './head-text.ts';
import type { WireBytes } from './wire-bytes.ts';

/** Which event an entry is written for, as the reference names them. */
export type AccessLogType =
  | 'NotSet'
  | 'DownstreamEnd'
  | 'DownstreamStart'
  | 'DownstreamPeriodic'
  | 'DownstreamTunnelSuccessfullyEstablished'
  | 'UpstreamPoolReady'
  | 'UpstreamPeriodic'
  | 'UpstreamEnd'
  | 'TcpConnectionStart'
  | 'TcpUpstreamConnected'
  | 'TcpPeriodic'
  | 'TcpConnectionEnd'
  | 'UdpSessionEnd';

/** Where a request stands in its trace. */
interface TracePlace {
  readonly traceId: string;
  readonly spanId: string;
}

/** Headers that are still where they were parsed; asked while that lasts. */
export interface LiveHead {
  requestHeader(name: string): string | undefined;
}

/** The fields behind a response's body, in latin1. */
interface SentTrailers {
  get(name: string): string | undefined;
  /** Their lines. */
  text(): string;
}

/** A response head while its fields can still change. Several fields of a name are joined. */
export interface LiveResponse {
  headerByName(name: string): string | undefined;
}

/** A connection as network filters leave it. */
interface FilteredFacts {
  readonly metadata: Metadata | null;
  readonly terminationDetails: string;
  readonly terminationFlags: number;
}

export const NOT_YET = -1;

export class StreamFacts implements FormatFacts {
  readonly downstream: DownstreamFacts;
  /** Null where it is the connection's. */
  clientByHops: Endpoint | null = null;
  accessLogType: AccessLogType;
  readonly ingress: IngressFacts;
  readonly startTimeMs: number;
  protocol = '';
  isGrpc = false;
  grpcTrailer: string | undefined = undefined;
  status = 0;
  details = '';
  connectionTerminationDetails = '';
  flags = NO_FLAGS;
  localReplyBody: string | undefined = undefined;
  bytesReceived = 0;
  bytesSent = 0;
  upstream: UpstreamFacts | null = null;
  /** Of attempts before the last; null as long as there is but one. */
  #earlier: UpstreamFacts[] | null = null;
  routeName = '';
  virtualHostName = '';
  virtualClusterName = '';
  upstreamCluster = '';
  routeMetadata: Metadata | undefined = undefined;
  virtualHostMetadata: Metadata | undefined = undefined;
  clusterMetadata: Metadata | undefined = undefined;
  dynamicMetadata: Metadata | undefined = undefined;
  /** What filters have said of the request; null for nothing. */
  requestState: { get(key: string): string | undefined } | null = null;
  attempts = 0;
  /** Null without a trace. */
  tracePlace: TracePlace | null = null;
  upstreamTransportFailure = '';
  isHealthCheck = false;
  /** Monotonic times of the moments in FormatFacts; negative before they come. */
  requestEndMs = NOT_YET;
  requestSentMs = NOT_YET;
  responseStartMs = NOT_YET;
  poolReadyDurationMs = NOT_YET;
  /** Those that only COMMON_DURATION tells of. */
  upstreamStartMs = NOT_YET;
  bodyStartMs = NOT_YET;
  responseEndMs = NOT_YET;
  answerStartMs = NOT_YET;
  answerEndMs = NOT_YET;
  downstreamWire: WireBytes | null = null;
  upstreamWire: WireBytes | null = null;
  endMs = NOT_YET;
  /** Heads as written, with their final empty line; empty for one that never was. */
  requestHead = '';
  responseHead = '';
  /** Those that the client was sent. */
  responseTrailers: SentTrailers | null = null;
  /** Where to look for request headers while there is no written head. */
  liveHead: LiveHead | null = null;
  /** Where to look for response headers while there is no written head. */
  liveResponse: LiveResponse | null = null;
  readonly #clock: Clock;
  readonly #startMs: number;
  #streamId = '';
  #hostMs = NOT_YET;
  #request: HeadText | null = null;
  #response: HeadText | null = null;

  /** @param startMs monotonic. */
  constructor(
    clock: Clock,
    startMs: number,
    downstream: DownstreamFacts,
    accessLogType: AccessLogType,
    ingress: IngressFacts,
  ) {
    this.#clock = clock;
    this.#startMs = startMs;
    this.downstream = downstream;
    this.accessLogType = accessLogType;
    this.ingress = ingress;
    this.startTimeMs = clock.wallMs() - (clock.monotonicMs() - startMs);
  }

  /** A host has been chosen for another attempt, whose connection is to be waited for. @param upstream what there is of it. */
  noteHostChosen(upstream: UpstreamFacts): void {
    if (this.upstream !== null) {
      this.#earlier ??= [];
      this.#earlier.push(this.upstream);
    }
    this.upstream = upstream;
    this.#hostMs = this.#clock.monotonicMs();
    this.poolReadyDurationMs = NOT_YET;
  }

  /** The connection is there. */
  noteConnectionReady(nowMs: number): void {
    if (this.#hostMs !== NOT_YET) this.poolReadyDurationMs = Math.trunc(nowMs - this.#hostMs);
  }

  /** What filters have said of a connection without requests, and why one has ended it. */
  noteFiltered({ metadata, terminationDetails, terminationFlags }: FilteredFacts): void {
    if (metadata !== null) this.dynamicMetadata = metadata;
    if (terminationDetails !== '') this.connectionTerminationDetails = terminationDetails;
    this.flags |= terminationFlags;
  }

  get attempted(): readonly UpstreamFacts[] {
    const earlier = this.#earlier ?? [];
    return this.upstream === null ? earlier : [...earlier, this.upstream];
  }

  get client(): Endpoint {
    return this.clientByHops ?? this.downstream.remote;
  }

  get emitTimeMs(): number {
    return this.#clock.wallMs();
  }

  get durationMs(): number {
    return this.#since(this.endMs);
  }

  get requestDurationMs(): number {
    return this.#since(this.requestEndMs);
  }

  get requestTxDurationMs(): number {
    return this.#since(this.requestSentMs);
  }

  get responseDurationMs(): number {
    return this.#since(this.responseStartMs);
  }

  get responseTxDurationMs(): number {
    if (this.endMs < 0 || this.responseStartMs < 0) return NOT_YET;
    return Math.trunc(this.endMs - this.responseStartMs);
  }

  /** The request's own identifier, which it shares with traces, or a new one. */
  get streamId(): string {
    if (this.#streamId === '') this.#streamId = this.requestHeader('x-request-id') ?? randomUUID();
    return this.#streamId;
  }

  get traceId(): string {
    return this.tracePlace?.traceId ?? '';
  }

  get spanId(): string {
    return this.tracePlace?.spanId ?? '';
  }

  get requestHeadersBytes(): number {
    return this.requestHead.length;
  }

  get responseHeadersBytes(): number {
    return this.responseHead.length;
  }

  get responseTrailersBytes(): number {
    return this.responseTrailers?.text().length ?? 0;
  }

  metadata(source: MetadataSource): Metadata | undefined {
    switch (source) {
      case 'CLUSTER':
        return this.clusterMetadata;
      case 'DYNAMIC':
        return this.dynamicMetadata;
      case 'LISTENER':
        return this.ingress.listenerMetadata;
      case 'LISTENER_FILTER_CHAIN':
        return this.ingress.chainMetadata;
      case 'ROUTE':
        return this.routeMetadata;
      case 'UPSTREAM_HOST':
        return this.upstream?.metadata;
      case 'VIRTUAL_HOST':
        return this.virtualHostMetadata;
    }
  }

  moment(name: Moment): number {
    switch (name) {
      case 'DS_CX_BEG':
        return this.downstream.startMs;
      case 'DS_HS_END':
        return this.downstream.securedMs;
      case 'DS_RX_BEG':
        return this.#startMs;
      case 'DS_RX_END':
        return this.requestEndMs;
      case 'US_CX_BEG':
        return this.upstream?.openedMs ?? NOT_YET;
      case 'US_CX_END':
        return this.upstream?.connectedMs ?? NOT_YET;
      case 'US_HS_END':
        return this.upstream?.securedMs ?? NOT_YET;
      case 'US_TX_BEG':
        return this.upstreamStartMs;
      case 'US_TX_END':
        return this.requestSentMs;
      case 'US_RX_BEG':
        return this.responseStartMs;
      case 'US_RX_BODY_BEG':
        return this.bodyStartMs;
      case 'US_RX_END':
        return this.responseEndMs;
      case 'DS_TX_BEG':
        return this.answerStartMs;
      case 'DS_TX_END':
        return this.answerEndMs;
    }
  }

  state(key: string): string | undefined {
    return this.requestState?.get(key) ?? this.downstream.state(key);
  }

  requestHeader(name: string): string | undefined {
    if (this.requestHead === '') return this.liveHead?.requestHeader(name);
    if (this.#request?.text !== this.requestHead) this.#request = new HeadText(this.requestHead);
    const head = this.#request;
    switch (name) {
      case ':method':
        return head.startWord(0);
      case ':path':
        return head.startWord(1);
      case ':authority':
        return head.header('host');
      case ':scheme':
        return head.header('x-forwarded-proto');
      default:
        return head.header(name);
    }
  }

  responseHeader(name: string): string | undefined {
    if (this.responseHead === '' && this.liveResponse === null) return undefined;
    if (name === ':status') return String(this.status);
    if (this.liveResponse !== null) return this.liveResponse.headerByName(name);
    if (this.#response?.text !== this.responseHead) this.#response = new HeadText(this.responseHead);
    return this.#response.header(name);
  }

  responseTrailer(name: string): string | undefined {
    return this.responseTrailers?.get(name);
  }

  #since(momentMs: number): number {
    return momentMs < 0 ? NOT_YET : Math.trunc(momentMs - this.#startMs);
  }
}
