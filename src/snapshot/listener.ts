// One listener as the control plane publishes it: where to accept, and what each connection meets.

import type { Address } from '../base/address.ts';
import type { ListeningOptions } from '../base/own-sockets.ts';
import type { StringMatch } from '../base/string-match.ts';
import type { AccessLogSettings, ReportedLogSettings } from './access-log.ts';
import type { SubsetCriteria } from './balancing.ts';
import type { KeepaliveSettings } from './cluster.ts';
import type { ClusterDemandSettings } from './demand.ts';
import type { DiscoveredFilter, DiscoveredTerminal } from './discovered-filter.ts';
import type {
  FilterChainChoice,
  FilterChainSettings,
  FilterChainSnapshot,
  ListenerFilterSettings,
  ListenerFilterSnapshot,
} from './filter-chain.ts';
import type { FormatSegments } from './format.ts';
import type { ForwardingSettings } from './forwarding.ts';
import type { Http2Settings } from './http2.ts';
import type { LocalReplySettings } from './local-reply.ts';
import type { MatchTree } from './matcher.ts';
import type { Metadata } from './metadata.ts';
import type { ExtensionTerminalSettings } from './network-filter.ts';
import type { NormalizationSettings } from './normalization.ts';
import type { DiscoveredRoutes } from './published-routes.ts';
import type { HashInput, HeaderEdits, RouteTableSnapshot } from './route-table.ts';
import type { ScopedRoutesSettings } from './scoped-routes.ts';
import type { TracingSettings } from './tracing.ts';
import type { UdpProxySettings, UdpProxySnapshot } from './udp-proxy.ts';
import type { WholeStats } from './whole-stats.ts';

/** The log of the router, which tells of attempts when they are over. */
export interface UpstreamLogSettings {
  readonly accessLogs: readonly AccessLogSettings[];
  /** Absent without any. */
  readonly reportedLogs?: readonly ReportedLogSettings[];
  /** Also when the request goes out. */
  readonly onConnected: boolean;
  /** Also after each such time from then on; 0 for not. */
  readonly intervalMs: number;
}

/** What the configuration says of an HTTP connection manager. */
export interface HttpConnectionManagerSettings {
  readonly kind: 'http-connection-manager';
  readonly statPrefix: string;
  /** One entry for each request, at its end. */
  readonly accessLogs: readonly AccessLogSettings[];
  /** Absent without any. */
  readonly reportedLogs?: readonly ReportedLogSettings[];
  readonly furtherLogEntries: HttpLogEntries;
  /** One entry for each attempt of a request; absent where attempts are not logged. */
  readonly upstreamLog?: UpstreamLogSettings;
  /** What a request meets before the router, in this order. */
  readonly httpFilters: readonly HttpFilterSettings[];
  /** What clients may turn their connections into, one entry for each type. */
  readonly upgrades: readonly UpgradeSettings[];
  /** Empty where it is discovered. */
  readonly routeTable: RouteTableSnapshot;
  /** Absent where routes stand in the configuration of the listener. */
  readonly discoveredRoutes?: DiscoveredRoutes;
  /** Where a key of each request says which table it goes by; absent where there is one for all. */
  readonly scopedRoutes?: ScopedRoutesSettings;
  /** Value of the Server response header. */
  readonly serverName: string;
  readonly serverHeader: ServerHeaderTransformation;
  /** Appended to Via in both directions when not empty. */
  readonly via: string;
  /** Trust only the peer's address, and append it to X-Forwarded-For. */
  readonly useRemoteAddress: boolean;
  readonly xffNumTrustedHops: number;
  readonly skipXffAppend: boolean;
  readonly generateRequestId: boolean;
  readonly preserveExternalRequestId: boolean;
  /** Close a connection without active requests after this time; 0 for never. */
  readonly idleTimeoutMs: number;
  /** Give up on a stream without progress after this time; 0 for never. */
  readonly streamIdleTimeoutMs: number;
  /** The whole request must arrive within this time; 0 for no limit. */
  readonly requestTimeoutMs: number;
  /** The request's head must arrive within this time; 0 for no limit. */
  readonly requestHeadersTimeoutMs: number;
  readonly maxRequestHeadersBytes: number;
  readonly maxHeadersCount: number;
  /** The router adds none of its own headers to requests and responses. */
  readonly suppressProxyHeaders: boolean;
  /** The time that the proxy before this one expects an answer in takes the place of the route's. */
  readonly respectsExpectedTimeout: boolean;
  /** Control headers, as `x-proxy-…`, whose values must make sense. */
  readonly strictlyCheckedHeaders: readonly string[];
  /** What requests say of their client's certificate. */
  readonly clientCertificate: ClientCertificateSettings;
  /** Says it for requests that it leads somewhere; absent where it is the same for all. */
  readonly clientCertificateMatcher?: MatchTree<ClientCertificateSettings>;
  /** What changes in requests before routes, filters and the proxy itself read them; absent where nothing does. */
  readonly earlyHeaderEdits?: readonly HeaderEdits[];
  /** Absent where replies of the proxy's own go out as they are. */
  readonly localReplies?: LocalReplySettings;
  /** What Proxy-Status tells of faults; absent where it is not written. */
  readonly proxyStatus?: ProxyStatusSettings;
  /** Replies for want of means say so in a header; absent where they do not. */
  readonly tellsOfOverload?: boolean;
  /** What clients are spoken to in; 'auto' finds it out by ALPN, or by the first bytes. */
  readonly codec: 'auto' | 'http1' | 'http2';
  /** Absent where clients of HTTP/1 are spoken to as usual. */
  readonly http1?: Http1Settings;
  readonly http2: Http2Settings;
  /** Between the two steps in which an HTTP/2 client is told that its connection ends. */
  readonly drainTimeoutMs: number;
  /** What bounds a connection beside its silence; absent where nothing does. */
  readonly connectionLife?: ConnectionLifeSettings;
  /** A request and its response together must be done within this time, unless the route says otherwise; 0 for no limit. */
  readonly maxStreamDurationMs: number;
  /** What the client has not taken of a complete response waits no longer than this without anything moving; 0 for ever. */
  readonly streamFlushTimeoutMs: number;
  /** A connection that has ended from this side waits so long for the client's end; 0 for not at all. */
  readonly delayedCloseTimeoutMs: number;
  /** Interim responses pass, and whoever waits for leave to send a body gets it of the upstream. */
  readonly proxiesInterim: boolean;
  /** Trailers pass over HTTP/1: those of requests are read, those of responses written. */
  readonly enableTrailers: boolean;
  readonly forwarding: ForwardingSettings;
  /** Absent where no request is traced. */
  readonly tracing?: TracingSettings;
  readonly normalization: NormalizationSettings;
}

