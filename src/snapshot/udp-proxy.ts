// What a listener for datagrams does with them.

import type { AccessLogSettings, ReportedLogSettings } from './access-log.ts';
import type { MatchTree } from './matcher.ts';

/** What the hosts of clusters that hash are chosen by: the client's address, or a text that is the same for all. */
export type UdpHashPolicy = { readonly kind: 'source-ip' } | { readonly kind: 'key'; readonly key: string };

export interface UdpMatcher {
  readonly tree: MatchTree<string>;
  /** All that the tree can lead to, each once. */
  readonly clusters: readonly string[];
}

export interface UdpProxySettings {
  readonly statPrefix: string;
  /** Empty where a matcher says it. */
  readonly cluster: string;
  /** Chooses the cluster of each session; absent where they all have the same. */
  readonly matcher?: UdpMatcher;
  /** A session ends when no datagram has passed either way for this time; 0 for never. */
  readonly idleTimeoutMs: number;
  readonly hashPolicy: UdpHashPolicy | null;
  /** A host is chosen for each datagram, and not for each session. */
  readonly picksPerDatagram: boolean;
  /** Longer ones are dropped: of clients, and of hosts. */
  readonly maxClientDatagramBytes: number;
  readonly maxHostDatagramBytes: number;
  /** One entry for each session, at its end. */
  readonly accessLogs: readonly AccessLogSettings[];
  /** Absent without any. */
  readonly reportedLogs?: readonly ReportedLogSettings[];
}

export interface UdpProxySnapshot {
  /** First cells of UDP_PROXY_STATS, of UDP_CLUSTER_STATS by cluster, and of UDP_LISTENER_STATS. */
  readonly statBlock: number;
  readonly clusterStatBlocks: Readonly<Record<string, number>>;
  readonly listenerStatBlock: number;
}
