// What formats may ask about a request, or about a connection without requests. Empty text, 0 and -1 mean
// "not known, or not yet": a header value is made while the request runs, a log line when it has ended.

import type { Metadata, MetadataSource, Moment } from '../../snapshot/index.ts';
import type { TlsFacts } from '../network/tls/connection-tls.ts';
import type { WireBytes } from './wire-bytes.ts';

export interface FormatFacts {
  /** Milliseconds since the Unix epoch, with a fraction where the clock has one. */
  readonly startTimeMs: number;
  /** The same, of this moment. */
  readonly emitTimeMs: number;
  /** `HTTP/1.1` and the like; empty for raw connections. */
  readonly protocol: string;
  /** The request is one of gRPC. */
  readonly isGrpc: boolean;
  /** A `grpc-status` behind the body, whether or not the client was sent it; undefined without one. */
  readonly grpcTrailer: string | undefined;
  /** Status of the response, 0 before there is one. */
  readonly status: number;
  readonly details: string;
  readonly connectionTerminationDetails: string;
  /** Bits of RESPONSE_FLAGS. */
  readonly flags: number;
  /** What a reply of the proxy's own says, before a format words it; undefined without one. */
  readonly localReplyBody: string | undefined;

  /** Body bytes from and to the client. */
  readonly bytesReceived: number;
  readonly bytesSent: number;

  /** Whole milliseconds since the start, -1 for a moment that has not come: end of the stream … */
  readonly durationMs: number;
  /** … the request's last byte from the client … */
  readonly requestDurationMs: number;
  /** … the request's last byte to the upstream … */
  readonly requestTxDurationMs: number;
  /** … the response's first byte from the upstream. */
  readonly responseDurationMs: number;
  /** From the choice of the last host to a connection that can be used, in whole milliseconds; -1 without one. */
  readonly poolReadyDurationMs: number;
  /** From there to the response's last byte to the client. */
  readonly responseTxDurationMs: number;

  /** Monotonic time of a moment, in milliseconds; negative for one that has not come. */
  moment(name: Moment): number;
  /** Null of raw connections, and where no format has asked for them when the request began. */
  readonly downstreamWire: WireBytes | null;
  /** Of all attempts together. */
  readonly upstreamWire: WireBytes | null;

  readonly downstream: DownstreamFacts;
  /** Who has sent it, as far as that can be known: behind a PROXY header, or behind trusted hops, whose ports are 0. */
  readonly client: Endpoint;
  readonly upstream: UpstreamFacts | null;
  /** That of each attempt, the last one at the end. */
  readonly attempted: readonly UpstreamFacts[];
  readonly routeName: string;
  readonly virtualHostName: string;
  /** Empty for none with a name of its own. */
  readonly virtualClusterName: string;
  /** Where the connection came in. */
  readonly ingress: IngressFacts;
  /** Identifies the request, or the connection. */
  readonly streamId: string;
  /** Of its trace; empty for none. */
  readonly traceId: string;
  readonly spanId: string;
  readonly accessLogType: string;
  readonly upstreamCluster: string;
  /** Requests or connections made upstream, the first included. */
  readonly attempts: number;
  readonly upstreamTransportFailure: string;
  /** The request only asks whether the proxy is well. */
  readonly isHealthCheck: boolean;

  /** What filters have said of the request, else of its connection, under this name. */
  state(key: string): string | undefined;
  /** What the configuration says of the thing that the stream has met. */
  metadata(source: MetadataSource): Metadata | undefined;
  /** First value of a header by its lower-case name, or of `:method`, `:path`, `:authority`, `:scheme`. */
  requestHeader(name: string): string | undefined;
  /** First value of a header by its lower-case name, or of `:status`. */
  responseHeader(name: string): string | undefined;
  /** Value of a trailer that the client was sent, by its lower-case name. */
  responseTrailer(name: string): string | undefined;
  readonly requestHeadersBytes: number;
  readonly responseHeadersBytes: number;
  readonly responseTrailersBytes: number;
}

/** The listener and filter chain of a connection; one object for all of them. */
export interface IngressFacts {
  /** Empty for a chain without a name, and for no chain. */
  readonly chainName: string;
  readonly chainMetadata: Metadata | undefined;
  readonly listenerMetadata: Metadata | undefined;
}

/** One end of a connection; port 0 for a pipe, whose path is the address. */
export interface Endpoint {
  readonly ip: string;
  readonly port: number;
}

/** What kind of program a TLS client is; empty for one that has not been made. */
export interface ClientFingerprints {
  readonly ja3: string;
  readonly ja4: string;
}

export interface DownstreamFacts {
  readonly connectionId: number;
  /** Monotonic times of its accept, and of the end of its handshake: negative before that, and without any. */
  readonly startMs: number;
  readonly securedMs: number;
  /** The client, as far as its connection can know it: behind a PROXY protocol header. */
  readonly remote: Endpoint;
  /** The peer of the connection itself. */
  readonly directRemote: Endpoint;
  readonly local: Endpoint;
  readonly directLocal: Endpoint;
  /** Where the client meant to go, if a listener filter has found it out. */
  readonly originalDestination: Endpoint | null;
  /** By SNI, in lower case; empty where none has been named, or no listener filter has looked. */
  readonly requestedServerName: string;
  /** What the client's first bytes are, where a listener filter has looked. */
  readonly transportProtocol: 'raw_buffer' | 'tls';
  /** As the client offers them, where a listener filter has looked. */
  readonly applicationProtocols: readonly string[];
  /** Nothing where no listener filter makes any. */
  readonly fingerprints?: ClientFingerprints | null;
  /** Null before a handshake, and without TLS. */
  readonly tls: TlsFacts | null;
  /** What network filters have said of the connection. */
  readonly metadata: Metadata | undefined;
  /** What network filters have put into its filter state. */
  state(key: string): string | undefined;
  /** Why the connection could not be secured; empty where it could, or need not be. */
  readonly transportFailure: string;
}

export interface UpstreamFacts {
  /** The host as configured. */
  readonly remote: Endpoint;
  readonly hostname: string;
  readonly metadata: Metadata | undefined;
  readonly local: Endpoint;
  readonly protocol: string;
  /** Null before a connection is there, and for a plain one. */
  readonly tls: TlsFacts | null;
  /** 0 before there is a connection. */
  readonly connectionId: number;
  /** Monotonic times of its connection: begun, connected, secured; negative for what has not come, or is not known. */
  readonly openedMs: number;
  readonly connectedMs: number;
  readonly securedMs: number;
}
