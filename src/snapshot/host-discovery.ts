// Where the members of a cluster come from, as the configuration has it.

import type { FamilyOrder } from '../base/address-families.ts';
import type { ConfigSourceSettings } from './config-source.ts';
import type { DnsResolverSettings } from './dns-resolver.ts';
import type { EndpointSettings, NamedAddress } from './endpoint.ts';

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
