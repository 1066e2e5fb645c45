// One upstream cluster as the control plane publishes it. Settings come from the configuration as they
// are; the rest are places in shared memory that the main thread has allocated for the workers.

import type { Address, IpAddress } from '../base/address.ts';
import type { FamilyOrder } from '../base/address-families.ts';
import type { RetryBudget } from '../base/circuit-limits.ts';
import type { SourcesByFamily } from '../base/own-sockets.ts';
import type { ProxyHeaderSettings } from '../base/proxy-header.ts';
import type { Fraction, RuntimeSetting } from '../base/runtime.ts';
import type { MetadataPair } from '../base/subset-key.ts';
import type { ConfigSourceSettings } from './config-source.ts';
import type { DnsResolverSettings } from './dns-resolver.ts';
import type { EndpointCheckSettings, HealthCheckSettings, ServerCredentials } from './health-check.ts';
import type { Http2Settings } from './http2.ts';
import type { Metadata } from './metadata.ts';
import type { OutlierSettings } from './outlier.ts';
import type { RetrySettings } from './retry.ts';
import type { HashPolicy, MirrorPolicy } from './route-table.ts';
import type { UpstreamTlsSettings } from './tls.ts';

export type LoadBalancingPolicy =
  | 'ROUND_ROBIN'
  | 'LEAST_REQUEST'
  | 'RING_HASH'
  | 'RANDOM'
  | 'MAGLEV'
  | 'CLUSTER_PROVIDED';

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

export interface Locality {
  readonly region: string;
  readonly zone: string;
  readonly subZone: string;
}

/** What the configuration says of a member's health; `draining` and `timeout` count as unhealthy, `unknown` as healthy. */
export type ConfiguredHealth = 'unknown' | 'healthy' | 'degraded' | 'unhealthy' | 'timeout' | 'draining';

/** What all hosts of one endpoint have in common, however many addresses it turns out to have. */
export interface EndpointSettings {
  /** The configured DNS name, or empty. */
  readonly hostname: string;
  /** Load-balancing weight within its locality, 1 or more. */
  readonly weight: number;
  readonly locality: Locality;
  /** Weight of the locality within its priority, where localities are weighed; 0 for no traffic. */
  readonly localityWeight: number;
  /** 0 is the most preferred. */
  readonly priority: number;
  readonly canary: boolean;
  readonly health: ConfiguredHealth;
  /** Places the host among those that hashes choose from; empty for its name or address. */
  readonly hashKey: string;
  /** Of the keys that the cluster's subsets go by. */
  readonly subsetValues: readonly SubsetValue[];
  /** For formats; absent without any. */
  readonly metadata?: Metadata;
  /** Absent when the endpoint wants nothing of its own. */
  readonly check?: EndpointCheckSettings;
}

/** A member of a cluster, before it has a place in shared memory. */
export interface HostSettings extends EndpointSettings {
  readonly address: Address;
  /** Name of a member whose address changes while it stays the same member; absent where the address names it. */
  readonly logicalName?: string;
  /** What clients call the member, where that is no address; `logicalName` is the same as text. */
  readonly named?: NamedAddress;
  /** Of a member with several addresses: where connections are tried, in this order. Two or more; `address` is among them. */
  readonly connectOrder?: readonly IpAddress[];
}

/** Which kinds of address a lookup asks for; AUTO and V4_PREFERRED ask for the second kind where the first is empty. */
export type DnsLookupFamily = 'AUTO' | 'V4_ONLY' | 'V6_ONLY' | 'V4_PREFERRED' | 'ALL';

/** An endpoint whose addresses a lookup finds. */
export interface DnsTarget extends EndpointSettings {
  /** A host name in ASCII, or an IP literal that needs no lookup. */
  readonly name: string;
  readonly port: number;
}

