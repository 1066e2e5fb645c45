// What docs/cluster.md says of each field of a cluster beside its support: what it does, what holds without it, and which
// test shows it. Keys are those of the support table. A field that is not here is shown with its support alone.

/** What it does; its default; the test that shows it, where that is not the test of the whole message. */
export type FieldNote = readonly [what: string, byDefault: string, test?: string];

export interface MessageNotes {
  /** Shows the fields that name no other. */
  readonly test: string;
  readonly fields: Readonly<Record<string, FieldNote>>;
}

const CONVERSION = 'test/unit/config/resources/cluster.test.ts';
const LIMITS = 'test/unit/config/resources/cluster-limits.test.ts';
const BALANCING = 'test/unit/config/resources/load-balancing.test.ts';
const POLICY = 'test/unit/config/resources/balancing-policy.test.ts';
const DNS_SETTINGS = 'test/unit/config/resources/dns-discovery.test.ts';
const CHECK_SETTINGS = 'test/unit/config/resources/health-check.test.ts';
const CHECK_STATE = 'test/unit/control-plane/cluster-manager/health-check/check-state.test.ts';
const CHECKER = 'test/unit/control-plane/cluster-manager/health-check/health-checker.test.ts';
const PROBES = 'test/unit/control-plane/cluster-manager/health-check/probes.test.ts';
const CHECK_EVENTS = 'test/unit/control-plane/cluster-manager/health-check/event-log.test.ts';
const CHECKS = 'test/integration/health-checks.test.ts';
const OUTLIERS = 'test/unit/control-plane/cluster-manager/outlier-detection/outlier-detector.test.ts';
const OUTLIER_ROWS = 'test/unit/data-plane/upstream/outlier-monitor.test.ts';
const EJECTIONS = 'test/integration/outlier-detection.test.ts';
const RESOLVER = 'test/unit/control-plane/dns/dns.test.ts';
const DNS_CLIENT = 'test/unit/control-plane/dns/dns-client.test.ts';
const STRICT_DNS = 'test/unit/control-plane/cluster-manager/discovery/strict-dns.test.ts';
const LOGICAL_DNS = 'test/unit/control-plane/cluster-manager/discovery/logical-dns.test.ts';
const HOST_LISTS = 'test/unit/control-plane/cluster-manager/host-lists/host-lists.test.ts';
const SLOW_START = 'test/unit/control-plane/cluster-manager/host-lists/slow-start.test.ts';
const SUBSETS = 'test/unit/control-plane/cluster-manager/host-lists/subsets.test.ts';
const SUBSET_ROUTES = 'test/integration/subsets.test.ts';
const HASHING = 'test/integration/hashing.test.ts';
const HASH_POLICY = 'test/unit/data-plane/route/hash-policy.test.ts';
const RING = 'test/wasm/lb-tables.test.ts';
const MAGLEV = 'test/wasm/lb-tables.test.ts';
const LEAST_REQUEST = 'test/wasm/lb-pickers.test.ts';
const RETRIES = 'test/integration/retry-policy.test.ts';
const RETRY_BUDGET = 'test/unit/data-plane/router/back-off.test.ts';
const LOAD_SHEDDING = 'test/integration/load-shedding.test.ts';
const BREAKERS = 'test/integration/circuit-breakers.test.ts';
const CLIENT_POOLS = 'test/integration/client-pools.test.ts';
const PRECONNECT = 'test/unit/data-plane/upstream/preconnect.test.ts';
const FAILURES = 'test/integration/http-failures.test.ts';
const UPDATES = 'test/integration/host-updates.test.ts';
const ORIGINAL_DST = 'test/integration/original-dst.test.ts';
const TRAILERS = 'test/integration/http-trailers.test.ts';
const METADATA = 'test/integration/metadata.test.ts';
const MEASURES = 'test/integration/attempt-measures.test.ts';
const BUFFERS = 'test/integration/buffer-limits.test.ts';