export interface ProxyStatusSettings {
  /** Of this proxy. */
  readonly name: string;
  readonly hasDetails: boolean;
  /** Among the details. */
  readonly hasFlags: boolean;
  /** Replies of the proxy's own get the status that goes with the fault. */
  readonly recommendsStatus: boolean;
}

/** Which access log entries a request gets before the one at its end. */
export interface HttpLogEntries {
  /** When its head is there and its route is found. */
  readonly onStart: boolean;
  /** When its upgrade or CONNECT has become a tunnel. */
  readonly onTunnel: boolean;
  /** One after each such time; 0 for none. */
  readonly intervalMs: number;
}

export interface Http1Settings {
  /** Names of response headers begin their words in upper case. */
  readonly hasProperCase: boolean;
  /** A request that wants none but such upgrades goes on as if it wanted none. */
  readonly ignoredUpgrades: readonly StringMatch[];
  /** A request may have a Content-Length beside its chunks: that is dropped, and its connection ends with the response. */
  readonly takesChunkedLength: boolean;
  /** A reply of the proxy's own that says 400 does not end the connection of a request that has been read in full. */
  readonly survivesBadRequests: boolean;
}

export interface ConnectionLifeSettings {
  /** 0 for no limit. */
  readonly maxDurationMs: number;
  /** 0 for no limit. */
  readonly maxRequests: number;
  /** Past its duration a connection of HTTP/1 ends with a response that says so, and never between requests. */
  readonly endsHttp1WithResponse: boolean;
}

/** X-Forwarded-Client-Cert of connections whose clients have presented a certificate; of others it is dropped. */
export interface ClientCertificateSettings {
  readonly mode: 'sanitize' | 'forward-only' | 'append-forward' | 'sanitize-set' | 'always-forward-only';
  /** What is said beside its hash. */
  readonly subject: boolean;
  readonly cert: boolean;
  /** The certificates that lead from the client's own to a root, which is left out. */
  readonly chain: boolean;
  readonly dns: boolean;
  readonly uri: boolean;
}

/** A protocol that an HTTP/1.1 connection may be upgraded to; CONNECT counts as one. */
export interface UpgradeSettings {
  /** Lower case. */
  readonly type: string;
  /** Routes may say otherwise. */
  readonly isEnabled: boolean;
  /** What such requests meet in place of the other filters; null for the same. */
  readonly httpFilters: readonly HttpFilterSettings[] | null;
}

