// Support rows of clusters and their endpoints.

import {
  extensions,
  only,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';
import { CARES_RESOLVER, RAW_BUFFER, READ_AS_TYPED } from './extensions.ts';

const HTTP_OPTIONS = 'proxy.extensions.upstreams.http.v3.HttpProtocolOptions';

export const CLUSTER_SUPPORT: SupportTable = {
  'proxy.config.cluster.v3.Cluster': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      alt_stat_name: supported(),
      type: only(['STATIC', 'STRICT_DNS', 'LOGICAL_DNS']),
      connect_timeout: supported(),
      per_connection_buffer_limit_bytes: supported(),
      lb_policy: only(['ROUND_ROBIN', 'RANDOM', 'LEAST_REQUEST', 'RING_HASH', 'MAGLEV']),
      round_robin_lb_config: warned(),
      lb_subset_config: supported(),
      least_request_lb_config: supported(),
      ring_hash_lb_config: supported(),
      maglev_lb_config: supported(),
      hosts: supported('the v2 form of load_assignment'),
      load_assignment: supported(),
      health_checks: warned('members have the health that the configuration gives them'),
      outlier_detection: warned('no member is ejected'),
      max_requests_per_connection: supported(),
      circuit_breakers: supported(),
      http_protocol_options: supportedAs('upstream'),
      http2_protocol_options: rejected('upstreams are spoken to in HTTP/1.1'),
      common_http_protocol_options: supportedAs('upstream'),
      upstream_http_protocol_options: warned('concerns TLS'),
      typed_extension_protocol_options: extensions([HTTP_OPTIONS]),
      tcp_protocol_options: warned('never had an effect'),
      grpc_protocol_options: warned('never had an effect'),
      protocol_selection: only(['USE_CONFIGURED_PROTOCOL']),
      dns_refresh_rate: supported(),
      dns_failure_refresh_rate: supported(),
      dns_jitter: supported(),
      respect_dns_ttl: supported(),
      dns_lookup_family: supported(),
      dns_resolvers: supported('dns_resolution_config supersedes it; without any, the resolver of the bootstrap'),
      dns_resolution_config: supported(),
      typed_dns_resolver_config: supportedAs('DNS resolver', 'supersedes the other forms'),
      use_tcp_for_dns_lookups: supported('of dns_resolvers, or of the servers of the bootstrap'),
      cleanup_interval: warned('concerns ORIGINAL_DST clusters'),
      transport_socket: supportedAs('upstream'),
      metadata: supportedWhole('kept; nothing reads it'),
      common_lb_config: supported(),
      upstream_bind_config: supported(),
      upstream_connection_options: supported(),
      close_connections_on_host_health_failure: warned('no member is checked, so none fails'),
      ignore_health_on_host_removal: supported('no member is checked, so all of them go at once'),
      lrs_server: warned(),
      lrs_report_endpoint_metrics: warned(),
      track_timeout_budgets: warned(),
      track_cluster_stats: warned(),
      preconnect_policy: warned(),
      connection_pool_per_downstream_connection: warned(),
      wait_for_warm_on_init: supported(),
    },
  },
  'proxy.config.cluster.v3.Cluster.CommonLbConfig': {
    otherwise: warned(),
    fields: {
      healthy_panic_threshold: supportedWhole(),
      close_connections_on_host_set_change: supported(),
      zone_aware_lb_config: supported(),
      locality_weighted_lb_config: supportedWhole(),
      override_host_status: rejected(),
      consistent_hashing_lb_config: supported(),
      update_merge_window: supported('changes of members are none that merging concerns'),
    },
  },
  'proxy.config.cluster.v3.Cluster.CommonLbConfig.ZoneAwareLbConfig': {
    otherwise: rejected(),
    fields: {
      fail_traffic_on_panic: supported('not with RING_HASH and MAGLEV, which ignore it'),
      routing_enabled: warned('takes effect only with a local cluster'),
      min_cluster_size: warned('takes effect only with a local cluster'),
    },
  },
  'proxy.config.cluster.v3.Cluster.LeastRequestLbConfig': {
    otherwise: warned(),
    fields: { choice_count: supported(), active_request_bias: supported() },
  },
  'proxy.config.cluster.v3.Cluster.LbSubsetConfig': {
    otherwise: rejected(),
    fields: {
      fallback_policy: supported(),
      default_subset: supportedWhole(),
      subset_selectors: supported(),
      locality_weight_aware: supported(),
      scale_locality_weight: supported(),
      panic_mode_any: supported(),
      list_as_any: supported(),
      metadata_fallback_policy: only(['METADATA_NO_FALLBACK']),
    },
  },
  'proxy.config.cluster.v3.Cluster.LbSubsetConfig.LbSubsetSelector': {
    otherwise: rejected(),
    fields: {
      keys: supported(),
      fallback_policy: supported(),
      fallback_keys_subset: supported(),
      single_host_per_subset: supported(),
    },
  },
  'proxy.config.cluster.v3.Cluster.RingHashLbConfig': {
    otherwise: rejected(),
    fields: { minimum_ring_size: supported(), maximum_ring_size: supported(), hash_function: supported() },
  },
  'proxy.config.cluster.v3.Cluster.MaglevLbConfig': {
    otherwise: rejected(),
    fields: { table_size: supported() },
  },
  'proxy.config.cluster.v3.Cluster.CommonLbConfig.ConsistentHashingLbConfig': {
    otherwise: rejected(),
    fields: { use_hostname_for_hashing: supported() },
  },
  'proxy.config.core.v3.RuntimeDouble': {
    otherwise: warned('the default value applies'),
    fields: { default_value: supported() },
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
    otherwise: warned(),
    fields: {
      resolvers: supported(),
      dns_resolver_options: supported(),
      use_resolvers_as_fallback: supported(),
      udp_max_queries: supported('every question has a port of its own'),
      query_timeout_seconds: supported(),
      query_tries: supported(),
      rotate_nameservers: supported(),
      max_udp_channel_duration: supported('every question has a port of its own'),
      reinit_channel_on_timeout: supported('every question has a port of its own'),
    },
  },
  'proxy.config.core.v3.BindConfig': {
    otherwise: rejected(),
    fields: { source_address: supported() },
  },
  'proxy.config.cluster.v3.UpstreamConnectionOptions': {
    otherwise: warned(),
    fields: { tcp_keepalive: supported() },
  },
  'proxy.config.core.v3.TcpKeepalive': {
    otherwise: rejected(),
    fields: { keepalive_probes: supported(), keepalive_time: supported(), keepalive_interval: supported() },
  },
  'proxy.config.cluster.v3.CircuitBreakers': {
    otherwise: warned(),
    fields: { thresholds: supported() },
  },
  'proxy.config.cluster.v3.CircuitBreakers.Thresholds': {
    otherwise: warned(),
    fields: {
      priority: supported(),
      max_connections: supported(),
      max_pending_requests: supported(),
      max_requests: supported(),
      max_retries: supported(),
    },
  },
  'proxy.config.core.v3.HttpProtocolOptions (upstream)': {
    otherwise: warned(),
    fields: {
      idle_timeout: supported(),
      max_connection_duration: supported(),
      max_requests_per_connection: supported(),
    },
  },
  'proxy.config.core.v3.Http1ProtocolOptions (upstream)': {
    otherwise: warned(),
    fields: { enable_trailers: supported(), send_fully_qualified_url: rejected() },
  },
  [HTTP_OPTIONS]: {
    otherwise: rejected(),
    fields: {
      common_http_protocol_options: supportedAs('upstream'),
      upstream_http_protocol_options: warned('concerns TLS'),
      explicit_http_config: supported(),
      outlier_detection: warned(),
      retry_policy: warned(),
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig': {
    otherwise: rejected(),
    fields: { http_protocol_options: supportedAs('upstream') },
  },
  'proxy.config.core.v3.TransportSocket (upstream)': {
    otherwise: rejected(),
    fields: { name: supported(), config: supported(READ_AS_TYPED), typed_config: extensions([RAW_BUFFER]) },
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
    otherwise: warned(),
    fields: {
      overprovisioning_factor: supported(),
      weighted_priority_health: supported(),
      drop_overload: rejected('an early form of drop_overloads'),
      drop_overloads: rejected(),
      endpoint_stale_after: supported('a configured assignment never goes stale'),
    },
  },
  'proxy.config.endpoint.v3.LocalityLbEndpoints': {
    otherwise: rejected(),
    fields: {
      locality: supportedWhole(),
      lb_endpoints: supported(),
      load_balancer_endpoints: supported(),
      load_balancing_weight: supported('takes effect with locality_weighted_lb_config'),
      priority: supported(),
      proximity: warned(),
      metadata: supportedWhole('kept; nothing reads it'),
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
      metadata: supportedWhole('the balancer namespace: canary, hash_key, and what subsets go by'),
      load_balancing_weight: supported(),
    },
  },
  'proxy.config.endpoint.v3.Endpoint': {
    otherwise: warned(),
    fields: { address: supported(), hostname: supported() },
  },
};