export interface DnsDiscoverySettings {
  /**
   * `strict-dns`: every address that is found is a member. `logical-dns`: one member, whose addresses are those that
   * were found last.
   */
  readonly kind: 'strict-dns' | 'logical-dns';
  /** Exactly one with `logical-dns`. */
  readonly targets: readonly DnsTarget[];
  readonly lookupFamily: DnsLookupFamily;
  /** Of the addresses of one member. */
  readonly familyOrder: FamilyOrder;
  readonly refreshRateMs: number;
  /** Waits after failures, random below a bound that doubles from base to max; undefined: the refresh rate. */
  readonly failureRefresh: { readonly baseMs: number; readonly maxMs: number } | undefined;
  /** A random part of this is added to every wait; 0 for none. */
  readonly jitterMs: number;
  /** Look up again when the shortest-lived record expires. */
  readonly respectTtl: boolean;
  readonly resolver: DnsResolverSettings;
}

/** Members are made where connections and requests ask for them, and go when nobody does any more. */
export interface OriginalDstDiscoverySettings {
  readonly kind: 'original-dst';
  /** Members that nobody has used for one to two such times go; above 0. */
  readonly cleanupIntervalMs: number;
}

/** A host that a client has named. */
export interface NamedAddress {
  /** A host name in lower-case ASCII, or an IP literal. */
  readonly name: string;
  readonly port: number;
}

/** Hosts that clients name, and how their names are looked up. Clusters that name one cache share it. */
export interface DnsCacheSettings {
  readonly name: string;
  readonly lookupFamily: DnsLookupFamily;
  /** Between lookups of names whose records say nothing of their life. */
  readonly refreshRateMs: number;
  /** However short records live. */
  readonly minRefreshRateMs: number;
  /** As in DnsDiscoverySettings. */
  readonly failureRefresh: DnsDiscoverySettings['failureRefresh'];
  /** A name that has no address is not kept. */
  readonly forgetsFailures: boolean;
  /** Hosts that nobody has used for so long go; above 0. */
  readonly hostTtlMs: number;
  /** 1 or more. */
  readonly maxHosts: number;
  /** Of requests and connections that wait for lookups, over all workers. */
  readonly maxPending: number;
  /** For a whole lookup; 0 for any time. */
  readonly queryTimeoutMs: number;
  /** Looked up at the start. */
  readonly preresolved: readonly NamedAddress[];
  readonly resolver: DnsResolverSettings;
}

/** Members are the hosts that requests and connections name. */
export interface ForwardProxyDiscoverySettings {
  readonly kind: 'forward-proxy';
  readonly cache: DnsCacheSettings;
}

/** What workers are to know of a cluster whose members clients name. */
export interface ForwardProxySettings {
  /** Of hosts that are named without one. */
  readonly defaultPort: number;
  /** TLS asks each host for its own name, and verifies it. */
  readonly namesServers: boolean;
}

/** Where a cluster's members come from; a static cluster has them in its settings. */
export type DiscoverySettings =
  | { readonly kind: 'static' }
  | DnsDiscoverySettings
  | OriginalDstDiscoverySettings
  | ForwardProxyDiscoverySettings
  | EdsDiscoverySettings
  | RedisDiscoverySettings;

/** Servers of Redis that tell which of them has which keys, in `metadata` of members (REDIS_CLUSTER_METADATA). */
export interface RedisDiscoverySettings {
  readonly kind: 'redis';
  /** Who is asked first. */
  readonly seeds: DnsDiscoverySettings;
  /** Between two questions. */
  readonly refreshMs: number;
  /** Of one question. */
  readonly timeoutMs: number;
  /** At least between questions for redirections. */
  readonly redirectIntervalMs: number;
}

