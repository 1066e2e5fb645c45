// How a listener chooses what a connection meets: listener filters look at its first bytes, the criteria of the
// filter chains at its addresses, and what was chosen may still have too many connections.

import type { TlvSelection } from '../base/proxy-header.ts';
import type { RuntimeSetting } from '../base/runtime.ts';
import type { TokenBucketSettings } from '../base/token-bucket.ts';
import type { CidrRange } from './cidr-range.ts';
import type { DiscoveredListenerFilter } from './discovered-filter.ts';
import type { FormatSegments } from './format.ts';
import type { TerminalFilterSettings } from './listener.ts';
import type { Metadata } from './metadata.ts';
import type { NetworkFilterSettings, NetworkFilterSnapshot } from './network-filter.ts';
import type { DownstreamTlsSettings, DownstreamTlsSnapshot } from './tls.ts';

export type ConnectionSourceType = 'ANY' | 'SAME_IP_OR_LOOPBACK' | 'EXTERNAL';

/** Which connections a filter chain takes; an empty list or value takes all. */
export interface FilterChainMatch {
  /** 0 for any. */
  readonly destinationPort: number;
  readonly prefixRanges: readonly CidrRange[];
  /** In lower case: whole names, and `*.` with the end of names that are longer. */
  readonly serverNames: readonly string[];
  readonly transportProtocol: '' | 'raw_buffer' | 'tls';
  readonly applicationProtocols: readonly string[];
  /** Of the address that connected, whatever a PROXY header has said. */
  readonly directSourcePrefixRanges: readonly CidrRange[];
  readonly sourceType: ConnectionSourceType;
  readonly sourcePrefixRanges: readonly CidrRange[];
  readonly sourcePorts: readonly number[];
}

/** Which filter chain a decision tree of a listener leads to, by its name; none where no chain has it. */
export type FilterChainChoice =
  | { readonly kind: 'name'; readonly name: string }
  /** Made for each connection. @see LineFormat for what is missing. */
  | { readonly kind: 'format'; readonly segments: FormatSegments; readonly omitsEmptyValues: boolean };

export interface FilterChainSettings {
  /** Its own among those of a listener that has a decision tree. */
  readonly name: string;
  /** For formats; absent without any. */
  readonly metadata?: Metadata;
  readonly match: FilterChainMatch;
  /** What a connection meets before the terminal filter, in this order. */
  readonly networkFilters: readonly NetworkFilterSettings[];
  /** What secures its connections; absent where they come as they are. */
  readonly tls?: DownstreamTlsSettings;
  /** A handshake must be done within this time; 0 for no limit. Absent where there is none to wait for. */
  readonly transportConnectTimeoutMs?: number;
  /** The terminal filter of the chain. */
  readonly filter: TerminalFilterSettings;
}

/** The PROXY protocol listener filter. */
export interface ProxyProtocolSettings {
  readonly kind: 'proxy-protocol';
  /** A connection may come without a header. */
  readonly isOptional: boolean;
  readonly acceptsV1: boolean;
  readonly acceptsV2: boolean;
  readonly statPrefix: string;
  /** What becomes metadata of the connection. */
  readonly rules: readonly TlvRule[];
  /** What hosts may be told of; nothing when absent. */
  readonly passes?: TlvSelection;
}

/** A type of TLV, 0 to 255, and where its value goes, as text. */
export interface TlvRule {
  readonly type: number;
  readonly namespace: string;
  readonly key: string;
}

/** Connections, by the port that they were meant for. */
export type ConnectionPredicate =
  | { readonly kind: 'any' }
  | { readonly kind: 'not'; readonly rule: ConnectionPredicate }
  | { readonly kind: 'all' | 'one-of'; readonly rules: readonly ConnectionPredicate[] }
  /** The end is not among them. */
  | { readonly kind: 'port'; readonly start: number; readonly end: number };

/** The original destination listener filter: asks the system where a redirected connection meant to go. */
export interface OriginalDstFilterSettings {
  readonly kind: 'original-dst';
}

