// Notes on how hosts are chosen: policies of both generations, subsets, what requests are hashed by.

import type { FieldNote, MessageNotes } from './note.ts';
import {
  BALANCING,
  CHECK_SETTINGS,
  CHECKER,
  CONVERSION,
  HASH_POLICY,
  HASHING,
  HOST_LISTS,
  LEAST_REQUEST,
  LIMITS,
  MAGLEV,
  ORIGINAL_DST,
  POLICY,
  RING,
  SLOW_START,
  SUBSET_ROUTES,
  SUBSETS,
  UPDATES,
  ZONES,
} from './tests.ts';

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

export const BALANCING_NOTES: Readonly<Record<string, MessageNotes>> = {
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
  'proxy.type.matcher.v3.RegexMatchAndSubstitute': {
    test: HASH_POLICY,
    fields: {
      pattern: ['RE2; every match is replaced.', 'required'],
      substitution: ['What takes its place; `\\1` is the first group.', 'empty'],
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (balancer)': {
    test: POLICY,
    fields: {
      name: ['For people alone.', 'required'],
      typed_config: ['The balancer; one that is not known makes room for the next.', 'required'],
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
};
