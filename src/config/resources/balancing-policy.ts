// LoadBalancingPolicy message → the fields of Cluster that say the same, and what no field of Cluster says. What reads a
// cluster's balancing knows only those.

import {
  Cluster_LbPolicy,
  LocalityLbConfig_ZoneAwareLbConfig_LocalityBasis as LocalityBasis,
  RingHash_HashFunction,
  LeastRequest_SelectionMethod as SelectionMethod,
} from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { checkMaglevSize, checkRingSizes } from './hash-table-checks.ts';
import type { Any, Cluster, HashPolicyMessage, MessageOf } from './messages.ts';
import { checkSubsetConfig } from './subset-checks.ts';
import { valueOr } from './units.ts';

const PREFIX = 'proxy.extensions.load_balancing_policies.';

type SlowStartMessage = MessageOf<'common.v3.SlowStartConfig'>;

/** What only the newer policies say. */
interface NewerBalancing {
  /** Least request compares all hosts. */
  readonly compares_all: boolean;
  readonly hash_policy: readonly HashPolicyMessage[];
  readonly hash_policy_at: string;
  /** Of lb_subset_config. */
  readonly allows_redundant_keys: boolean;
  /** Of round robin or least request, whoever says it. */
  readonly slow_start: SlowStartMessage | null;
  readonly slow_start_at: string;
  /** Of zone_aware_lb_config: from how many healthy hosts on the own locality gets all; null for no such rule. */
  readonly forced_from: number | null;
  readonly goes_by_weight: boolean;
}

export type BalancedCluster = Cluster & NewerBalancing;

/** The fields that a policy stands for. */
type Balancing = NewerBalancing &
  Pick<
    Cluster,
    | 'lb_policy'
    | 'least_request_lb_config'
    | 'ring_hash_lb_config'
    | 'maglev_lb_config'
    | 'lb_subset_config'
    | 'common_lb_config'
  >;

type Common = NonNullable<Cluster['common_lb_config']>;
type Policies = NonNullable<Cluster['load_balancing_policy']>;

const NO_COMMON: Common = {
  healthy_panic_threshold: null,
  zone_aware_lb_config: null,
  locality_weighted_lb_config: null,
  update_merge_window: null,
  ignore_new_hosts_until_first_hc: false,
  close_connections_on_host_set_change: false,
  consistent_hashing_lb_config: null,
  override_host_status: null,
};

const NOTHING_NEWER: NewerBalancing = {
  compares_all: false,
  hash_policy: [],
  hash_policy_at: '',
  allows_redundant_keys: false,
  slow_start: null,
  slow_start_at: '',
  forced_from: null,
  goes_by_weight: false,
};

export function withBalancingPolicy(cluster: Cluster, at: string, faults: FaultSink): BalancedCluster {
  if (cluster.load_balancing_policy === null)
    return withFields(cluster, { ...NOTHING_NEWER, ...ownSlowStart(cluster, at) });
  const common = { ...NO_COMMON, ...cluster.common_lb_config };
  const balancing: Balancing = {
    ...NOTHING_NEWER,
    lb_policy: Cluster_LbPolicy.ROUND_ROBIN,
    least_request_lb_config: null,
    ring_hash_lb_config: null,
    maglev_lb_config: null,
    lb_subset_config: null,
    common_lb_config: {
      ...common,
      zone_aware_lb_config: null,
      locality_weighted_lb_config: null,
      consistent_hashing_lb_config: null,
    },
  };
  return withFields(
    cluster,
    applyFirst(cluster.load_balancing_policy, balancing, `${at}.load_balancing_policy`, faults),
  );
}

/** Only one of the two is there, or a check has complained. */
function ownSlowStart(cluster: Cluster, at: string): Pick<NewerBalancing, 'slow_start' | 'slow_start_at'> {
  const field = cluster.round_robin_lb_config === null ? 'least_request_lb_config' : 'round_robin_lb_config';
  return { slow_start: cluster[field]?.slow_start_config ?? null, slow_start_at: `${at}.${field}.slow_start_config` };
}

/** A copy with other fields. Those that a message does not set are its prototype's, which the copy has, too. */
function withFields<Message extends object, Fields extends object>(message: Message, fields: Fields): Message & Fields {
  return Object.assign(Object.create(Object.getPrototypeOf(message)), message, fields);
}

/** The first policy that this build has counts alone; those before it are warned of. */
function applyFirst({ policies }: Policies, balancing: Balancing, at: string, faults: FaultSink): Balancing {
  const lacking: { readonly at: string; readonly type: string }[] = [];
  for (const [index, { typed_extension_config: config }] of policies.entries()) {
    const configAt = `${at}.policies[${index}].typed_extension_config.typed_config`;
    const opened = openExtension(config?.typed_config ?? null);
    const apply = opened === undefined ? undefined : POLICIES.get(opened.typeName);
    if (apply !== undefined) {
      for (const other of lacking) {
        faults.warning(other.at, `${other.type} is not supported by this build; the next policy counts`);
      }
      return apply(opened!.message, balancing, configAt, faults);
    }
    // A field rule has asked for it: until it is there, nobody knows what was meant.
    if (config !== null && config.typed_config === null) return balancing;
    if (config !== null) lacking.push({ at: configAt, type: quote(typeOf(config.typed_config!)) });
  }
  const types = lacking.map(({ type }) => type).join(', ');
  faults.error(at, types === '' ? 'names no policy' : `names no policy that this build has, only ${types}`);
  return balancing;
}

/** As a reader tells policies apart. */
function typeOf({ type_url }: Any): string {
  return type_url.slice(type_url.lastIndexOf('.') + 1);
}

