// Notes on where the members of a cluster come from: assignments, endpoints, addresses, DNS.

import type { FieldNote, MessageNotes } from './note.ts';
import { DNS_FIELDS } from './shared-fields.ts';
import {
  ADDRESSES,
  AGGREGATE_SETTINGS,
  AGGREGATES,
  CHECKER,
  CONVERSION,
  DNS_CACHE,
  DNS_CLIENT,
  DNS_SETTINGS,
  EDS,
  EDS_FILES,
  EDS_SETTINGS,
  FORWARD_PROXY,
  FORWARD_SETTINGS,
  HOST_ADDRESSES,
  HOST_LISTS,
  LIMITS,
  LOAD_SHEDDING,
  LOGICAL_DNS,
  METADATA,
  REDIS_CLUSTER,
  RESOLVER,
  REST_SERVERS,
  SERVER_FAULTS,
  SERVERS,
  SOURCES,
  STRICT_DNS,
} from './tests.ts';

const RATE_FIELDS: Readonly<Record<string, FieldNote>> = {
  base_interval: ['Bound of the first wait, above 0.', 'required', LIMITS],
  max_interval: ['Bound of all waits, not below the first.', '10 times `base_interval`', LIMITS],
};

export const MEMBERS_NOTES: Readonly<Record<string, MessageNotes>> = {
  'proxy.config.cluster.v3.Cluster.CustomClusterType': {
    test: DNS_SETTINGS,
    fields: {
      name: [
        '`envoy.cluster.static`, `.strict_dns`, `.logical_dns`, `.eds`, `.original_dst`, `.dns`, `envoy.clusters.aggregate` or `envoy.clusters.dynamic_forward_proxy`.',
        'required',
      ],
      typed_config: ['Settings of `.dns`, of aggregate clusters and of forward proxies.', 'none'],
    },
  },
  'proxy.config.cluster.v3.Cluster.EdsClusterConfig': {
    test: EDS_SETTINGS,
    fields: {
      eds_config: ['Where the endpoints come from.', 'required'],
      service_name: ['What the cluster is called there.', 'its name', EDS],
    },
  },
  'proxy.config.core.v3.ConfigSource': {
    test: EDS_SETTINGS,
    fields: {
      path: ['A file that holds a DiscoveryResponse.', 'none'],
      path_config_source: ['The same, with a folder that is watched in its place.', 'none', EDS_FILES],
      api_config_source: [
        'A management server: a stream of its own for endpoints, or questions by HTTP.',
        'none',
        SERVERS,
      ],
      ads: ['The stream of `dynamic_resources.ads_config`.', 'none', SERVERS],
      initial_fetch_timeout: ['A cluster that gets no answer is taken as one without members after this.', '15 s', EDS],
      resource_api_version: ['Resources of both generations are read.', '`AUTO`'],
    },
  },
  'proxy.config.core.v3.ApiConfigSource': {
    test: SOURCES,
    fields: {
      api_type: [
        '`REST` asks again and again, `GRPC` hears all there is, `DELTA_GRPC` what has changed.',
        'required',
        REST_SERVERS,
      ],
      cluster_names: ['Of `REST`: the server. One.', 'required there', REST_SERVERS],
      refresh_delay: [
        'Of `REST`: from an answer to the next question, and up to as much again.',
        'required there',
        REST_SERVERS,
      ],
      request_timeout: ['Of `REST`: from a question to the end of its answer.', '1 s', REST_SERVERS],
      grpc_services: ['Of the others: the server, and one that stands in for it.', 'required there', SERVERS],
      rate_limit_settings: ['Bounds requests.', 'any number'],
      set_node_on_first_message_only: ['Later requests of a stream do not say who asks.', 'false'],
      transport_api_version: ['Whose names the service goes by.', '`AUTO`: those of the bootstrap', SERVERS],
    },
  },
  'proxy.config.core.v3.RateLimitSettings': {
    test: SOURCES,
    fields: {
      max_tokens: ['Requests at once.', '100'],
      fill_rate: ['Requests a second behind them.', '10'],
    },
  },
  'proxy.config.core.v3.GrpcService': {
    test: SOURCES,
    fields: {
      envoy_grpc: ['The server is a cluster of the bootstrap.', 'required'],
      google_grpc: ['A server that no cluster names.', 'none', SERVER_FAULTS],
      timeout: ['Nothing: streams stay.', 'none'],
      initial_metadata: ['Said with each stream.', 'none'],
    },
  },
  'proxy.config.core.v3.GrpcService.EnvoyGrpc': {
    test: SOURCES,
    fields: {
      cluster_name: ['Whose hosts are asked in turn, the healthy ones first.', 'required'],
      authority: ['Of the requests.', 'name of the cluster'],
      max_receive_message_length: ['A longer message ends the stream.', '256 MiB'],
      retry_policy: ['Nothing: streams that end are opened again after waits of their own.', 'none'],
    },
  },
  'proxy.config.core.v3.RetryPolicy': {
    test: 'test/integration/services-asked-again.test.ts',
    fields: {
      retry_back_off: ['Nothing, of streams.', 'none'],
      num_retries: ['Nothing, of streams.', 'none'],
      retry_on: ['Nothing, of streams.', 'none'],
    },
  },
  'proxy.config.core.v3.BackoffStrategy': {
    test: 'test/integration/services-asked-again.test.ts',
    fields: { base_interval: ['Nothing, of streams.', 'none'], max_interval: ['Nothing, of streams.', 'none'] },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc': {
    test: SOURCES,
    fields: {
      target_uri: ['Where it is, by a name of gRPC; looked up with each connection.', 'required'],
      channel_credentials: ['How connections are secured.', 'cleartext', SERVER_FAULTS],
      call_credentials: ['Said with each stream, over TLS.', 'none', SERVER_FAULTS],
      stat_prefix: ['Nothing: streams count under the names of their types.', 'required'],
      credentials_factory_name: ['`envoy.grpc_credentials.default`, or nothing.', 'none'],
      channel_args: [
        'Pings, the longest message, the authority, the name in the certificate; others do nothing.',
        'none',
      ],
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelCredentials': {
    test: SOURCES,
    fields: {
      local_credentials: ['Cleartext.', 'none'],
      ssl_credentials: ['TLS; the server has to be who was asked for.', 'none', SERVER_FAULTS],
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.SslCredentials': {
    test: SOURCES,
    fields: {
      root_certs: ['Whom to believe. Read at the start.', 'those of the system', SERVER_FAULTS],
      private_key: ['Of this side. Read at the start.', 'none'],
      cert_chain: ['Of this side. Read at the start.', 'none'],
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials': {
    test: SOURCES,
    fields: { access_token: ['As `authorization: Bearer`.', 'none', SERVER_FAULTS] },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelArgs': {
    test: SOURCES,
    fields: { args: ['By their names.', 'none'] },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelArgs.Value': {
    test: SOURCES,
    fields: { string_value: ['A text.', 'none'], int_value: ['A number.', 'none'] },
  },
  'proxy.config.core.v3.PathConfigSource': {
    test: EDS_SETTINGS,
    fields: {
      path: ['A file that holds a DiscoveryResponse.', 'required', EDS_FILES],
      watched_directory: ['The file is read again when anything is moved here.', 'the file itself', EDS_FILES],
    },
  },
  'proxy.config.core.v3.WatchedDirectory': {
    test: EDS_FILES,
    fields: { path: ['Of the folder.', 'required'] },
  },
  'proxy.extensions.clusters.dns.v3.DnsCluster': {
    test: DNS_SETTINGS,
    fields: {
      ...DNS_FIELDS,
      all_addresses_in_single_endpoint: [
        'One member, whose addresses are those that were found last; the first of them stands for it.',
        '`false`',
        LOGICAL_DNS,
      ],
    },
  },
  'proxy.extensions.clusters.aggregate.v3.ClusterConfig': {
    about: `The priorities of an aggregate cluster are those of its clusters one behind the other: all of the first, then all of the second. How
much each can take goes by its own cluster's \`overprovisioning_factor\` and \`weighted_priority_health\`, whether all are in panic by the
aggregate's \`healthy_panic_threshold\`. The cluster that a request falls to chooses the host by its own policy, subsets and panic, secures the
connection, limits it by its own circuit breakers and counts it; \`%UPSTREAM_CLUSTER%\` names it. The aggregate's own are the retry policy, mirrors,
\`max_retries\`, stats of retries and of requests without a host. \`previous_priorities\` counts the priorities of all clusters.

A cluster that there is not (yet), or without hosts, is passed over; it may come and go by discovery. Aggregate clusters may stand among the
clusters: theirs stand in their place. One that would be among its own is refused. Clusters whose hosts requests name (\`ORIGINAL_DST\`, forward proxies)
have none to give here, which is warned of. Subsets and hashes have no say in which cluster a request falls to: one that has no host for a request then answers that there
is none. What is hashed says the route or the TCP proxy; a \`hash_policy\` in the \`load_balancing_policy\` of one of the clusters is not looked at.`,
    test: AGGREGATE_SETTINGS,
    fields: {
      clusters: ['Clusters that have its hosts, the most preferred first.', 'required', AGGREGATES],
    },
  },
  'proxy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig': {
    test: FORWARD_SETTINGS,
    fields: {
      dns_cache_config: ['Hosts that clients may name, and how they are looked up.', 'required', FORWARD_PROXY],
      sub_clusters_config: ['A cluster for each host.', 'refused'],
      allow_insecure_cluster_options: [
        'TLS may go by other names than those that clients name: `auto_sni` and `auto_san_validation` may be false.',
        '`false`',
      ],
      allow_coalesced_connections: ['Nothing: each host has connections of its own.', '`false`'],
    },
  },
  'proxy.extensions.clusters.redis.v3.RedisClusterConfig': {
    test: REDIS_CLUSTER,
    fields: {
      cluster_refresh_rate: ['Between two questions to one of the servers, who has which keys.', '5 s'],
      cluster_refresh_timeout: ['Until such a question has failed.', '3 s'],
      redirect_refresh_interval: [
        'At least between questions that are asked because an answer has named a server that is not known.',
        '5 s',
      ],
      redirect_refresh_threshold: ['Nothing: one such answer is enough.', '5'],
      failure_refresh_threshold: ['Nothing: questions are asked at each `cluster_refresh_rate`.', '0'],
      host_degraded_refresh_threshold: ['Nothing: questions are asked at each `cluster_refresh_rate`.', '0'],
    },
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig': {
    test: DNS_CACHE,
    fields: {
      name: ['Clusters with the same name share a cache, and say the same of it.', 'required', FORWARD_SETTINGS],
      dns_lookup_family: ['Which kinds of address are asked for.', '`AUTO`', FORWARD_SETTINGS],
      dns_refresh_rate: ['Between lookups of a name whose records say nothing of their life.', '60 s'],
      dns_min_refresh_rate: ['However short records live.', '5 s'],
      dns_failure_refresh_rate: ['Waits after failures: random below a bound that doubles.', '`dns_refresh_rate`'],
      disable_dns_refresh_on_failure: ['A name without an address is forgotten at once.', '`false`'],
      host_ttl: ['A host goes when nobody has used it for as long.', '5 min'],
      max_hosts: ['Further ones get a 503 with `UO`.', '1024'],
      dns_cache_circuit_breaker: ['How many requests may wait for lookups.', 'see below', FORWARD_PROXY],
      dns_query_timeout: ['For a whole lookup; 0 for any time.', '5 s'],
      preresolve_hostnames: ['Looked up at the start.', 'none'],
      use_tcp_for_dns_lookups: ['TCP alone.', '`false`', FORWARD_SETTINGS],
      dns_resolution_config: [
        'Whom lookups ask, and how.',
        'the resolver of the bootstrap, or the system',
        FORWARD_PROXY,
      ],
      typed_dns_resolver_config: [
        'Whom lookups ask, and how.',
        'the resolver of the bootstrap, or the system',
        FORWARD_SETTINGS,
      ],
      key_value_config: ['Hosts are not kept from one process to the next.', 'refused', FORWARD_SETTINGS],
    },
  },
  'proxy.extensions.common.dynamic_forward_proxy.v3.DnsCacheCircuitBreakers': {
    test: FORWARD_PROXY,
    fields: { max_pending_requests: ['Requests and connections that wait for lookups, over all workers.', '1024'] },
  },
  'proxy.extensions.clusters.dns.v3.DnsCluster.RefreshRate': { test: STRICT_DNS, fields: RATE_FIELDS },
  'proxy.config.cluster.v3.Cluster.RefreshRate': { test: STRICT_DNS, fields: RATE_FIELDS },
  'proxy.config.core.v3.DnsResolutionConfig': {
    test: DNS_SETTINGS,
    fields: { resolvers: ['Servers to ask.', 'required'], dns_resolver_options: ['How to ask them.', 'none'] },
  },
  'proxy.config.core.v3.DnsResolverOptions': {
    test: RESOLVER,
    fields: {
      use_tcp_for_dns_lookups: ['TCP alone.', '`false`', DNS_CLIENT],
      no_default_search_domain: ['Names are asked for as they are.', '`false`'],
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (DNS resolver)': {
    test: DNS_SETTINGS,
    fields: { name: ['For people alone.', 'required'], typed_config: ['Which resolver.', 'required'] },
  },
  'proxy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig': {
    test: DNS_CLIENT,
    fields: {
      resolvers: ['Servers to ask.', 'those of the system', DNS_SETTINGS],
      dns_resolver_options: ['How to ask them.', 'none', DNS_SETTINGS],
      use_resolvers_as_fallback: ['Only when the system names no server.', '`false`', RESOLVER],
      udp_max_queries: ['Nothing: every question has a port of its own.', 'none', DNS_SETTINGS],
      query_timeout_seconds: ['For one question to one server.', '5 s'],
      query_tries: ['Questions to a silent server before a lookup fails.', '4'],
      rotate_nameservers: ['Begin with another server each time.', '`false`'],
      filter_unroutable_families: [
        'Addresses of a family that no interface but loopback has are not asked for.',
        '`false`',
        RESOLVER,
      ],
      edns0_max_payload_size: [
        'Bytes of an answer over UDP, as servers are told, 512 to 4096; longer ones come over TCP.',
        '512',
      ],
      max_udp_channel_duration: ['Nothing: every question has a port of its own.', 'none', DNS_SETTINGS],
      reinit_channel_on_timeout: ['Nothing: every question has a port of its own.', '`false`', DNS_SETTINGS],
    },
  },
  'proxy.config.core.v3.Address': {
    test: CONVERSION,
    fields: {
      socket_address: ['An IP address, or a name where DNS is used, and a port.', 'none'],
      pipe: ['A unix socket.', 'none'],
    },
  },
  'proxy.config.core.v3.SocketAddress': {
    test: CONVERSION,
    fields: {
      protocol: ['TCP.', '`TCP`'],
      address: ['An IP address, or a name.', 'required'],
      port_value: ['The port, up to 65535.', 'required', LIMITS],
      ipv4_compat: [
        'Of listeners: IPv4 over an IPv6 address.',
        '`false`',
        'test/unit/config/resources/listener.test.ts',
      ],
    },
  },
  'proxy.config.core.v3.Pipe': {
    test: CONVERSION,
    fields: {
      path: ['Of the socket; `@` first for an abstract one.', 'required'],
      mode: ['Of a socket that is made.', 'by the umask'],
    },
  },
  'proxy.config.endpoint.v3.ClusterLoadAssignment': {
    test: CONVERSION,
    fields: {
      cluster_name: ['Not empty; the name of the cluster by custom.', 'required'],
      endpoints: ['Members by locality and priority.', 'none'],
      named_endpoints: ['Endpoints that members may name.', 'none'],
      policy: ['How localities and priorities share requests.', 'none', HOST_LISTS],
    },
  },
  'proxy.config.endpoint.v3.ClusterLoadAssignment.Policy': {
    test: HOST_LISTS,
    fields: {
      overprovisioning_factor: [
        'Percent by which healthy hosts may be too few before the next priority helps out.',
        '140',
      ],
      disable_overprovisioning: [
        'A priority takes all requests, and a locality all of its weight, as long as one host of it is available; `overprovisioning_factor` does not count.',
        '`false`',
        CONVERSION,
      ],
      drop_overload: ['Percent of requests that are turned away: the early form of `drop_overloads`.', '0', LIMITS],
      drop_overloads: [
        'Requests that are turned away before a host is chosen: one category at most, more are an error. They get 503 with `x-proxy-drop-overload: true`, flagged `DO`, and count in `upstream_rq_drop_overload`; the runtime value `load_balancing_policy.drop_overload_limit` bounds their percentage.',
        'none',
        LOAD_SHEDDING,
      ],
      endpoint_stale_after: [
        'Of an assignment by discovery: without another one its members go after this.',
        'for any time',
        EDS,
      ],
      weighted_priority_health: ['Health of a priority by weight instead of number.', '`false`'],
    },
  },
  'proxy.config.endpoint.v3.ClusterLoadAssignment.Policy.DropOverload': {
    test: LOAD_SHEDDING,
    fields: {
      category: ['Not empty; a name for why.', 'required'],
      drop_percentage: ['Their share, at most all. A category without it drops nothing.', 'none'],
    },
  },
  'proxy.config.endpoint.v3.LocalityLbEndpoints': {
    test: CONVERSION,
    fields: {
      locality: [
        'Region, zone and sub zone of the members; the zone is that of `zone.<from>.<to>.*`.',
        'none',
        'test/integration/response-stats.test.ts',
      ],
      lb_endpoints: ['The members.', 'none'],
      load_balancing_weight: [
        'Of the locality, where localities are weighed; 1 or more.',
        'no traffic',
        'test/unit/control-plane/cluster-manager/host-lists/localities.test.ts',
      ],
      priority: ['0 is preferred; contiguous, up to 128.', '0'],
      load_balancer_endpoints: ['The members, wrapped.', 'none'],
      metadata: ['Nothing: no operator asks for it.', 'none'],
    },
  },
  'proxy.config.endpoint.v3.LocalityLbEndpoints.LbEndpointList': {
    test: CONVERSION,
    fields: { lb_endpoints: ['The members.', 'none'] },
  },
  'proxy.config.endpoint.v3.LbEndpoint': {
    test: CONVERSION,
    fields: {
      endpoint: ['The member.', 'none'],
      endpoint_name: ['A member of `named_endpoints`.', 'none'],
      health_status: [
        '`UNHEALTHY`, `TIMEOUT` and `DRAINING` get no requests, `DEGRADED` only when others are too few.',
        'healthy',
      ],
      metadata: [
        '`envoy.lb`: `canary`, `hash_key`, what subsets go by; all of it for access logs and headers.',
        'none',
        METADATA,
      ],
      load_balancing_weight: ['Of the member within its locality; 1 or more.', '1', LIMITS],
    },
  },
  'proxy.config.endpoint.v3.Endpoint': {
    test: CONVERSION,
    fields: {
      address: ['Where it is.', 'required'],
      health_check_config: ['How it is checked.', 'as the cluster says', CHECKER],
      hostname: ['Its name, for rewrites and logs.', 'none'],
      additional_addresses: [
        'Further ways to it, in `STATIC` clusters: tried one after the other, 300 ms apart or as soon as one fails; the first that answers is taken.',
        'none',
        HOST_ADDRESSES,
      ],
    },
  },
  'proxy.config.endpoint.v3.Endpoint.AdditionalAddress': {
    test: HOST_ADDRESSES,
    fields: { address: ['An IP address.', 'required', ADDRESSES] },
  },
  'proxy.config.endpoint.v3.Endpoint.HealthCheckConfig': {
    test: CHECKER,
    fields: {
      port_value: ['The port of checks.', 'that of the address'],
      hostname: ['Host header of checks.', 'that of the check, or the name of the cluster'],
      address: ['Where checks go.', 'to the address of the endpoint'],
      disable_active_health_check: ['It is not checked.', '`false`'],
    },
  },
};