const SUBSET_FIELDS: Readonly<Record<string, FieldNote>> = {
  fallback_policy: ['Where requests go whose subset does not exist.', '`NO_FALLBACK`', SUBSETS],
  default_subset: ['What hosts of the default subset have in their metadata.', 'all hosts', SUBSETS],
  subset_selectors: ['The keys of metadata by which hosts are put into subsets.', 'none', SUBSET_ROUTES],
  locality_weight_aware: ['Localities are weighed within subsets, too.', '`false`', SUBSETS],
  scale_locality_weight: ['Weights of localities shrink with their share of the subset.', '`false`', SUBSETS],
  panic_mode_any: ['Any host, where the fallback has none.', '`false`', SUBSETS],
  list_as_any: ['A host with a list is in the subsets of all its elements.', '`false`', SUBSETS],
  metadata_fallback_policy: ['Whether requests bring further criteria to try.', '`METADATA_NO_FALLBACK`'],
  subset_lb_policy: ['The balancer within subsets.', 'required', POLICY],
  allow_redundant_keys: ['Keys in criteria that no selector has do no harm.', '`false`', SUBSETS],
};
const SELECTOR_FIELDS: Readonly<Record<string, FieldNote>> = {
  keys: ['Hosts that have all of them make a subset for each combination of values.', 'none'],
  fallback_policy: ['Takes the place of that of the cluster.', 'that of the cluster'],
  fallback_keys_subset: ['With `KEYS_SUBSET`: fewer keys to try with. Each must be one of `keys`.', 'none', CONVERSION],
  single_host_per_subset: ['Each subset has one host, the first.', '`false`'],
};
const RING_FIELDS: Readonly<Record<string, FieldNote>> = {
  minimum_ring_size: ['Least entries of the ring, up to 8388608.', '1024', LIMITS],
  maximum_ring_size: ['Most entries, not below the least, up to 8388608.', '8388608', LIMITS],
  hash_function: ['Places the hosts; requests are hashed by `XX_HASH`.', '`XX_HASH`'],
  use_hostname_for_hashing: ['Hosts are placed by their names instead of their addresses.', '`false`', HASHING],
  hash_balance_factor: [
    'Percent of the mean load that a host may have before the next one is taken; 100 or more.',
    'no bound',
    'test/unit/control-plane/cluster-manager/host-lists/bounded-loads.test.ts',
  ],
  consistent_hashing_lb_config: ['Options of all balancers by hash.', 'none', POLICY],
  locality_weighted_lb_config: ['Localities are weighed.', 'they are not', POLICY],
};
const ZONES = 'test/unit/control-plane/cluster-manager/host-lists/zone-routing.test.ts';

const ZONE_FIELDS = {
  fail_traffic_on_panic: ['In panic, requests have no host instead of any.', '`false`', HOST_LISTS],
  routing_enabled: ['Share of requests that go by zone, where there is a local cluster; whole percent.', '100 %'],
  min_cluster_size: ['With fewer healthy hosts no request goes by zone.', '6'],
  force_locality_direct_routing: ['The older form of force_local_zone.', '`false`', POLICY],
  force_local_zone: ['With min_size (1) healthy hosts in it the own zone gets all requests.', 'none'],
  locality_basis: ['What zones can take: by the number of their hosts, or by their weights.', '`HEALTHY_HOSTS_NUM`'],
} as const satisfies Record<string, readonly string[]>;