/** An HTTP filter as its extension has configured it. */
export interface HttpFilterSettings extends WholeStats {
  /** Name in the registries of both planes, `filters.http.health_check`. */
  readonly name: string;
  /** For the extension alone; anything that can be cloned. */
  readonly settings: unknown;
  /** What the configuration calls it, and its routes when they speak to it; `name` when absent. */
  readonly configName?: string;
  /** Only routes that turn it on have it. */
  readonly isDisabled?: boolean;
  /** Counters that it writes, by the part of their names behind `http.<stat prefix>.`; none when absent. */
  readonly counters?: readonly string[];
  /** Counts that all workers see at once, by names that no other filter of the chain has; none when absent. */
  readonly sharedCounts?: readonly string[];
  /** Gauges, as counters. */
  readonly gauges?: readonly string[];
  /** Under which POST /tap has it record; absent where it cannot. */
  readonly tapConfigId?: string;
  /** What it is comes by discovery, and its name is that of no extension; absent for any other. */
  readonly discovered?: DiscoveredFilter;
}

/** What becomes of an upstream's Server header: replaced, completed where it is missing, or left alone. */
export type ServerHeaderTransformation = 'overwrite' | 'append-if-absent' | 'pass-through';

export type TcpHashInput = Extract<HashInput, { readonly kind: 'source-ip' | 'filter-state' }>;

/** What the configuration says of a TCP proxy. */
export interface TcpProxySettings {
  readonly kind: 'tcp-proxy';
  readonly statPrefix: string;
  /** One entry for each connection, at its end. */
  readonly accessLogs: readonly AccessLogSettings[];
  /** Absent without any. */
  readonly reportedLogs?: readonly ReportedLogSettings[];
  readonly furtherLogEntries: TcpLogEntries;
  /** At least one; each attempt to connect draws one by weight. */
  readonly clusters: readonly TcpClusterShare[];
  /** What balancers hash that send equal hashes to the same host: of this all that a connection has. */
  readonly hashInputs: readonly TcpHashInput[];
  /** Close when no byte has passed either way for this time; 0 for never. */
  readonly idleTimeoutMs: number;
  /** The same of one way, until its side has ended. */
  readonly clientIdleTimeoutMs: number;
  readonly upstreamIdleTimeoutMs: number;
  readonly maxConnectAttempts: number;
  /** Waits between attempts to connect; null for none. */
  readonly connectBackoff: BackoffSettings | null;
  /** Close a connection of this age, whatever passes; 0 for never. */
  readonly maxConnectionDurationMs: number;
  /** Each connection's own limit is longer by a random part of this share of it, 0 to 100. */
  readonly maxConnectionDurationJitterPercent: number;
  /** There is no upstream before the client has sent something. */
  readonly awaitsData: boolean;
  /** Connections wait for clusters that are not known; they end without one when absent. */
  readonly onDemand?: ClusterDemandSettings;
  /** What hosts may be told of connections that have brought nothing of the kind; nothing when absent. */
  readonly tlvs?: readonly TlvSettings[];
  /** Bytes go through HTTP proxies; null for straight to the hosts. */
  readonly tunnel: TcpTunnelSettings | null;
}

/** A TLV of PROXY headers: its type, 0 to 255, and its value, in hexadecimal digits or made of each connection. */
export type TlvSettings =
  | { readonly type: number; readonly value: string }
  | { readonly type: number; readonly format: FormatSegments; readonly omitsEmptyValues: boolean };

/** How HTTP proxies are asked for a tunnel. */
export interface TcpTunnelSettings {
  readonly method: 'CONNECT' | 'POST';
  /** What the tunnel leads to, for a CONNECT with its port: byte text. */
  readonly hostname: FormatSegments;
  /** What a POST asks for. */
  readonly postPath: string;
  readonly headerEdits: readonly HeaderEdits[];
  /** Logs may ask for what the answer said. */
  readonly keepsResponseHeaders: boolean;
  readonly keepsResponseTrailers: boolean;
}

/** One of the clusters among which a TCP proxy divides its connections. */
export interface TcpClusterShare {
  readonly cluster: string;
  /** 1 or more; all together fit 32 bits. */
  readonly weight: number;
  /** What the host's metadata must say, in clusters with subsets; null for nothing. */
  readonly criteria: SubsetCriteria | null;
}

/** Which access log entries a connection gets before the one at its end. */
export interface TcpLogEntries {
  readonly onStart: boolean;
  /** When the upstream is there. */
  readonly onConnected: boolean;
  /** One after each such time; 0 for none. */
  readonly intervalMs: number;
}

/** Waits that are random below a bound, which doubles with each failure. */
export interface BackoffSettings {
  readonly baseMs: number;
  /** Not below `baseMs`. */
  readonly maxMs: number;
}

/** What ends a filter chain, as one of this build. */
export type OwnTerminalSettings = HttpConnectionManagerSettings | TcpProxySettings | ExtensionTerminalSettings;

