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

const SESSIONS = 'test/integration/stateful-session-filter.test.ts';
const SUBSET_FIELDS: Readonly<Record<string, FieldNote>> = {
  fallback_policy: ['Where requests go that name no subset, or one without hosts.', '`NO_FALLBACK`', SUBSETS],
  default_subset: ['What hosts have in their metadata that `DEFAULT_SUBSET` means.', 'all hosts', SUBSETS],
  subset_selectors: ['The keys of metadata by which hosts are put into subsets.', 'none: no subsets', SUBSET_ROUTES],
  locality_weight_aware: ['Localities are weighed within subsets, too.', '`false`', SUBSETS],
  scale_locality_weight: ['Weights of localities shrink with their share of the subset.', '`false`', SUBSETS],
  panic_mode_any: ['Any host, where the fallback has none.', '`false`', SUBSETS],
  list_as_any: ['A host with a list is in the subsets of all its elements.', '`false`', SUBSETS],
  metadata_fallback_policy: [
    'With `FALLBACK_LIST` the criteria of a request may hold `fallback_list`, a list of further criteria that are tried in turn, each laid over the others.',
    '`METADATA_NO_FALLBACK`',
  ],
  subset_lb_policy: ['The balancer within subsets.', 'required', POLICY],
  allow_redundant_keys: [
    'Criteria may have keys that no selector has: the selector with most of them counts.',
    '`false`',
    SUBSETS,
  ],
};
const SELECTOR_FIELDS: Readonly<Record<string, FieldNote>> = {
  keys: [
    'Hosts that have all of them make a subset for each combination of values. Without keys there is none, with a warning.',
    'none',
  ],
  fallback_policy: [
    'Where requests go whose criteria have just these keys and find no hosts; `NOT_DEFINED` leaves it to the cluster.',
    '`NOT_DEFINED`',
  ],
  fallback_keys_subset: [
    'With `KEYS_SUBSET`, and with nothing else: the keys to try again with, fewer than `keys` and each one of them.',
    'none',
    CONVERSION,
  ],
  single_host_per_subset: [
    'Each combination of values keeps one host, the first; meant for a selector of one key, of others with a warning.',
    '`false`',
  ],
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
  fail_traffic_on_panic: [
    'In panic, requests have no host (503, `UH`) instead of any. `RING_HASH`, `MAGLEV` and `CLUSTER_PROVIDED` ignore it, with a warning.',
    '`false`',
    HOST_LISTS,
  ],
  routing_enabled: ['Share of requests that go by zone, where there is a local cluster; whole percent.', '100 %'],
  min_cluster_size: ['With fewer healthy hosts no request goes by zone.', '6'],
  force_locality_direct_routing: ['The older form of force_local_zone.', '`false`', POLICY],
  force_local_zone: ['With `min_size` (1) healthy hosts in it the own zone gets all requests.', 'none'],
  locality_basis: ['What zones can take: by the number of their hosts, or by their weights.', '`HEALTHY_HOSTS_NUM`'],
} as const satisfies Record<string, readonly string[]>;
const SLOW_START_FIELDS: Readonly<Record<string, FieldNote>> = {
  slow_start_config: ['New hosts get their share little by little.', 'all of it at once', SLOW_START],
  slow_start_window: ['How long a host counts as new; 0 for not at all.', 'not at all', SLOW_START],
  aggression: [
    'How fast its weight grows: by (time passed / window) to the power of 1/aggression, so linearly at 1, faster at the beginning above. Above 0.',
    '1.0',
    SLOW_START,
  ],
  min_weight_percent: ['Percent of its weight that it has from the beginning.', '10 %', SLOW_START],
  locality_lb_config: ['What localities mean: zones to prefer, or weights.', 'they mean nothing', POLICY],
};
const LEAST_REQUEST_FIELDS: Readonly<Record<string, FieldNote>> = {
  ...SLOW_START_FIELDS,
  choice_count: ['Random hosts of which the least busy is taken, 2 or more.', '2'],
  active_request_bias: [
    'Exponent of the active requests in the weight of a host; below 0 counts as 1.',
    '1.0',
    HOST_LISTS,
  ],
  enable_full_scan: ['All hosts are compared.', '`false`', POLICY],
  selection_method: ['Random choices, or all hosts.', '`N_CHOICES`', POLICY],
};

/** Of both generations. */
const SUBSETS_ABOUT = `A route names a subset by \`metadata_match\`, which weighted clusters and the request's own metadata add to. Hosts are in subsets by
their metadata under \`envoy.lb\`. A subset whose hosts are all unhealthy is a subset nevertheless: it has no fallback.

| fallback_policy | requests go to |
|---|---|
| \`NO_FALLBACK\` | no host: 503, flagged \`UH\` |
| \`ANY_ENDPOINT\` | any host of the cluster |
| \`DEFAULT_SUBSET\` | the hosts that match \`default_subset\` |
| \`KEYS_SUBSET\` (of a selector) | the hosts that match the criteria cut down to \`fallback_keys_subset\` |`;

