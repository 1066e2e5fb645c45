// One upstream cluster as the control plane publishes it. Settings come from the configuration as they
// are; the rest are places in shared memory that the main thread has allocated for the workers.

import type { IpAddress } from '../base/address.ts';
import type { RetryBudget } from '../base/circuit-limits.ts';
import type { SourcesByFamily } from '../base/own-sockets.ts';
import type { ProxyHeaderSettings } from '../base/proxy-header.ts';
import type { Fraction } from '../base/runtime.ts';
import type { MetadataPair } from '../base/subset-key.ts';
import type {
  HashingSettings,
  LeastRequestSettings,
  LoadBalancingPolicy,
  SlowStartSettings,
  SubsetSettings,
  ZoneRoutingSettings,
} from './balancing.ts';
import type { ConfiguredHealth, HostSettings } from './endpoint.ts';
import type { HealthCheckSettings, ServerCredentials } from './health-check.ts';
import type { DiscoverySettings } from './host-discovery.ts';
import type { Http2Settings } from './http2.ts';
import type { Metadata } from './metadata.ts';
import type { OutlierSettings } from './outlier.ts';
import type { RetrySettings } from './retry.ts';
import type { MirrorPolicy } from './route-table.ts';
import type { UpstreamTlsSettings } from './tls.ts';

/** Limits of one routing priority, over all workers (spec 2.1, thresholds). */
export interface CircuitBreakerThresholds {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
  /** Takes the place of `maxRetries`, where there is one. */
  readonly retryBudget?: RetryBudget;
  /** Of connections to one host, for one client where each has its own; absent for no limit. */
  readonly maxConnectionPools?: number;
  /** Of a host, whatever the priority of the connections that it has; absent for no limit. */
  readonly maxConnectionsPerHost?: number;
  /** What is left below each limit is shown in stats. */
  readonly tracksRemaining?: boolean;
}

/** Requests go out over HTTP/2. */
export interface UpstreamHttp2 {
  readonly settings: Http2Settings;
  /** All of them; those of clients that speak it; those to hosts that choose it by ALPN. */
  readonly use: 'always' | 'like-client' | 'by-alpn';
}

/** What workers are to know of a cluster whose members clients name. */
export interface ForwardProxySettings {
  /** Of hosts that are named without one. */
  readonly defaultPort: number;
  /** TLS asks each host for its own name, and verifies it. */
  readonly namesServers: boolean;
}

/** What an assignment says of its cluster as a whole. */
export type AssignmentPolicy = Pick<
  ClusterSettings,
  'overprovisioningFactor' | 'weightedPriorityHealth' | 'dropShare' | 'dropCategory'
>;

/** Members of a cluster that come by discovery. */
export interface AssignmentSettings {
  readonly hosts: readonly HostSettings[];
  readonly policy: AssignmentPolicy;
  /** Without another assignment there are no members any more after this; 0 for any time. */
  readonly staleAfterMs: number;
}

/** Where requests say which member they want. */
export interface OriginalDstSettings {
  /** Lower-case name of the header that goes before the address that the client meant to reach; null for none. */
  readonly header: string | null;
  /** Takes the place of the port that was meant; 0 for none. */
  readonly port: number;
  /** Where in dynamic metadata an address stands that goes before both; absent for nowhere. */
  readonly metadata?: { readonly namespace: string; readonly path: readonly string[] };
}

/** HTTP connections that are opened before requests need them, as a ratio to the requests that run or wait, 1 to 3. */
export interface PreconnectSettings {
  /** Of each host. */
  readonly perHostRatio: number;
  /** Of all hosts, opened to those that the next requests will go to. */
  readonly predictiveRatio: number;
}

/** Hosts whose endpoint's metadata says all of this have the transport socket of this name. */
export interface TransportSocketMatch {
  readonly name: string;
  /** Empty for all hosts. */
  readonly criteria: readonly MetadataPair[];
  /** Absent: their connections are plain. */
  readonly tls?: UpstreamTlsSettings;
}

/** Names that TLS goes by which requests bring themselves. */
export interface RequestServerName {
  /** Lower-case name of the header that says it; empty for that of the host. */
  readonly header: string;
  /** Servers are asked for it. */
  readonly isSent: boolean;
  /** Their certificates have to be for it, in place of the names in the configuration. */
  readonly isVerified: boolean;
}

/** How heads of requests are written; one of both at least. */
export interface RequestForm {
  /** The target has scheme and host. */
  readonly hasFullUrl: boolean;
  /** Names of headers begin their words in upper case. */
  readonly hasProperCase: boolean;
}

/** How large the head of a response may be, and its trailers; and what is borne in it. */
export interface ResponseHeadLimits {
  readonly maxHeadBytes: number;
  readonly maxFields: number;
  /** A Content-Length beside Transfer-Encoding is left out instead of refused. */
  readonly takesChunkedLength?: boolean;
}

/** Probes on idle connections. */
export interface KeepaliveSettings {
  /** Unanswered probes before the connection is dead. */
  readonly probes: number;
  /** Silence before the first probe. */
  readonly timeSeconds: number;
  readonly intervalSeconds: number;
}