const SLOW_START_FIELDS: Readonly<Record<string, FieldNote>> = {
  slow_start_config: ['New hosts get their share little by little.', 'all of it at once', SLOW_START],
  slow_start_window: ['How long a host counts as new.', 'required', SLOW_START],
  aggression: ['How fast its share grows: linearly at 1.', '1.0', SLOW_START],
  min_weight_percent: ['The share that it has at least.', '10 %', SLOW_START],
  locality_lb_config: ['Weighing of localities.', 'none', POLICY],
};
const LEAST_REQUEST_FIELDS: Readonly<Record<string, FieldNote>> = {
  ...SLOW_START_FIELDS,
  choice_count: ['Random hosts of which the least busy is taken, 2 or more.', '2'],
  active_request_bias: [
    'Exponent of the active requests in the weight of a host; below 0 counts as 1.',
    '1.0',
    HOST_LISTS,
  ],
  locality_lb_config: ['Weighing of localities.', 'none', POLICY],
  enable_full_scan: ['All hosts are compared.', '`false`', POLICY],
  selection_method: ['Random choices, or all hosts.', '`N_CHOICES`', POLICY],
};
const DNS_FIELDS: Readonly<Record<string, FieldNote>> = {
  dns_refresh_rate: ['Wait between lookups, 1 ms or more.', '5 s', STRICT_DNS],
  dns_failure_refresh_rate: [
    'Waits after failures: random below a bound that doubles.',
    '`dns_refresh_rate`',
    STRICT_DNS,
  ],
  respect_dns_ttl: ['Look up again when the record that expires first does.', '`false`', STRICT_DNS],
  dns_jitter: ['A random part of this is added to every wait.', '0 s', STRICT_DNS],
  dns_lookup_family: ['Which kinds of address are asked for.', '`AUTO`', RESOLVER],
  typed_dns_resolver_config: [
    'Whom lookups ask, and how.',
    'the resolver of the bootstrap, or the system',
    DNS_SETTINGS,
  ],
};
const RATE_FIELDS: Readonly<Record<string, FieldNote>> = {
  base_interval: ['Bound of the first wait, above 0.', 'required', LIMITS],
  max_interval: ['Bound of all waits, not below the first.', '10 times `base_interval`', LIMITS],
};

