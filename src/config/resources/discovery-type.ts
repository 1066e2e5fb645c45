// How a cluster finds its members: by its `type`, or by the name or the settings of its `cluster_type`, of which there
// is one for each type.

import { Cluster_DiscoveryType } from '../proto/generated/enums.ts';
import { enumName } from './enum-name.ts';
import { openExtension } from './extension.ts';
import type { AggregateCluster, Cluster, DnsCluster, ForwardProxyCluster, RedisCluster } from './messages.ts';

const DNS_CLUSTER = 'proxy.extensions.clusters.dns.v3.DnsCluster';
const FORWARD_PROXY_CLUSTER = 'proxy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
const AGGREGATE_CLUSTER = 'proxy.extensions.clusters.aggregate.v3.ClusterConfig';
const REDIS_CLUSTER = 'proxy.extensions.clusters.redis.v3.RedisClusterConfig';
/** There are no such DiscoveryTypes: they are a cluster_type alone. */
export const FORWARD_PROXY_TYPE = 'DYNAMIC_FORWARD_PROXY';
export const AGGREGATE_TYPE = 'AGGREGATE';
export const REDIS_TYPE = 'REDIS';

/** Cluster types without settings, by their names behind `proxy.` or `envoy.`. */
const TYPES_BY_NAME: Readonly<Record<string, string>> = {
  'cluster.static': 'STATIC',
  'cluster.strict_dns': 'STRICT_DNS',
  'cluster.logical_dns': 'LOGICAL_DNS',
  'cluster.eds': 'EDS',
  'cluster.original_dst': 'ORIGINAL_DST',
};

/** @returns the name of a DiscoveryType, FORWARD_PROXY_TYPE, AGGREGATE_TYPE or REDIS_TYPE; undefined for another cluster type. */
export function discoveryTypeOf(cluster: Cluster): string | undefined {
  const custom = cluster.cluster_type;
  if (custom === null) return enumName(Cluster_DiscoveryType, cluster.type);
  const dns = dnsSettingsOf(cluster);
  if (dns !== undefined) return dns.all_addresses_in_single_endpoint ? 'LOGICAL_DNS' : 'STRICT_DNS';
  if (forwardProxyOf(cluster) !== undefined) return FORWARD_PROXY_TYPE;
  if (aggregateOf(cluster) !== undefined) return AGGREGATE_TYPE;
  if (redisClusterOf(cluster) !== undefined) return REDIS_TYPE;
  const name = custom.name.replace(/^(envoy|proxy)\./, '');
  return Object.hasOwn(TYPES_BY_NAME, name) ? TYPES_BY_NAME[name] : undefined;
}

/** The settings of the newer cluster type for DNS, which take the place of the cluster's own. */
export function dnsSettingsOf(cluster: Cluster): DnsCluster | undefined {
  const opened = openExtension(cluster.cluster_type?.typed_config ?? null);
  return opened?.typeName === DNS_CLUSTER ? (opened.message as DnsCluster) : undefined;
}

/** The settings of the cluster type whose members requests name. */
export function forwardProxyOf(cluster: Cluster): ForwardProxyCluster | undefined {
  const opened = openExtension(cluster.cluster_type?.typed_config ?? null);
  return opened?.typeName === FORWARD_PROXY_CLUSTER ? (opened.message as ForwardProxyCluster) : undefined;
}

/** The settings of the cluster type whose hosts are those of other clusters. */
export function aggregateOf(cluster: Cluster): AggregateCluster | undefined {
  const opened = openExtension(cluster.cluster_type?.typed_config ?? null);
  return opened?.typeName === AGGREGATE_CLUSTER ? (opened.message as AggregateCluster) : undefined;
}

/** The settings of the cluster type whose members say which of them has which keys. */
export function redisClusterOf(cluster: Cluster): RedisCluster | undefined {
  const opened = openExtension(cluster.cluster_type?.typed_config ?? null);
  return opened?.typeName === REDIS_CLUSTER ? (opened.message as RedisCluster) : undefined;
}