/** What the configuration says of a cluster (spec 2.8). */
export interface ClusterSettings {
  readonly name: string;
  /** Name in stats: alt_stat_name or name, with ':' turned to '_'. */
  readonly statName: string;
  /** alt_stat_name or name as configured: what the admin interface shows. */
  readonly observabilityName: string;
  /** For formats; absent without any. */
  readonly metadata?: Metadata;
  readonly connectTimeoutMs: number;
  /** Upper bound of bytes that wait in each direction of one connection. */
  readonly bufferLimitBytes: number;
  readonly lbPolicy: LoadBalancingPolicy;
  /** Null when something else chooses the member. */
  readonly originalDst: OriginalDstSettings | null;
  /** Absent when something else chooses the member. */
  readonly forwardProxy?: ForwardProxySettings;
  /** Clusters whose hosts take its requests, the most preferred first; absent where its own hosts do. */
  readonly aggregate?: readonly string[];
  readonly leastRequest: LeastRequestSettings;
  /** Of hosts in turn and of the least request; null for none. */
  readonly slowStart: SlowStartSettings | null;
  readonly hashing: HashingSettings;
  /** Null when requests choose among all hosts. */
  readonly subsets: SubsetSettings | null;
  /** Below this share of available hosts all are used, in whole percent; 0 never. */
  readonly healthyPanicThreshold: number;
  /** Percent by which the healthy hosts of a priority may be too few before the next priority helps out. */
  readonly overprovisioningFactor: number;
  /** Health of a priority by the weights of its hosts instead of their number. */
  readonly weightedPriorityHealth: boolean;
  /** Of requests, which are turned away before a host is chosen; null for none. */
  readonly dropShare: Fraction | null;
  /** By which reports of load name those; absent for none. */
  readonly dropCategory?: string;
  /** Requests of a priority in panic have no host, instead of any. */
  readonly failsTrafficOnPanic: boolean;
  /** Localities get requests by their weights and their health, and hosts then of their locality's. */
  readonly weighsLocalities: boolean;
  /** Null where localities are weighed. Balancers that go by hashes have no zones. */
  readonly zoneRouting: ZoneRoutingSettings | null;
  /** What hosts are to be whom filters may choose in place of the balancer; empty: they choose none. Absent: ones that serve. */
  readonly overrideHealth?: readonly ConfiguredHealth[];
  /** Every change of members drains all connections of the cluster. */
  readonly closeConnectionsOnHostSetChange: boolean;
  /** Proxied TCP connections to a host end when it turns unhealthy. */
  readonly closeConnectionsOnHostHealthFailure: boolean;
  /** Where upstream connections come from; undefined leaves it to the system. */
  readonly sourceAddress: IpAddress | undefined;
  /** Takes the place of `sourceAddress`; absent where that is enough. */
  readonly sourcesByFamily?: SourcesByFamily;
  readonly tcpKeepalive: KeepaliveSettings | undefined;
  /** From the connection of a try to the end of its response; absent for any time. */
  readonly maxStreamDurationMs?: number;
  /** Age at which an upstream connection takes no more requests; 0 for none. */
  readonly maxConnectionDurationMs: number;
  /** Requests per upstream connection before it closes; 0 for no limit. */
  readonly maxRequestsPerConnection: number;
  /** Trailers pass: those of requests are written, those of responses read. */
  readonly enableTrailers: boolean;
  /** Absent: they all go over HTTP/1. */
  readonly http2?: UpstreamHttp2;
  /** Absent: requests go as they came. */
  readonly requestForm?: RequestForm;
  /** Absent for those that hold without a word. */
  readonly responseHeadLimits?: ResponseHeadLimits;
  /** In this order; the first that takes a host counts. Absent without any. */
  readonly transportSocketMatches?: readonly TransportSocketMatch[];
  /** How connections are secured of hosts that no match takes; absent: they are plain. */
  readonly tls?: UpstreamTlsSettings;
  /** Absent: TLS goes by no names but those of the configuration. */
  readonly requestServerName?: RequestServerName;
  /** What each connection begins with; absent for nothing. */
  readonly proxyHeader?: ProxyHeaderSettings;
  /** Of servers that ask who comes; absent where none does. */
  readonly credentials?: ServerCredentials;
  /** Each client has HTTP connections of its own. */
  readonly poolsPerClient: boolean;
  /** Takes the place of the policy of routes; null for theirs. */
  readonly retry: RetrySettings | null;
  /** Take the place of those of routes; null for theirs. */
  readonly mirrors: readonly MirrorPolicy[] | null;
  /** Absent: every connection is opened for a request. */
  readonly preconnect?: PreconnectSettings;
  /** Idle time of a pooled connection before it closes; 0 keeps it for ever. */
  readonly idleTimeoutMs: number;
  readonly circuitBreakers: { readonly default: CircuitBreakerThresholds; readonly high: CircuitBreakerThresholds };
  readonly discovery: DiscoverySettings;
  /** Wants to know how much of their time requests use. */
  readonly tracksTimeoutBudgets: boolean;
  /** Wants to know how large requests and responses are. */
  readonly tracksMessageSizes: boolean;
  /** Each member has stats among all others; absent: only listings of clusters and who asks for them show them. */
  readonly tracksHosts?: boolean;
  /** Undefined: nobody checks the members. */
  readonly healthCheck: HealthCheckSettings | undefined;
  /** Undefined: nobody is ejected. */
  readonly outlierDetection: OutlierSettings | undefined;
  /** Changes of health within this time of the last are taken together; 0 never. */
  readonly updateMergeWindowMs: number;
  /** False: the server goes live before the first lookups have ended. */
  readonly waitForWarmOnInit: boolean;
  /** Members of a static cluster; those of others are found at run time. */
  readonly hosts: readonly HostSettings[];
}