/** Any of them, as what comes by discovery says. */
export interface DiscoveredTerminalSettings {
  readonly kind: 'discovered';
  /** In its chain. */
  readonly name: string;
  readonly discovered: DiscoveredTerminal;
}

/** What ends a filter chain. */
export type TerminalFilterSettings = OwnTerminalSettings | DiscoveredTerminalSettings;

/** Which way a listener's connections go, as seen from the services behind; drains can be limited to one. */
export type TrafficDirection = 'UNSPECIFIED' | 'INBOUND' | 'OUTBOUND';

/** What is set on every accepted socket. */
export interface AcceptedSocketOptions {
  readonly noDelay: boolean;
  /** Undefined leaves the system's setting. */
  readonly keepalive: KeepaliveSettings | undefined;
  /** IP_TOS, 0 to 255; 0 leaves the system's setting. */
  readonly typeOfService: number;
}

/** What the configuration says of a listener. */
export interface ListenerSettings {
  readonly name: string;
  /** The first is the one that names the listener in statistics. */
  readonly addresses: readonly [Address, ...Address[]];
  /** Otherwise it only gets connections that others hand over. */
  readonly bindsToPort: boolean;
  /** Connections that were redirected here are handed over to the listener that owns the address they were meant for. */
  readonly handsOver: boolean;
  /** First part of the names of its statistics; empty for the address. */
  readonly statPrefix: string;
  /** For formats; absent without any. */
  readonly metadata?: Metadata;
  readonly trafficDirection: TrafficDirection;
  /** Whether connections end while the server's health checks fail, or only when the listener itself goes. */
  readonly drainType: 'default' | 'modify-only';
  readonly bufferLimitBytes: number;
  /** Length of the kernel's accept queue. */
  readonly backlog: number;
  /** Every worker accepts on a socket of its own; otherwise the first worker accepts alone. */
  readonly reusePort: boolean;
  readonly socketOptions: AcceptedSocketOptions;
  /** In place of the keepalive there, by address, null for that one; absent where it holds for all. */
  readonly ownKeepalives?: readonly (KeepaliveSettings | null)[];
  /** What the sockets that listen begin with, by address, null for nothing; absent where that is nothing for all. */
  readonly listeningOptions?: readonly (ListeningOptions | null)[];
  /** In their order; each sees the bytes that those before it have left. */
  readonly listenerFilters: readonly ListenerFilterSettings[];
  /** All listener filters must be done within this time; 0 for no limit. */
  readonly listenerFiltersTimeoutMs: number;
  /** When the time is over, go on with what is known instead of closing. */
  readonly continueOnListenerFiltersTimeout: boolean;
  /** Connections count against the global limit, but are never refused for it. */
  readonly ignoresGlobalLimit: boolean;
  /** What the overload manager asks for is not asked of it. */
  readonly bypassesOverload: boolean;
  readonly filterChains: readonly FilterChainSettings[];
  /** Chooses among the filter chains in place of their criteria; absent where those do. */
  readonly filterChainMatcher?: MatchTree<FilterChainChoice>;
  /** Its addresses are of UDP, and this is what becomes of datagrams; absent for connections. */
  readonly udp?: UdpProxySettings;
  /** One entry for each connection that no filter chain takes. */
  readonly accessLogs: readonly AccessLogSettings[];
  /** Absent without any. */
  readonly reportedLogs?: readonly ReportedLogSettings[];
  /** For connections that no chain takes; with a decision tree, those that it leads nowhere. */
  readonly defaultFilterChain: FilterChainSettings | null;
}

/** A bound on accepted connections over all workers; what comes beyond it is closed at once. */
export interface AcceptLimitSnapshot {
  /** Where the runtime says nothing else. */
  readonly maxConnections: number;
  /** What the runtime calls it; empty where it has no say. */
  readonly runtimeKey: string;
  /** The count record of the connections that are limited. */
  readonly recordAddress: number;
}

export interface ListenerSnapshot {
  /** Identifies this version of the listener within the process. */
  readonly id: number;
  readonly settings: ListenerSettings;
  /** First cell of the listener's stats (LISTENER_STATS). */
  readonly statBlock: number;
  /** First cell of LISTENER_WORKER_STATS by worker index. */
  readonly workerStatBlocks: readonly number[];
  /** For all listeners together. */
  readonly globalLimit: AcceptLimitSnapshot;
  /** For this listener. */
  readonly limit: AcceptLimitSnapshot;
  readonly listenerFilters: readonly ListenerFilterSnapshot[];
  /** Where the settings are of UDP. */
  readonly udp?: UdpProxySnapshot;
  readonly filterChains: readonly FilterChainSnapshot[];
  readonly defaultFilterChain: FilterChainSnapshot | null;
}