export const BALANCING_NOTES: Readonly<Record<string, MessageNotes>> = {
  'proxy.config.cluster.v3.Cluster.CommonLbConfig': {
    test: BALANCING,
    fields: {
      healthy_panic_threshold: [
        'Below this share of available hosts in a priority all of them are used (panic). Parts of a percent do not count: 50.5 is 50. 0 for never.',
        '50 %',
        HOST_LISTS,
      ],
      zone_aware_lb_config: [
        'Requests stay in the zone of this proxy as far as its hosts can take them. Takes effect with `cluster_manager.local_cluster_name`, and not with policies that go by hash.',
        'as its defaults',
      ],
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
      override_host_status: [
        'What hosts are to be whom the filter `stateful_session` may choose in place of the balancer; with none of them it chooses none.',
        '`UNKNOWN`, `HEALTHY`, `DEGRADED`',
        SESSIONS,
      ],
      close_connections_on_host_set_change: ['Every change of members drains all connections.', '`false`', UPDATES],
      consistent_hashing_lb_config: ['Options of `RING_HASH` and `MAGLEV`.', 'none', HASHING],
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
    fields: {
      default_value: ['The value, where the runtime has none.', '0'],
      runtime_key: ['The key of a runtime value that takes its place.', 'none'],
    },
  },
  'proxy.config.cluster.v3.Cluster.RingHashLbConfig': { test: RING, fields: RING_FIELDS },
  'proxy.config.cluster.v3.Cluster.MaglevLbConfig': {
    test: MAGLEV,
    fields: { table_size: ['Entries of the table: a prime, up to 5000011.', '65537', LIMITS] },
  },
  'proxy.config.cluster.v3.Cluster.OriginalDstLbConfig': {
    about: `A host that has failed its health checks or was ejected gets nothing here: requests that name it are answered with 503, flagged
\`UH\`. There is no panic, since no other host could take its place. (Envoy sends to such a host all the same, so that neither has an
effect there; [why not here](decisions/0026-hosts-on-demand-are-made-by-main.md).)`,
    test: ORIGINAL_DST,
    fields: {
      use_http_header: [
        'The header may name the host, `1.2.3.4:80` or `[::1]:80`, before the destination of the connection does. It is taken from anybody: clients reach what this proxy reaches.',
        '`false`',
      ],
      http_header_name: [
        'The header, with `use_http_header` only; of several of the name the first counts. `:authority` is one, too.',
        '`x-proxy-original-dst-host`, understood as `x-envoy-original-dst-host`, too',
      ],
      metadata_key: [
        'Where in dynamic metadata an address stands that goes before the header: of the request, else of its connection. What is no address counts in `original_dst_host_invalid`, and the next source counts.',
        'metadata say nothing',
      ],
      upstream_port_override: ['The port of all hosts, whatever is asked for.', 'the port asked for'],
    },
  },
  'proxy.config.cluster.v3.Cluster.LbSubsetConfig': { about: SUBSETS_ABOUT, test: SUBSETS, fields: SUBSET_FIELDS },
  'proxy.config.cluster.v3.Cluster.LbSubsetConfig.LbSubsetSelector': { test: SUBSETS, fields: SELECTOR_FIELDS },
  'proxy.config.cluster.v3.LoadBalancingPolicy': {
    test: POLICY,
    fields: {
      policies: [
        'The first that this build has is taken; those before it, of any type, are passed over with a warning.',
        'required',
      ],
    },
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
      hash_policy: ['What requests are hashed by, in place of what routes say.', 'what the route says', POLICY],
    },
  },
  'proxy.extensions.load_balancing_policies.subset.v3.Subset': {
    about: SUBSETS_ABOUT,
    test: POLICY,
    fields: SUBSET_FIELDS,
  },
  'proxy.extensions.load_balancing_policies.subset.v3.Subset.LbSubsetSelector': {
    test: SUBSETS,
    fields: SELECTOR_FIELDS,
  },
  'proxy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality': {
    test: POLICY,
    fields: { endpoint_picking_policy: ['The balancer within a locality; localities are weighed.', 'required'] },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy': {
    about: `One kind each; the hashes of all policies of a list are combined. A request that none of them has a hash for goes to a random host.`,
    test: HASH_POLICY,
    fields: {
      header: ['Hash by a header.', 'none'],
      cookie: ['Hash by a cookie, also one that clients are given.', 'none'],
      connection_properties: ["Hash by the client's address.", 'none'],
      query_parameter: ['Hash by a parameter of the query.', 'none'],
      filter_state: [
        'Hash by what a filter has put into the filter state of the request, else of its connection.',
        'none',
      ],
      terminal: ['Where this policy or one before it has given a hash, those behind it are not asked.', '`false`'],
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
      ttl: [
        'Clients that bring no such cookie are given one that lasts so long, in whole seconds; 0 for one that ends with their session.',
        'they are given none, and their requests have no hash',
      ],
      path: ['The path of the cookies that clients are given.', 'none'],
      attributes: ['Further attributes of the cookies that clients are given, such as `SameSite`.', 'none'],
    },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.CookieAttribute': {
    test: HASH_POLICY,
    fields: {
      name: ['The name of the attribute, as the cookie is to have it.', 'required'],
      value: ['Its value; without one the name stands alone.', 'none'],
    },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.ConnectionProperties': {
    test: HASHING,
    fields: { source_ip: ["The client's address without its port.", '`false`'] },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.FilterState': {
    test: HASH_POLICY,
    fields: { key: ['Its name in the filter state.', 'required'] },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.QueryParameter': {
    test: HASH_POLICY,
    fields: { name: ['The first value of this parameter.', 'required'] },
  },
  'proxy.extensions.load_balancing_policies.common.v3.LocalityLbConfig': {
    test: POLICY,
    fields: {
      zone_aware_lb_config: [
        'Requests stay in the zone of this proxy as far as its hosts can take them. Takes effect with `cluster_manager.local_cluster_name`, and not with policies that go by hash.',
        'as its defaults',
      ],
      locality_weighted_lb_config: ['Localities get requests by weight and health.', 'they are not weighed'],
    },
  },
  'proxy.extensions.load_balancing_policies.random.v3.Random': {
    test: POLICY,
    fields: { locality_lb_config: ['What localities mean: zones to prefer, or weights.', 'they mean nothing'] },
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
      typed_config: ['The balancer; one of any other type makes room for the next.', 'required'],
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