export interface HostSnapshot extends HostSettings {
  /** Byte address of the host's record in shared memory (assembly/layout/shared-memory.ts, HOST_*). */
  readonly recordAddress: number;
  /** First cell of the host's counters (HOST_STATS). */
  readonly statBlock: number;
  /** First cell of what an outlier detector wants to know (OUTLIER_HOST_STATS); 0 without one. */
  readonly outlierBlock: number;
}

/** A part of the requests of an aggregate cluster: hosts of one kind of one priority of one of its clusters. */
export interface AggregateShare {
  /** Of 100 requests drawn up to here, behind the shares before it. */
  readonly upTo: number;
  /** Among the priorities of all clusters behind one another. */
  readonly priority: number;
  readonly cluster: string;
  /** In that cluster. */
  readonly ownPriority: number;
  readonly isDegraded: boolean;
  /** Percent of all requests that these hosts could take, were others not there. */
  readonly availability: number;
}

/** How requests of an aggregate cluster are shared out. */
export interface AggregateShares {
  /** Healthy hosts first, each by priority. */
  readonly shares: readonly AggregateShare[];
  /** Of each priority, also of one without a share. */
  readonly priorities: readonly { readonly cluster: string; readonly ownPriority: number }[];
}

/** In the place of a first cell: there are none. */
export const NO_CELLS = 0;

/** What has changed about the members of one cluster. What it leaves out is as before. */
export interface HostsUpdate {
  readonly cluster: string;
  /** Byte address of what members are picked from (assembly/layout/lb.ts, LISTS_*). */
  readonly hostLists: number;
  /** Records of all members in the order that the lists refer to; null when that is as before. */
  readonly order: readonly number[] | null;
  /** Members that are new, or have other settings. */
  readonly hosts: readonly HostSnapshot[];
  /** Records of members with other health flags. */
  readonly health: readonly number[];
  /** Of requests, which are turned away from now on before a host is chosen, or null for none; absent: as before. */
  readonly dropShare?: Fraction | null;
  /** Where requests name their hosts, no list refers to an order, and this tells of who comes and goes; else null. */
  readonly amendment: HostsAmendment | null;
  /** Of an aggregate cluster; absent: as before. */
  readonly aggregate?: AggregateShares;
}

/** A worker may know of some of it already. */
export interface HostsAmendment {
  readonly joined: readonly HostSnapshot[];
  /** Records. */
  readonly gone: readonly number[];
}

export interface ClusterSnapshot {
  readonly settings: Omit<ClusterSettings, 'hosts' | 'discovery' | 'healthCheck'>;
  readonly hosts: readonly HostSnapshot[];
  /** Byte address of what `hosts` are picked from (assembly/layout/lb.ts, LISTS_*). */
  readonly hostLists: number;
  /** First cell of the cluster's counters and gauges (CLUSTER_STATS). */
  readonly statBlock: number;
  /** First cells of TIMEOUT_BUDGET_STATS and MESSAGE_SIZE_STATS, NO_CELLS where nobody wants to know. */
  readonly budgetBlock: number;
  readonly sizeBlock: number;
  /** First cell of CLUSTER_LOAD_STATS; absent where no load is reported. */
  readonly loadBlock?: number;
  /** First cell of TLS_STATS, NO_CELLS where no connection is secured. */
  readonly tlsBlock: number;
  /** The same of SSL_SOCKET_FACTORY_STATS. */
  readonly tlsFactoryBlock: number;
  /** First cell of HTTP2_STATS, NO_CELLS where requests go over HTTP/1 alone. */
  readonly http2Block: number;
  /** Byte address of the cluster's shared active counts (CLUSTER_*). */
  readonly recordAddress: number;
  readonly addedViaApi: boolean;
  /** Its hosts are checked, and may ask in their answers to be left out. */
  readonly isHealthChecked: boolean;
  /** Where requests wait for lookups: the record of how many do, and how many may. Absent elsewhere. */
  readonly lookups?: LookupLimit;
  /** Of an aggregate cluster, whose requests are shared out among others; absent elsewhere. */
  readonly aggregate?: AggregateShares;
}

/** Over all workers. */
export interface LookupLimit {
  /** Byte address of a count record (COUNT_*). */
  readonly record: number;
  readonly max: number;
  /** First cell of DNS_CACHE_WORKER_STATS. */
  readonly statBlock: number;
  /** After which nobody waits any more, whatever has become of the lookup. */
  readonly waitMs: number;
}