type Apply = (message: object, balancing: Balancing, at: string, faults: FaultSink) => Balancing;

type LocalityConfig = MessageOf<'common.v3.LocalityLbConfig'>;
type HashedPolicy = Pick<MessageOf<'maglev.v3.Maglev'>, 'locality_weighted_lb_config' | 'consistent_hashing_lb_config'>;
/** The message that has replaced them takes their place when it is there. */
type OwnHashing = Pick<MessageOf<'ring_hash.v3.RingHash'>, 'use_hostname_for_hashing' | 'hash_balance_factor'>;

function policy<Name extends Parameters<typeof typeNameOf>[0]>(
  name: Name,
  apply: (message: MessageOf<Name>, balancing: Balancing, at: string, faults: FaultSink) => Balancing,
): readonly [string, Apply] {
  return [typeNameOf(name), apply as Apply];
}

function typeNameOf(name: `${string}.v3.${string}`): string {
  return PREFIX + name;
}

const POLICIES: ReadonlyMap<string, Apply> = new Map<string, Apply>([
  policy('round_robin.v3.RoundRobin', (message, balancing, at) =>
    byLocality({ ...balancing, ...slowStart(message, at) }, message.locality_lb_config),
  ),
  policy('random.v3.Random', ({ locality_lb_config }, balancing) =>
    byLocality({ ...balancing, lb_policy: Cluster_LbPolicy.RANDOM }, locality_lb_config),
  ),
  policy('least_request.v3.LeastRequest', (message, balancing, at) =>
    byLocality(
      {
        ...balancing,
        lb_policy: Cluster_LbPolicy.LEAST_REQUEST,
        least_request_lb_config: message,
        ...slowStart(message, at),
        compares_all:
          message.selection_method === SelectionMethod.FULL_SCAN || (message.enable_full_scan?.value ?? false),
      },
      message.locality_lb_config,
    ),
  ),
  policy('cluster_provided.v3.ClusterProvided', (_message, balancing) => ({
    ...balancing,
    lb_policy: Cluster_LbPolicy.CLUSTER_PROVIDED,
  })),
  policy('ring_hash.v3.RingHash', (message, balancing, at, faults) => {
    checkRingSizes(message, at, faults);
    const isMurmur = message.hash_function === RingHash_HashFunction.MURMUR_HASH_2;
    const ring = withFields(message, { hash_function: isMurmur ? 1 : 0, deprecated_v1: null });
    return byHash(
      { ...balancing, lb_policy: Cluster_LbPolicy.RING_HASH, ring_hash_lb_config: ring },
      message,
      at,
      message,
    );
  }),
  policy('maglev.v3.Maglev', (message, balancing, at, faults) => {
    checkMaglevSize(message, at, faults);
    return byHash({ ...balancing, lb_policy: Cluster_LbPolicy.MAGLEV, maglev_lb_config: message }, message, at);
  }),
  policy('wrr_locality.v3.WrrLocality', ({ endpoint_picking_policy: child }, balancing, at, faults) => {
    const applied = applyChild(child, balancing, `${at}.endpoint_picking_policy`, faults);
    return withCommon(applied, { locality_weighted_lb_config: {} });
  }),
  policy('subset.v3.Subset', (message, balancing, at, faults) => {
    const applied = applyChild(message.subset_lb_policy, balancing, `${at}.subset_lb_policy`, faults);
    const weighsLocalities = applied.common_lb_config?.locality_weighted_lb_config !== null;
    checkSubsetConfig(message, weighsLocalities, at, faults);
    return { ...applied, lb_subset_config: message, allows_redundant_keys: message.allow_redundant_keys };
  }),
]);

function slowStart(
  { slow_start_config }: Pick<MessageOf<'round_robin.v3.RoundRobin'>, 'slow_start_config'>,
  at: string,
): Pick<NewerBalancing, 'slow_start' | 'slow_start_at'> {
  return { slow_start: slow_start_config, slow_start_at: `${at}.slow_start_config` };
}

function applyChild(child: Policies | null, balancing: Balancing, at: string, faults: FaultSink): Balancing {
  // Without it a field rule has been broken already.
  return child === null ? balancing : applyFirst(child, balancing, at, faults);
}

function withCommon(balancing: Balancing, fields: Partial<Common>): Balancing {
  return { ...balancing, common_lb_config: { ...NO_COMMON, ...balancing.common_lb_config, ...fields } };
}

function byLocality(balancing: Balancing, config: LocalityConfig | null): Balancing {
  if (config === null) return balancing;
  const { zone_aware_lb_config, locality_weighted_lb_config } = config;
  const applied = withCommon(balancing, { zone_aware_lb_config, locality_weighted_lb_config });
  if (zone_aware_lb_config === null) return applied;
  const { force_local_zone: forced, force_locality_direct_routing: isForced, locality_basis } = zone_aware_lb_config;
  return {
    ...applied,
    forced_from: forced === null && !isForced ? null : valueOr(forced?.min_size, 1),
    goes_by_weight: locality_basis === LocalityBasis.HEALTHY_HOSTS_WEIGHT,
  };
}

function byHash(
  balancing: Balancing,
  { locality_weighted_lb_config, consistent_hashing_lb_config: config }: HashedPolicy,
  at: string,
  deprecated: OwnHashing = { use_hostname_for_hashing: false, hash_balance_factor: null },
): Balancing {
  const consistent_hashing_lb_config: OwnHashing = config ?? deprecated;
  const applied = withCommon(balancing, { locality_weighted_lb_config, consistent_hashing_lb_config });
  const hash_policy_at = `${at}.consistent_hashing_lb_config.hash_policy`;
  return { ...applied, hash_policy: config?.hash_policy ?? [], hash_policy_at };
}
