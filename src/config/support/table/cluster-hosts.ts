// Support rows of how clusters find their hosts: DNS, and endpoints by name.

import { extensions, rejected, type SupportTable, supported, supportedAs, supportedWhole, warned } from '../verdict.ts';
import { AGGREGATE_CLUSTER, CARES_RESOLVER, DNS_CLUSTER, FORWARD_PROXY_CLUSTER, REDIS_CLUSTER } from './extensions.ts';

export const CLUSTER_HOSTS_SUPPORT: SupportTable = {
  'proxy.config.cluster.v3.Cluster.CustomClusterType': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      typed_config: extensions(
        [DNS_CLUSTER, FORWARD_PROXY_CLUSTER, AGGREGATE_CLUSTER, REDIS_CLUSTER],
        ['cluster.static', 'cluster.strict_dns', 'cluster.logical_dns', 'cluster.eds', 'cluster.original_dst'],
      ),
    },
  },
  [DNS_CLUSTER]: {
    otherwise: rejected(),
    fields: {
      dns_refresh_rate: supported(),
      dns_failure_refresh_rate: supported(),
      respect_dns_ttl: supported(),
      dns_jitter: supported(),
      typed_dns_resolver_config: supportedAs('DNS resolver', 'otherwise the resolver of the bootstrap'),
      dns_lookup_family: supported(),
      all_addresses_in_single_endpoint: supported('makes it a LOGICAL_DNS cluster'),
    },
  },
  [FORWARD_PROXY_CLUSTER]: {
    otherwise: rejected(),
    fields: {
      dns_cache_config: supported(),
      sub_clusters_config: rejected('hosts share the settings of their cluster; use dns_cache_config'),
      allow_insecure_cluster_options: supported(),
      allow_coalesced_connections: warned('each host has connections of its own'),
    },
  },
  [AGGREGATE_CLUSTER]: {
    otherwise: rejected(),
    fields: { clusters: supported('their priorities one behind the other; aggregate clusters among them by theirs') },
  },
  [REDIS_CLUSTER]: {
    otherwise: rejected(),
    fields: {
      cluster_refresh_rate: supported(),
      cluster_refresh_timeout: supported(),
      redirect_refresh_interval: supported('between questions for redirections to servers that are not known'),
      redirect_refresh_threshold: warned('the first redirection to a server that is not known is enough'),
      failure_refresh_threshold: warned('servers are asked at each cluster_refresh_rate'),
      host_degraded_refresh_threshold: warned('servers are asked at each cluster_refresh_rate'),
    },
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig': {
    otherwise: rejected(),
    fields: {
      name: supported('in the names of stats'),
      dns_lookup_family: supported(),
      dns_refresh_rate: supported(),
      dns_min_refresh_rate: supported(),
      dns_failure_refresh_rate: supported(),
      disable_dns_refresh_on_failure: supported(),
      host_ttl: supported(),
      max_hosts: supported(),
      dns_cache_circuit_breaker: supported(),
      dns_query_timeout: supported(),
      preresolve_hostnames: supported(),
      use_tcp_for_dns_lookups: supported(),
      dns_resolution_config: supported(),
      typed_dns_resolver_config: supportedAs('DNS resolver', 'otherwise the resolver of the bootstrap'),
      key_value_config: rejected('each process looks names up anew'),
    },
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheCircuitBreakers': {
    otherwise: rejected(),
    fields: { max_pending_requests: supported('over all workers') },
  },
  'proxy.extensions.clusters.dns.v3.DnsCluster.RefreshRate': {
    otherwise: rejected(),
    fields: { base_interval: supported(), max_interval: supported() },
  },
  'proxy.config.cluster.v3.Cluster.RefreshRate': {
    otherwise: rejected(),
    fields: { base_interval: supported(), max_interval: supported() },
  },
  'proxy.config.core.v3.DnsResolutionConfig': {
    otherwise: rejected(),
    fields: { resolvers: supported(), dns_resolver_options: supported() },
  },
  'proxy.config.core.v3.DnsResolverOptions': {
    otherwise: rejected(),
    fields: { use_tcp_for_dns_lookups: supported(), no_default_search_domain: supported() },
  },
  'proxy.config.core.v3.TypedExtensionConfig (DNS resolver)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([CARES_RESOLVER]) },
  },
  [CARES_RESOLVER]: {
    otherwise: rejected(),
    fields: {
      resolvers: supported(),
      dns_resolver_options: supported(),
      use_resolvers_as_fallback: supported(),
      filter_unroutable_families: supported(),
      udp_max_queries: supported('every question has a port of its own'),
      query_timeout_seconds: supported(),
      query_tries: supported(),
      rotate_nameservers: supported(),
      edns0_max_payload_size: supported('512 to 4096'),
      max_udp_channel_duration: supported('every question has a port of its own'),
      reinit_channel_on_timeout: supported('every question has a port of its own'),
    },
  },
  'proxy.config.endpoint.v3.Endpoint.AdditionalAddress': {
    otherwise: rejected(),
    fields: { address: supported() },
  },
  'proxy.config.endpoint.v3.ClusterLoadAssignment': {
    otherwise: rejected(),
    fields: {
      cluster_name: supported(),
      endpoints: supported(),
      named_endpoints: supported(),
      policy: supported(),
    },
  },
  'proxy.config.endpoint.v3.ClusterLoadAssignment.Policy': {
    otherwise: rejected(),
    fields: {
      overprovisioning_factor: supported(),
      weighted_priority_health: supported(),
      disable_overprovisioning: supported('overprovisioning_factor does not count then'),
      drop_overload: supported('an early form of drop_overloads'),
      drop_overloads: supported('one category at most'),
      endpoint_stale_after: supported('of assignments by discovery; a configured one never goes stale'),
    },
  },
  'proxy.config.endpoint.v3.ClusterLoadAssignment.Policy.DropOverload': {
    otherwise: rejected(),
    fields: { category: supported(), drop_percentage: supportedWhole() },
  },
  'proxy.config.endpoint.v3.LocalityLbEndpoints': {
    otherwise: rejected(),
    fields: {
      locality: supportedWhole(),
      lb_endpoints: supported(),
      load_balancer_endpoints: supported(),
      load_balancing_weight: supported('takes effect with locality_weighted_lb_config'),
      priority: supported(),
      leds_cluster_locality_config: rejected('endpoints come with their assignment; use lb_endpoints'),
      proximity: warned('no balancer goes by it'),
      metadata: supportedWhole('no command operator asks for it'),
    },
  },
  'proxy.config.endpoint.v3.LocalityLbEndpoints.LbEndpointList': {
    otherwise: rejected(),
    fields: { lb_endpoints: supported() },
  },
  'proxy.config.endpoint.v3.LbEndpoint': {
    otherwise: rejected(),
    fields: {
      endpoint: supported(),
      endpoint_name: supported(),
      health_status: supported(),
      metadata: supportedWhole('the balancer namespace: canary, hash_key, and what subsets go by; UPSTREAM_METADATA'),
      load_balancing_weight: supported(),
    },
  },
  'proxy.config.endpoint.v3.Endpoint': {
    otherwise: rejected(),
    fields: {
      address: supported(),
      hostname: supported(),
      health_check_config: supported(),
      additional_addresses: supported('of STATIC and EDS clusters; checks go to `address`'),
    },
  },
  'proxy.config.endpoint.v3.Endpoint.HealthCheckConfig': {
    otherwise: rejected(),
    fields: {
      port_value: supported(),
      hostname: supported(),
      address: supported(),
      disable_active_health_check: supported(),
    },
  },
};