export const CLUSTER_NOTES: Readonly<Record<string, MessageNotes>> = {
  'proxy.config.cluster.v3.Cluster': {
    test: CONVERSION,
    fields: {
      name: ['The name that routes use; one cluster has it.', 'required', LIMITS],
      alt_stat_name: ['The name in statistics and listings; `:` becomes `_` in statistics.', '`name`', LIMITS],
      type: ['Where members come from.', '`STATIC`'],
      cluster_type: ['The type by its name, or newer settings for DNS.', 'none', DNS_SETTINGS],
      connect_timeout: ['How long a connection may take to be there, above 0.', '5 s', FAILURES],
      per_connection_buffer_limit_bytes: [
        'What may wait of a response for its client; reads stay below it, down to 1 KiB. The lower of this and that of the listener holds.',
        '1 MiB',
        BUFFERS,
      ],
      lb_policy: ['How hosts are chosen.', '`ROUND_ROBIN`', HOST_LISTS],
      load_balancing_policy: ['The newer form of policy and options.', 'none', POLICY],
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
      load_assignment: ['Members with priorities, localities, weights and health.', 'none; required without `hosts`'],
      health_checks: ['Main asks each host how it is.', 'nobody asks', CHECKS],
      outlier_detection: ['Hosts that fail more than they should are left alone for a while.', 'nobody is', EJECTIONS],
      max_requests_per_connection: ['Requests after which a connection closes.', 'no limit', FAILURES],
      circuit_breakers: ['What may run and wait at a time, over all workers.', 'the limits below', BREAKERS],
      http_protocol_options: ['Options of HTTP/1.', 'none', TRAILERS],
      common_http_protocol_options: ['Options of HTTP.', 'none', FAILURES],
      typed_extension_protocol_options: ['The newer form of the HTTP options.', 'none'],
      protocol_selection: ['Which protocol is spoken.', '`USE_CONFIGURED_PROTOCOL`'],
      ...DNS_FIELDS,
      dns_resolvers: ['Servers that lookups ask.', 'those of the bootstrap, or of the system', DNS_SETTINGS],
      dns_resolution_config: ['The same, with options.', 'none', DNS_SETTINGS],
      use_tcp_for_dns_lookups: ['Lookups use TCP alone.', '`false`', DNS_CLIENT],
      transport_socket: ['What connections are made of: plain TCP.', 'plain TCP'],
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
      connection_pool_per_downstream_connection: [
        'Each HTTP client has connections of its own, which end with it.',
        '`false`',
        CLIENT_POOLS,
      ],
      preconnect_policy: ['HTTP connections are there before the requests that need them.', 'none', PRECONNECT],
      wait_for_warm_on_init: ['The server goes live when the first lookups and checks have ended.', '`true`', CHECKER],
    },
  },
  'proxy.config.cluster.v3.Cluster.CommonLbConfig': {
    test: BALANCING,
    fields: {
      healthy_panic_threshold: [
        'Below this share of available hosts all are used; whole percent, 0 for never.',
        '50 %',
        HOST_LISTS,
      ],
      zone_aware_lb_config: ['Options by zones.', 'none'],
      locality_weighted_lb_config: [
        'Localities get requests by weight and health.',
        'they are not weighed',
        'test/unit/control-plane/cluster-manager/host-lists/localities.test.ts',
      ],
      update_merge_window: [
        'Changes of health within this time are published together; 0 for at once.',
        '1 s',
        CHECKER,
      ],
      ignore_new_hosts_until_first_hc: ['A new host counts for nothing until its first check.', '`false`', CHECKER],
      close_connections_on_host_set_change: ['Every change of members drains all connections.', '`false`', UPDATES],
      consistent_hashing_lb_config: ['Options of balancers by hash.', 'none', HASHING],
    },
  },
  'proxy.config.cluster.v3.Cluster.CommonLbConfig.ZoneAwareLbConfig': {
    test: ZONES,
    fields: ZONE_FIELDS,
  },
  'proxy.extensions.load_balancing_policies.common.v3.LocalityLbConfig.ZoneAwareLbConfig': {
    test: ZONES,
    fields: ZONE_FIELDS,
  },
  'proxy.config.cluster.v3.Cluster.CommonLbConfig.ConsistentHashingLbConfig': { test: HASHING, fields: RING_FIELDS },
  'proxy.config.cluster.v3.Cluster.LeastRequestLbConfig': {
    test: LEAST_REQUEST,
    fields: LEAST_REQUEST_FIELDS,
  },
  'proxy.config.cluster.v3.Cluster.RoundRobinLbConfig': { test: SLOW_START, fields: SLOW_START_FIELDS },
  'proxy.config.cluster.v3.Cluster.SlowStartConfig': { test: SLOW_START, fields: SLOW_START_FIELDS },
  'proxy.extensions.load_balancing_policies.round_robin.v3.RoundRobin': { test: POLICY, fields: SLOW_START_FIELDS },
  'proxy.extensions.load_balancing_policies.common.v3.SlowStartConfig': { test: SLOW_START, fields: SLOW_START_FIELDS },
  'proxy.config.core.v3.RuntimeDouble': {
    test: CONVERSION,
    fields: { default_value: ['The value.', '0'], runtime_key: ['Its key in the runtime.', 'none'] },
  },
  'proxy.config.cluster.v3.Cluster.RingHashLbConfig': { test: RING, fields: RING_FIELDS },
  'proxy.config.cluster.v3.Cluster.MaglevLbConfig': {
    test: MAGLEV,
    fields: { table_size: ['Entries of the table: a prime, up to 5000011.', '65537', LIMITS] },
  },
  'proxy.config.cluster.v3.Cluster.OriginalDstLbConfig': {
    test: ORIGINAL_DST,
    fields: {
      use_http_header: [
        'The header may name the host, `1.2.3.4:80` or `[::1]:80`, before the destination of the connection does. It is taken from anybody: clients reach what this proxy reaches.',
        '`false`',
      ],
      http_header_name: ['The header; of several of the name the first counts.', '`x-proxy-original-dst-host`'],
      upstream_port_override: ['The port of all hosts, whatever is asked for.', 'the port asked for'],
    },
  },
  'proxy.config.cluster.v3.Cluster.LbSubsetConfig': { test: SUBSETS, fields: SUBSET_FIELDS },
  'proxy.config.cluster.v3.Cluster.LbSubsetConfig.LbSubsetSelector': { test: SUBSETS, fields: SELECTOR_FIELDS },
  'proxy.config.cluster.v3.Cluster.PreconnectPolicy': {
    test: PRECONNECT,
    fields: {
      per_upstream_preconnect_ratio: [
        'Connections of a host for each of its requests that run or wait, below every limit; 1 to 3.',
        '1.0',
      ],
      predictive_preconnect_ratio: [
        'Connections of a worker for each request, opened to the hosts that the next ones will go to; 1 to 3.',
        '1.0',
      ],
    },
  },
  'proxy.config.cluster.v3.Cluster.CustomClusterType': {
    test: DNS_SETTINGS,
    fields: {
      name: ['`envoy.cluster.static`, `.strict_dns`, `.logical_dns`, `.original_dst` or `.dns`.', 'required'],
      typed_config: ['Settings of `.dns`.', 'none'],
    },
  },
  'proxy.extensions.clusters.dns.v3.DnsCluster': {
    test: DNS_SETTINGS,
    fields: {
      ...DNS_FIELDS,
      all_addresses_in_single_endpoint: [
        'One member, whose address is the first that was found last.',
        '`false`',
        LOGICAL_DNS,
      ],
    },
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
      max_udp_channel_duration: ['Nothing, as `udp_max_queries`.', 'none', DNS_SETTINGS],
      reinit_channel_on_timeout: ['Nothing, as `udp_max_queries`.', '`false`', DNS_SETTINGS],
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
  'proxy.config.core.v3.BindConfig': {
    test: CONVERSION,
    fields: { source_address: ['Where connections come from; empty with port 0 leaves it to the system.', 'none'] },
  },
  'proxy.config.cluster.v3.UpstreamConnectionOptions': {
    test: UPDATES,
    fields: { tcp_keepalive: ['Probes on silent connections.', 'none'] },
  },
  'proxy.config.cluster.v3.TrackClusterStats': {
    test: MEASURES,
    fields: {
      timeout_budgets: ['As `track_timeout_budgets`.', '`false`'],
      request_response_sizes: ['Histograms of the sizes of heads and bodies, chunk framing included.', '`false`'],
    },
  },
  'proxy.config.core.v3.TcpKeepalive': {
    test: UPDATES,
    fields: {
      keepalive_probes: ['Unanswered probes before a connection is dead.', '9'],
      keepalive_time: ['Seconds of silence before the first.', '7200'],
      keepalive_interval: ['Seconds between them.', '75'],
    },
  },
  'proxy.config.cluster.v3.CircuitBreakers': {
    test: BREAKERS,
    fields: {
      thresholds: ['Limits, at most one entry for each priority.', 'the defaults for both', CONVERSION],
      per_host_thresholds: ['Limits of each host, at most one entry for each priority.', 'none', CONVERSION],
    },
  },
  'proxy.config.cluster.v3.CircuitBreakers.Thresholds (per host)': {
    test: BREAKERS,
    fields: {
      priority: ['The routing priority whose connections are limited.', '`DEFAULT`'],
      max_connections: ['Connections of the host, of both priorities, up to which one more is opened.', 'no limit'],
    },
  },
  'proxy.config.cluster.v3.CircuitBreakers.Thresholds': {
    test: BREAKERS,
    fields: {
      priority: ['The routing priority that is limited.', '`DEFAULT`'],
      max_connections: ['Connections.', '1024'],
      max_pending_requests: ['Requests that wait for a connection.', '1024'],
      max_requests: ['Requests that run.', '1024'],
      max_retries: ['Retries that run, without a budget.', '3', RETRIES],
      retry_budget: ['Retries that run, as a share of the requests that run or wait.', 'none', RETRY_BUDGET],
      track_remaining: ['What is left below each limit is shown in stats.', '`false`'],
    },
  },
  'proxy.config.core.v3.HttpProtocolOptions (upstream)': {
    test: FAILURES,
    fields: {
      idle_timeout: ['A connection without requests closes after it; 0 for never.', '1 h'],
      max_connection_duration: ['Age at which a connection takes no more requests.', 'none', UPDATES],
      max_requests_per_connection: ['Requests after which a connection closes.', 'no limit'],
    },
  },
  'proxy.config.core.v3.Http1ProtocolOptions (upstream)': {
    test: TRAILERS,
    fields: { enable_trailers: ['Trailers pass, both ways.', '`false`'] },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    test: CONVERSION,
    fields: {
      common_http_protocol_options: ['Options of HTTP.', 'none'],
      explicit_http_config: ['The protocol, and its options.', 'HTTP/1.1'],
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig': {
    test: CONVERSION,
    fields: { http_protocol_options: ['HTTP/1, and its options.', 'none'] },
  },
  'proxy.config.core.v3.TransportSocket (upstream)': {
    test: CONVERSION,
    fields: {
      name: ['For people, and the older form of naming the kind.', 'required'],
      config: ['The older form of settings.', 'none'],
      typed_config: ['`RawBuffer`.', 'none'],
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
      drop_overloads: ['Requests that are turned away before a host is chosen.', 'none', LOAD_SHEDDING],
      endpoint_stale_after: ['Nothing: a configured assignment never goes stale.', 'none', CONVERSION],
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
    },
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
  'proxy.config.cluster.v3.OutlierDetection': {
    test: OUTLIERS,
    fields: {
      consecutive_5xx: ['Answers of 5xx in a row, over all workers; 0 for any number.', '5', OUTLIER_ROWS],
      interval: ['Between two comparisons of all hosts; ejections end with one.', '10 s'],
      base_ejection_time: ['Times the number of ejections that count, how long one lasts.', '30 s'],
      max_ejection_time: ['How long one lasts at most.', '300 s, or base_ejection_time'],
      max_ejection_time_jitter: ['A random part of it is added.', 'none'],
      max_ejection_percent: ['Of the hosts that may be out of service.', '10'],
      always_eject_one_host: ['One host may go whatever the percentage.', '`true`, unless max_ejection_percent is 0'],
      successful_active_health_check_uneject_host: ['A passed health check ends an ejection.', '`true`'],
      split_external_local_origin_errors: [
        'Connections are judged apart from answers, instead of as answers of 503 and 504.',
        '`false`',
        OUTLIER_ROWS,
      ],
      consecutive_gateway_failure: ['Answers of 502, 503 and 504 in a row.', '5', OUTLIER_ROWS],
      consecutive_local_origin_failure: [
        'Connections that fail in a row, where they are judged apart.',
        '5',
        OUTLIER_ROWS,
      ],
      success_rate_minimum_hosts: ['Hosts with enough requests that it takes to compare them.', '5'],
      success_rate_request_volume: ['Requests within an interval that are enough.', '100'],
      success_rate_stdev_factor: ['Thousandths of a standard deviation that a host may be below the average.', '1900'],
      failure_percentage_threshold: ['Percent of failures from which on a host is an outlier.', '85'],
      failure_percentage_minimum_hosts: ['As success_rate_minimum_hosts.', '5'],
      failure_percentage_request_volume: ['As success_rate_request_volume.', '50'],
      enforcing_consecutive_5xx: ['Percent of the detections that have consequences.', '100'],
      enforcing_consecutive_gateway_failure: ['The same.', '0'],
      enforcing_consecutive_local_origin_failure: ['The same.', '100'],
      enforcing_success_rate: ['The same.', '100'],
      enforcing_local_origin_success_rate: ['The same, of connections.', '100'],
      enforcing_failure_percentage: ['The same.', '0'],
      enforcing_failure_percentage_local_origin: ['The same, of connections.', '0'],
    },
  },
  'proxy.config.core.v3.HealthCheck': {
    test: CHECKER,
    fields: {
      timeout: ['How long a check may take.', 'required'],
      interval: ['Between the checks of a host.', 'required'],
      interval_jitter: ['A random part of it is added to every interval.', 'none', CHECK_STATE],
      interval_jitter_percent: ['The same, as a share of the interval.', '0', CHECK_STATE],
      initial_jitter: ['A random part of it comes before the first check.', 'none'],
      unhealthy_threshold: ['Failed checks in a row after which a host is unhealthy.', 'required', CHECK_STATE],
      healthy_threshold: [
        'Checks in a row with which it is healthy again; the first check counts at once.',
        'required',
        CHECK_STATE,
      ],
      alt_port: ['The port of checks.', 'that of the host'],
      reuse_connection: ['Checks of a host share a connection.', '`true`', PROBES],
      http_health_check: ['By a request and its answer.', 'none', PROBES],
      tcp_health_check: ['By a connection and what comes over it.', 'none', PROBES],
      no_traffic_interval: ['Between checks until the cluster has traffic.', '60 s', CHECK_STATE],
      no_traffic_healthy_interval: ['The same, of healthy hosts.', '`no_traffic_interval`', CHECK_STATE],
      unhealthy_interval: ['Between checks of an unhealthy host.', '`interval`', CHECK_STATE],
      unhealthy_edge_interval: ['After the check that has made a host unhealthy.', '`unhealthy_interval`', CHECK_STATE],
      healthy_edge_interval: ['After the check that has made it healthy.', '`interval`', CHECK_STATE],
      event_log_path: ['A file that gets a line for each event.', 'none', CHECK_EVENTS],
      event_logger: ['The newer form.', 'none', CHECK_EVENTS],
      always_log_health_check_failures: ['Every failure is an event.', '`false`', CHECK_EVENTS],
      always_log_health_check_success: ['Every success is an event.', '`false`', CHECK_EVENTS],
    },
  },
  'proxy.config.core.v3.HealthCheck.HttpHealthCheck': {
    test: PROBES,
    fields: {
      host: ['Host header.', 'the name of the cluster'],
      path: ['The target.', 'required'],
      send: ['The body, with methods that have one.', 'none'],
      receive: ['What the body of the answer must hold, in this order.', 'nothing'],
      response_buffer_size: ['How much of the answer is looked at.', '1 MiB'],
      service_name: ['The service that must answer, by the beginning of its name.', 'any'],
      service_name_matcher: ['The same, by any match.', 'any'],
      request_headers_to_add: ['Headers of the request.', 'none'],
      request_headers_to_remove: ['Headers that it goes without.', 'none'],
      expected_statuses: ['Ranges of statuses that pass.', '200'],
      retriable_statuses: ['Statuses that count toward the threshold instead of failing the host at once.', 'none'],
      codec_client_type: ['The protocol.', '`HTTP1`', CHECK_SETTINGS],
      method: ['The method.', '`GET`'],
    },
  },
  'proxy.config.core.v3.HealthCheck.TcpHealthCheck': {
    test: PROBES,
    fields: {
      send: ['What is sent.', 'nothing'],
      receive: ['What must come back, in this order.', 'nothing: a connection is enough'],
    },
  },
  'proxy.config.core.v3.HealthCheck.Payload': {
    test: CHECK_SETTINGS,
    fields: { text: ['Bytes in hexadecimal.', 'none'], binary: ['Bytes.', 'none'] },
  },
  'proxy.type.v3.Int64Range': {
    test: CHECK_SETTINGS,
    fields: { start: ['The first that is within.', '0'], end: ['The first that is not.', '0'] },
  },
  'proxy.config.core.v3.TypedExtensionConfig (health check event sink)': {
    test: CHECK_SETTINGS,
    fields: { name: ['For people alone.', 'required'], typed_config: ['`HealthCheckEventFileSink`.', 'required'] },
  },
  'proxy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink': {
    test: CHECK_EVENTS,
    fields: { event_log_path: ['The file.', 'required'] },
  },
  'proxy.config.cluster.v3.LoadBalancingPolicy': {
    test: POLICY,
    fields: { policies: ['The first that this build has is taken.', 'required'] },
  },
  'proxy.config.cluster.v3.LoadBalancingPolicy.Policy': {
    test: POLICY,
    fields: { typed_extension_config: ['A balancer.', 'required'] },
  },
  'proxy.extensions.load_balancing_policies.least_request.v3.LeastRequest': {
    test: LEAST_REQUEST,
    fields: LEAST_REQUEST_FIELDS,
  },
  'proxy.extensions.load_balancing_policies.ring_hash.v3.RingHash': { test: RING, fields: RING_FIELDS },
  'proxy.extensions.load_balancing_policies.maglev.v3.Maglev': {
    test: MAGLEV,
    fields: { ...RING_FIELDS, table_size: ['Entries of the table: a prime, up to 5000011.', '65537', LIMITS] },
  },
  'proxy.extensions.load_balancing_policies.common.v3.ConsistentHashingLbConfig': {
    test: HASHING,
    fields: {
      ...RING_FIELDS,
      hash_policy: ['What requests are hashed by, where their route does not say.', 'none', POLICY],
    },
  },
  'proxy.extensions.load_balancing_policies.subset.v3.Subset': { test: POLICY, fields: SUBSET_FIELDS },
  'proxy.extensions.load_balancing_policies.subset.v3.Subset.LbSubsetSelector': {
    test: SUBSETS,
    fields: SELECTOR_FIELDS,
  },
  'proxy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality': {
    test: POLICY,
    fields: { endpoint_picking_policy: ['The balancer within a locality; localities are weighed.', 'required'] },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy': {
    test: HASH_POLICY,
    fields: {
      header: ['The values of a header.', 'none'],
      cookie: ['A cookie, also one that clients are given.', 'none'],
      connection_properties: ["The client's address.", 'none'],
      query_parameter: ['A parameter of the query.', 'none'],
      terminal: ['Those behind it count only without a hash.', '`false`'],
    },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.Header': {
    test: HASH_POLICY,
    fields: {
      header_name: ['Its values as they came, joined by commas.', 'required'],
      regex_rewrite: ['What is hashed in place of the value.', 'none'],
    },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.Cookie': {
    test: HASHING,
    fields: {
      name: ['Its name.', 'required'],
      ttl: ['Clients without it get one for so long; 0 until they close.', 'they get none'],
      path: ['Of cookies that clients get.', 'none'],
      attributes: ['Further attributes of these.', 'none'],
    },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.CookieAttribute': {
    test: HASH_POLICY,
    fields: { name: ['As it is written.', 'required'], value: ['As it is written.', 'none'] },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.ConnectionProperties': {
    test: HASHING,
    fields: { source_ip: ["The client's address without its port.", '`false`'] },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.QueryParameter': {
    test: HASH_POLICY,
    fields: { name: ['The first value of this parameter.', 'required'] },
  },
  'proxy.type.matcher.v3.RegexMatchAndSubstitute': {
    test: HASH_POLICY,
    fields: {
      pattern: ['RE2; every match is replaced.', 'required'],
      substitution: ['What takes its place; `\\1` is the first group.', 'empty'],
    },
  },
  'proxy.type.matcher.v3.StringMatcher': {
    test: CHECK_SETTINGS,
    fields: {
      exact: ['The whole text.', 'one of them is required'],
      prefix: ['Its beginning.', 'none'],
      suffix: ['Its end.', 'none'],
      contains: ['A part of it.', 'none'],
      regex: ['The whole text, by RE2.', 'none'],
      safe_regex: ['The whole text, by RE2.', 'none'],
      ignore_case: ['Letters of either case are equal.', '`false`'],
    },
  },
  'proxy.type.matcher.v3.RegexMatcher': {
    test: CHECK_SETTINGS,
    fields: {
      google_re2: ['Nothing: there is no other engine.', 'none'],
      regex: ['RE2, for the whole text.', 'required'],
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (balancer)': {
    test: POLICY,
    fields: {
      name: ['For people alone.', 'required'],
      typed_config: ['The balancer; one that is not known makes room for the next.', 'required'],
    },
  },
  'proxy.extensions.load_balancing_policies.common.v3.LocalityLbConfig': {
    test: POLICY,
    fields: {
      zone_aware_lb_config: ['Options by zones.', 'none'],
      locality_weighted_lb_config: ['Localities get requests by weight and health.', 'they are not weighed'],
    },
  },
  'proxy.extensions.load_balancing_policies.random.v3.Random': {
    test: POLICY,
    fields: { locality_lb_config: ['Weighing of localities.', 'none'] },
  },
};
