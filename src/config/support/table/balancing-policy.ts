// Support rows of the newer load-balancing policies, which say what fields of Cluster say, too.

import { extensionsElseLeft, rejected, type SupportTable, supported, supportedAs, supportedWhole } from '../verdict.ts';

const PREFIX = 'proxy.extensions.load_balancing_policies';
const POLICIES = [
  `${PREFIX}.round_robin.v3.RoundRobin`,
  `${PREFIX}.least_request.v3.LeastRequest`,
  `${PREFIX}.random.v3.Random`,
  `${PREFIX}.ring_hash.v3.RingHash`,
  `${PREFIX}.maglev.v3.Maglev`,
  `${PREFIX}.wrr_locality.v3.WrrLocality`,
  `${PREFIX}.subset.v3.Subset`,
  `${PREFIX}.cluster_provided.v3.ClusterProvided`,
];
const WITHOUT_NEWER = 'without consistent_hashing_lb_config';

/** These say the same in both generations. */
export const SUBSET_FIELDS = {
  fallback_policy: supported(),
  default_subset: supportedWhole(),
  subset_selectors: supported(),
  locality_weight_aware: supported(),
  scale_locality_weight: supported(),
  panic_mode_any: supported(),
  list_as_any: supported(),
  metadata_fallback_policy: supported(),
};
export const SUBSET_SELECTOR_SUPPORT = {
  otherwise: rejected(),
  fields: {
    keys: supported(),
    fallback_policy: supported(),
    fallback_keys_subset: supported(),
    single_host_per_subset: supported(),
  },
};
export const SLOW_START_SUPPORT = {
  otherwise: rejected(),
  fields: { slow_start_window: supported(), aggression: supported(), min_weight_percent: supportedWhole() },
};

export const BALANCING_POLICY_SUPPORT: SupportTable = {
  'proxy.config.cluster.v3.LoadBalancingPolicy': {
    otherwise: rejected(),
    fields: { policies: supported('the first that this build has') },
  },
  'proxy.config.cluster.v3.LoadBalancingPolicy.Policy': {
    otherwise: rejected(),
    fields: {
      name: rejected('use typed_extension_config'),
      config: rejected('use typed_extension_config'),
      typed_config: rejected('use typed_extension_config'),
      typed_extension_config: supportedAs('balancer'),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (balancer)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensionsElseLeft(POLICIES, 'the next policy counts') },
  },
  [`${PREFIX}.round_robin.v3.RoundRobin`]: {
    otherwise: rejected(),
    fields: { locality_lb_config: supported(), slow_start_config: supported() },
  },
  [`${PREFIX}.least_request.v3.LeastRequest`]: {
    otherwise: rejected(),
    fields: {
      choice_count: supported(),
      active_request_bias: supported(),
      locality_lb_config: supported(),
      slow_start_config: supported(),
      selection_method: supported(),
      enable_full_scan: supported('the older form of selection_method'),
    },
  },
  [`${PREFIX}.random.v3.Random`]: { otherwise: rejected(), fields: { locality_lb_config: supported() } },
  [`${PREFIX}.ring_hash.v3.RingHash`]: {
    otherwise: rejected(),
    fields: {
      hash_function: supported(),
      minimum_ring_size: supported(),
      maximum_ring_size: supported(),
      use_hostname_for_hashing: supported(WITHOUT_NEWER),
      hash_balance_factor: supported(WITHOUT_NEWER),
      consistent_hashing_lb_config: supported(),
      locality_weighted_lb_config: supportedWhole(),
    },
  },
  [`${PREFIX}.maglev.v3.Maglev`]: {
    otherwise: rejected(),
    fields: {
      table_size: supported(),
      consistent_hashing_lb_config: supported(),
      locality_weighted_lb_config: supportedWhole(),
    },
  },
  [`${PREFIX}.cluster_provided.v3.ClusterProvided`]: { otherwise: rejected(), fields: {} },
  [`${PREFIX}.wrr_locality.v3.WrrLocality`]: {
    otherwise: rejected(),
    fields: { endpoint_picking_policy: supported() },
  },
  [`${PREFIX}.subset.v3.Subset`]: {
    otherwise: rejected(),
    fields: {
      ...SUBSET_FIELDS,
      allow_redundant_keys: supported(),
      subset_lb_policy: supported(),
    },
  },
  [`${PREFIX}.subset.v3.Subset.LbSubsetSelector`]: SUBSET_SELECTOR_SUPPORT,
  [`${PREFIX}.common.v3.SlowStartConfig`]: SLOW_START_SUPPORT,
  [`${PREFIX}.common.v3.LocalityLbConfig`]: {
    otherwise: rejected(),
    fields: { zone_aware_lb_config: supported(), locality_weighted_lb_config: supportedWhole() },
  },
  [`${PREFIX}.common.v3.LocalityLbConfig.ZoneAwareLbConfig`]: {
    otherwise: rejected(),
    fields: {
      fail_traffic_on_panic: supported('not with RING_HASH and MAGLEV, which ignore it'),
      routing_enabled: supportedWhole('takes effect with a local cluster'),
      min_cluster_size: supported('takes effect with a local cluster'),
      force_locality_direct_routing: supported('the older form of force_local_zone'),
      force_local_zone: supportedWhole(),
      locality_basis: supported(),
    },
  },
  [`${PREFIX}.common.v3.ConsistentHashingLbConfig`]: {
    otherwise: rejected(),
    fields: {
      use_hostname_for_hashing: supported(),
      hash_balance_factor: supported(),
      hash_policy: supported('takes the place of what routes say'),
    },
  },
};
