// Notes on the fields of a cluster itself. What they hold is in the files beside this one.

import type { MessageNotes } from './note.ts';
import { DNS_FIELDS } from './shared-fields.ts';
import {
  BREAKERS,
  BUFFERS,
  CHECKER,
  CHECKS,
  CLIENT_POOLS,
  CONVERSION,
  DNS_CLIENT,
  DNS_SETTINGS,
  EDS_SETTINGS,
  EJECTIONS,
  FAILURES,
  HOST_LISTS,
  HTTP2_UPSTREAM,
  LIMITS,
  MEASURES,
  METADATA,
  ORIGINAL_DST,
  POLICY,
  PRECONNECT,
  SOCKET_MATCHES,
  SUBSET_ROUTES,
  TRAILERS,
  UPDATES,
  UPSTREAM_FILTERS,
  UPSTREAM_TLS,
} from './tests.ts';

export const OWN_NOTES: Readonly<Record<string, MessageNotes>> = {
  'proxy.config.cluster.v3.Cluster': {
    about: `| type | members |
|---|---|
| \`STATIC\` | the addresses of \`load_assignment\` |
| \`STRICT_DNS\` | every address of each name in \`load_assignment\` |
| \`LOGICAL_DNS\` | one; new connections go to the address that was found last |
| \`EDS\` | those that discovery brings ([how](xds.md#endpoints)) |
| \`ORIGINAL_DST\` | wherever clients meant to go, before the connection was redirected here or by a header |
| \`cluster_type\` \`envoy.clusters.dynamic_forward_proxy\` | the hosts that requests name, looked up when they do ([how](filters.md#dynamic_forward_proxy)) |
| \`cluster_type\` \`envoy.clusters.aggregate\` | those of other clusters |

| lb_policy | host of a request |
|---|---|
| \`ROUND_ROBIN\` | each in its turn, by weight |
| \`LEAST_REQUEST\` | of two random ones that with fewer requests; where weights differ, by weight over requests |
| \`RANDOM\` | any; weights do not count |
| \`RING_HASH\`, \`MAGLEV\` | the same one for the same hash, which routes or the cluster make by \`hash_policy\`; by weight |
| \`CLUSTER_PROVIDED\`, in the older form \`ORIGINAL_DST_LB\` | the one that the client named: type \`ORIGINAL_DST\`, and forward proxies; aggregate clusters leave it to the cluster that has the host |
| \`LOAD_BALANCING_POLICY_CONFIG\` | as \`load_balancing_policy\` says |`,
    test: CONVERSION,
    fields: {
      name: ['The name that routes use; one cluster has it.', 'required', LIMITS],
      alt_stat_name: ['The name in statistics and listings; `:` becomes `_` in statistics.', '`name`', LIMITS],
      type: ['Where members come from.', '`STATIC`'],
      cluster_type: [
        'The type by its name, or settings for DNS, aggregate clusters and forward proxies.',
        'none',
        DNS_SETTINGS,
      ],
      connect_timeout: ['How long a connection may take to be there, above 0.', '5 s', FAILURES],
      per_connection_buffer_limit_bytes: [
        'What may wait of a response for its client; reads stay below it, down to 1 KiB. The lower of this and that of the listener holds.',
        '1 MiB',
        BUFFERS,
      ],
      lb_policy: ['How hosts are chosen.', '`ROUND_ROBIN`', HOST_LISTS],
      load_balancing_policy: [
        'Policies with their options, of which the first that this build has counts, in place of `lb_policy`, of its options, and of what `common_lb_config` says of zones, localities and hashing.',
        'none',
        POLICY,
      ],
      lb_subset_config: ['Requests choose among hosts by metadata.', 'they do not', SUBSET_ROUTES],
      round_robin_lb_config: ['Options of `ROUND_ROBIN`.', 'none', LIMITS],
      least_request_lb_config: ['Options of `LEAST_REQUEST`, and of no other policy.', 'none', LIMITS],
      ring_hash_lb_config: ['Options of `RING_HASH`, and of no other policy.', 'none', LIMITS],
      maglev_lb_config: ['Options of `MAGLEV`, and of no other policy.', 'none', LIMITS],
      original_dst_lb_config: ['Where requests name their hosts, in `ORIGINAL_DST` clusters.', 'none', ORIGINAL_DST],
      cleanup_interval: [
        'Hosts of `ORIGINAL_DST` clusters that nobody has used for one to two of these go, above 0.',
        '5 s',
        ORIGINAL_DST,
      ],
      hosts: ['Members of equal weight; an address that comes twice is one host.', 'none'],
      eds_cluster_config: ['Where the endpoints of type `EDS` come from.', 'required with it', EDS_SETTINGS],
      load_assignment: [
        'Members with priorities, localities, weights and health.',
        'none; required without `hosts`, but of clusters by discovery, which may be empty',
      ],
      health_checks: ['Main asks each host how it is.', 'nobody asks', CHECKS],
      outlier_detection: ['Hosts that fail more than they should are left alone for a while.', 'nobody is', EJECTIONS],
      max_requests_per_connection: ['Requests after which a connection closes.', 'no limit', FAILURES],
      circuit_breakers: ['What may run and wait at a time, over all workers.', 'the limits below', BREAKERS],
      tls_context: ['The older form of `transport_socket` for TLS.', 'plain TCP', UPSTREAM_TLS],
      upstream_http_protocol_options: ['Names of TLS that requests bring.', 'none', UPSTREAM_TLS],
      http_protocol_options: ['Options of HTTP/1.', 'none', TRAILERS],
      http2_protocol_options: ['HTTP/2 is spoken, with prior knowledge, and its options.', 'none', HTTP2_UPSTREAM],
      common_http_protocol_options: ['Options of HTTP.', 'none', FAILURES],
      typed_extension_protocol_options: ['The newer form of the HTTP options, and those of Redis.', 'none'],
      protocol_selection: [
        'Which protocol is spoken: what is configured, or what the client speaks.',
        '`USE_CONFIGURED_PROTOCOL`',
        HTTP2_UPSTREAM,
      ],
      ...DNS_FIELDS,
      dns_resolvers: ['Servers that lookups ask.', 'those of the bootstrap, or of the system', DNS_SETTINGS],
      dns_resolution_config: ['Servers that lookups ask, and how.', 'none', DNS_SETTINGS],
      use_tcp_for_dns_lookups: ['Lookups use TCP alone.', '`false`', DNS_CLIENT],
      transport_socket: [
        'What connections are made of: TLS or plain TCP, perhaps behind a PROXY header.',
        'plain TCP',
        UPSTREAM_TLS,
      ],
      metadata: ['Values for access logs and header values, by namespace.', 'none', METADATA],
      common_lb_config: ['Options of all balancers.', 'none', HOST_LISTS],
      upstream_bind_config: [
        'The address that connections come from.',
        'that of `cluster_manager`, or the choice of the system',
        UPDATES,
      ],
      upstream_connection_options: ['Options of the sockets.', 'none', UPDATES],
      track_timeout_budgets: [
        'Histograms of the percent of their time that requests and tries have used; `track_cluster_stats` may say it, too.',
        '`false`',
        MEASURES,
      ],
      track_cluster_stats: ['What is recorded of requests beside the usual.', 'nothing', MEASURES],
      close_connections_on_host_health_failure: [
        'Proxied TCP connections to a host that fails end.',
        '`false`',
        CHECKS,
      ],
      ignore_health_on_host_removal: [
        'A host that discovery no longer finds goes although it passes its checks.',
        '`false`',
        CHECKER,
      ],
      filters: ['Network filters of upstream connections.', 'none', UPSTREAM_FILTERS],
      transport_socket_matches: [
        'What connections are made of, by metadata of endpoints; the first match counts.',
        'transport_socket for all',
        SOCKET_MATCHES,
      ],
      connection_pool_per_downstream_connection: [
        'Each HTTP client has connections of its own, which end with it.',
        '`false`',
        CLIENT_POOLS,
      ],
      preconnect_policy: ['HTTP connections are there before the requests that need them.', 'none', PRECONNECT],
      wait_for_warm_on_init: ['The server goes live when the first lookups and checks have ended.', '`true`', CHECKER],
    },
  },
};