/** The TLS inspector listener filter: reads server name and protocols that a TLS client announces. */
export interface TlsInspectorSettings {
  readonly kind: 'tls-inspector';
  /** Most bytes of the records that hold the announcement. */
  readonly maxClientHelloBytes: number;
  /** What begins as TLS does and cannot be understood is closed, and not passed on as it is. */
  readonly refusesMalformed: boolean;
  /** Which fingerprints of clients are made. */
  readonly makesJa3: boolean;
  readonly makesJa4: boolean;
}

/** The local rate limit listener filter: closes connections beyond a rate. */
export interface ListenerRateLimitSettings {
  readonly kind: 'local-rate-limit';
  readonly statPrefix: string;
  /** Each connection takes a token of it. */
  readonly bucket: TokenBucketSettings;
  /** While it is not, connections come in without. */
  readonly enabled: RuntimeSetting<boolean>;
}

/** The HTTP inspector listener filter: reads which HTTP a client without TLS speaks. */
export interface HttpInspectorSettings {
  readonly kind: 'http-inspector';
}

/** One of this build. */
export type OwnListenerFilterSettings =
  | ProxyProtocolSettings
  | OriginalDstFilterSettings
  | TlsInspectorSettings
  | HttpInspectorSettings
  | ListenerRateLimitSettings;

/** Any of them, as what comes by discovery says. */
export interface DiscoveredListenerFilterSettings {
  readonly kind: 'discovered';
  /** In the configuration of its listener. */
  readonly name: string;
  readonly discovered: DiscoveredListenerFilter;
}

export type ListenerFilterSettings = (OwnListenerFilterSettings | DiscoveredListenerFilterSettings) & {
  /** Connections that it does not look at; absent for none. */
  readonly disabledFor?: ConnectionPredicate;
};

/** What a terminal filter is given in shared memory, and the ids of what else it wants. */
export interface TerminalParts {
  /** First cell of the terminal filter's stats (HTTP_STATS or TCP_PROXY_STATS); 0 for one of an extension, or that comes by discovery. */
  readonly filterStatBlock: number;
  /** First cell of TCP_ON_DEMAND_STATS; absent where connections wait for no cluster. */
  readonly onDemandStatBlock?: number;
  /** First cell of the connection manager's per-listener stats (LISTENER_HTTP_STATS); 0 for any other. */
  readonly listenerHttpStatBlock: number;
  /** First cell of HTTP1_STATS, of clients; 0 for a TCP proxy. */
  readonly http1StatBlock: number;
  /** Cells of the counters and gauges of HTTP filters, by their names behind the prefix or their whole names; none when absent. */
  readonly filterCounters?: Readonly<Record<string, number>>;
  /** Of the table that its requests go by, where that is a resource of its own; absent where it stands in the settings. */
  readonly routeTableId?: number;
  /** Of the scopes by which its requests find their tables; absent where there are none. */
  readonly scopeSetId?: number;
  /** Of its HTTP filters that come by discovery, in the order of all chains of the connection manager; absent where none does. */
  readonly discoveredFilterIds?: readonly number[];
  /** First cells of ROUTE_STATS of virtual clusters and routes, by their scopes; absent where there are none. */
  readonly routeStatBlocks?: Readonly<Record<string, number>>;
  /** The terminal filter, where it is one of an extension. */
  readonly terminal?: NetworkFilterSnapshot;
  /** Of the terminal filter, where its configuration comes by discovery. */
  readonly discoveredTerminalId?: number;
}

export interface FilterChainSnapshot extends TerminalParts {
  /** Identifies it among those that its listener has and has had. */
  readonly id: number;
  readonly settings: FilterChainSettings;
  readonly networkFilters: readonly NetworkFilterSnapshot[];
  /** Absent where connections come as they are. */
  readonly tls?: DownstreamTlsSnapshot;
}

export interface ListenerFilterSnapshot<Settings extends ListenerFilterSettings = ListenerFilterSettings> {
  readonly settings: Settings;
  /** First cell of the filter's stats, such as PROXY_PROTOCOL_STATS; 0 for a filter without. */
  readonly statBlock: number;
  /** Of one that comes by discovery; absent for any other. */
  readonly discoveredId?: number;
}