/** Where endpoints by discovery (EDS) come from, and how they are read. */
export interface EdsDiscoverySettings {
  readonly kind: 'eds';
  /** What the cluster is called there; empty for its own name. */
  readonly serviceName: string;
  readonly source: ConfigSourceSettings;
  /** Of the endpoints' metadata, by which the cluster makes subsets. */
  readonly subsetKeys: readonly string[];
  /** Of the addresses of one member. */
  readonly familyOrder: FamilyOrder;
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

export interface LeastRequestSettings {
  /** Random hosts to compare, 2 or more. */
  readonly choiceCount: number;
  /** Exponent of the active requests in a host's weight; undefined when not configured, which means 1. */
  readonly activeRequestBias: number | undefined;
  /** Under which the runtime may have another; empty for none. */
  readonly activeRequestBiasKey: string;
  /** The least busy of all hosts, where they weigh the same. */
  readonly comparesAll: boolean;
}

/** A new host gets a share of its weight, which grows. */
export interface SlowStartSettings {
  /** Until it has its whole weight, above 0. */
  readonly windowMs: number;
  /** Above 0; 1 grows evenly, more starts faster. */
  readonly aggression: RuntimeSetting<number>;
  /** Least share, 0 to 100. */
  readonly minWeightPercent: number;
}

/** Requests prefer hosts in the locality of this proxy, where a local cluster says how many proxies are where. */
export interface ZoneRoutingSettings {
  /** Of requests, unless the runtime says otherwise; whole percent. */
  readonly enabledPercent: number;
  /** With fewer healthy hosts all are alike, unless the runtime says otherwise. */
  readonly minClusterSize: number;
  /** From so many healthy hosts on, the own locality gets all requests; null for no such rule. */
  readonly forcedFrom: number | null;
  /** What localities can take goes by the weights of their hosts instead of their number. */
  readonly goesByWeight: boolean;
}

/** How an entry of a ring is placed; requests are always hashed by XX_HASH. */
export type HashFunction = 'XX_HASH' | 'MURMUR_HASH_2';

/** Options of the balancers that send equal hashes to the same host. */
export interface HashingSettings {
  /** Entries, 1 to 8388608. */
  readonly minimumRingSize: number;
  readonly maximumRingSize: number;
  readonly hashFunction: HashFunction;
  /** A prime. */
  readonly maglevTableSize: number;
  /** Hosts are placed by their names instead of their addresses. */
  readonly usesHostname: boolean;
  /** How much of its share of the requests in flight a host may have, 100 or more; 0 for no bound. */
  readonly balancePercent: number;
  /** What requests are hashed by, whatever their routes say of it; empty for what those say. */
  readonly policies: readonly HashPolicy[];
}

/** What a request asks of its host's metadata, ascending by key; one or more. */
export type SubsetCriteria = readonly MetadataPair[];

/** What a host's metadata says under a key that subsets go by. */
export interface SubsetValue {
  readonly key: string;
  /** As in MetadataPair. */
  readonly value: string;
  /** Of a list: each of its values; null for anything else. */
  readonly elements: readonly string[] | null;
}

/** Where requests go whose subset does not exist. */
export type SubsetFallback = 'none' | 'any-host' | 'default-subset';

/** Hosts that have all of the keys make a subset for each combination of their values. */
export interface SubsetSelector {
  /** Ascending, one or more. */
  readonly keys: readonly string[];
  /** `fewer-keys`: tries again with `fallbackKeys` alone; `cluster`: as the cluster has it. */
  readonly fallback: SubsetFallback | 'fewer-keys' | 'cluster';
  /** Ascending. */
  readonly fallbackKeys: readonly string[];
  /** Each subset has one host, the first. */
  readonly isSingleHost: boolean;
}

export interface SubsetSettings {
  /** One or more. */
  readonly selectors: readonly SubsetSelector[];
  readonly fallback: SubsetFallback;
  /** Hosts of the default subset have all of this; those are all hosts when it is empty. */
  readonly defaultSubset: readonly MetadataPair[];
  /** Localities are weighed within subsets, too. */
  readonly weighsLocalities: boolean;
  /** The weight of a locality shrinks with the share of its hosts that is in the subset. */
  readonly scalesLocalityWeights: boolean;
  /** When the fallback has no host to give, any host is picked. */
  readonly panicModeAny: boolean;
  /** A host with a list is in the subsets of all its elements. */
  readonly listAsAny: boolean;
  /** Requests may name a list of what they ask, of which the first that finds a host counts. */
  readonly takesAlternatives: boolean;
  /** Of what a request asks, keys that no selector has beside the others do not count. */
  readonly allowsRedundantKeys: boolean;
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
