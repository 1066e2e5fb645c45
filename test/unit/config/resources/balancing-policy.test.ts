// The newer load-balancing policies say what fields of the cluster say, too.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterSettings } from '../../../../src/snapshot/index.ts';
import {
  assigned,
  clusterErrors,
  clusterNamed,
  clusterSettings,
  faultTexts,
  type JsonObject,
  load,
  withClusters,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0].load_balancing_policy';

function extension(type: string, fields: JsonObject = {}, spelling = 'envoy'): JsonObject {
  const name = `${spelling}.extensions.load_balancing_policies.${type}`;
  return {
    typed_extension_config: {
      name: `${spelling}.load_balancing_policies.${type.split('.')[0]!}`,
      typed_config: { '@type': `type.googleapis.com/${name}`, ...fields },
    },
  };
}

function policies(...list: JsonObject[]): JsonObject {
  return { policies: list };
}

function balanced(...list: JsonObject[]): JsonObject {
  return { lb_policy: 'LOAD_BALANCING_POLICY_CONFIG', load_balancing_policy: policies(...list) };
}

/** Both forms give the same settings. */
function assertSame(newer: JsonObject, older: JsonObject): ClusterSettings {
  const settings = clusterSettings(clusterNamed('web', newer));
  assert.deepEqual(settings, clusterSettings(clusterNamed('web', older)));
  return settings;
}

describe('a load-balancing policy', () => {
  it('of round robin, random or least request takes the place of the fields of the cluster', () => {
    const weighed = { locality_lb_config: { locality_weighted_lb_config: {} } };
    const failing = { locality_lb_config: { zone_aware_lb_config: { fail_traffic_on_panic: true } } };
    assertSame(balanced(extension('round_robin.v3.RoundRobin')), {});
    assertSame(balanced(extension('round_robin.v3.RoundRobin', weighed, 'proxy')), {
      common_lb_config: { locality_weighted_lb_config: {} },
    });
    assertSame(balanced(extension('random.v3.Random', failing)), {
      lb_policy: 'RANDOM',
      common_lb_config: { zone_aware_lb_config: { fail_traffic_on_panic: true } },
    });
    const options = { choice_count: 4, active_request_bias: { default_value: 2, runtime_key: 'x' } };
    assertSame(balanced(extension('least_request.v3.LeastRequest', { ...options, ...weighed })), {
      lb_policy: 'LEAST_REQUEST',
      least_request_lb_config: options,
      common_lb_config: { locality_weighted_lb_config: {} },
    });
  });

  it('of round robin or least request spares hosts that start', () => {
    const slow_start_config = { slow_start_window: '3s', aggression: { default_value: 2, runtime_key: 'hurry' } };
    assertSame(balanced(extension('round_robin.v3.RoundRobin', { slow_start_config })), {
      round_robin_lb_config: { slow_start_config },
    });
    assertSame(balanced(extension('least_request.v3.LeastRequest', { slow_start_config })), {
      lb_policy: 'LEAST_REQUEST',
      least_request_lb_config: { slow_start_config },
    });
    const hasty = { slow_start_config: { aggression: { default_value: -1 } } };
    assert.deepEqual(clusterErrors(clusterNamed('web', balanced(extension('round_robin.v3.RoundRobin', hasty)))), [
      `${AT}.policies[0].typed_extension_config.typed_config.slow_start_config.aggression.default_value: -1 is not above 0`,
    ]);
    // What it replaces has no say.
    const newer = { ...balanced(extension('random.v3.Random')), round_robin_lb_config: { slow_start_config } };
    assert.equal(clusterSettings(clusterNamed('web', { ...newer, lb_policy: 'ROUND_ROBIN' })).slowStart, null);
  });

  it('routes by zone, with more to say of it', () => {
    const zones = { routing_enabled: { value: 50 }, min_cluster_size: 2 };
    const policy = (fields: JsonObject): JsonObject =>
      balanced(extension('random.v3.Random', { locality_lb_config: { zone_aware_lb_config: fields } }));
    assertSame(policy(zones), { lb_policy: 'RANDOM', common_lb_config: { zone_aware_lb_config: zones } });
    const read = (fields: JsonObject) => clusterSettings(clusterNamed('web', policy(fields))).zoneRouting!;
    assert.equal(read({ force_local_zone: { min_size: 3 } }).forcedFrom, 3);
    assert.equal(read({ force_local_zone: {} }).forcedFrom, 1);
    assert.equal(read({ force_locality_direct_routing: true }).forcedFrom, 1);
    assert.equal(read({ locality_basis: 'HEALTHY_HOSTS_WEIGHT' }).goesByWeight, true);
    assert.equal(read({}).goesByWeight, false);
  });

  it('of a hash table does, too', () => {
    const sizes = { minimum_ring_size: 10, maximum_ring_size: 20 };
    const hashing = { consistent_hashing_lb_config: { use_hostname_for_hashing: true } };
    const weighed = { locality_weighted_lb_config: {} };
    const older = { ...sizes, hash_function: 'MURMUR_HASH_2' };
    assertSame(balanced(extension('ring_hash.v3.RingHash', { ...older, ...hashing, ...weighed })), {
      lb_policy: 'RING_HASH',
      ring_hash_lb_config: older,
      common_lb_config: { ...hashing, ...weighed },
    });
    for (const hash_function of ['DEFAULT_HASH', 'XX_HASH']) {
      assertSame(balanced(extension('ring_hash.v3.RingHash', { hash_function, use_hostname_for_hashing: true })), {
        lb_policy: 'RING_HASH',
        common_lb_config: hashing,
      });
    }
    const bounded = { consistent_hashing_lb_config: { hash_balance_factor: 150 } };
    assertSame(balanced(extension('ring_hash.v3.RingHash', { hash_balance_factor: 150 })), {
      lb_policy: 'RING_HASH',
      common_lb_config: bounded,
    });
    assertSame(balanced(extension('maglev.v3.Maglev', bounded)), { lb_policy: 'MAGLEV', common_lb_config: bounded });
    // What has been replaced does not count beside what replaces it.
    const both = { use_hostname_for_hashing: true, hash_balance_factor: 200, consistent_hashing_lb_config: {} };
    assertSame(balanced(extension('ring_hash.v3.RingHash', both)), { lb_policy: 'RING_HASH' });
    assertSame(balanced(extension('maglev.v3.Maglev', { table_size: 31, ...hashing })), {
      lb_policy: 'MAGLEV',
      maglev_lb_config: { table_size: 31 },
      common_lb_config: hashing,
    });
  });

  it('of least request may compare all hosts', () => {
    const comparesAll = (fields: JsonObject): boolean =>
      clusterSettings(clusterNamed('web', balanced(extension('least_request.v3.LeastRequest', fields)))).leastRequest
        .comparesAll;
    assert.equal(comparesAll({}), false);
    assert.equal(comparesAll({ selection_method: 'FULL_SCAN' }), true);
    assert.equal(comparesAll({ enable_full_scan: true }), true);
    assert.equal(comparesAll({ enable_full_scan: false }), false);
  });

  it('of a hash table says what requests are hashed by, with faults at their places', () => {
    const hashing = (hash_policy: JsonObject[]): JsonObject =>
      clusterNamed('web', balanced(extension('maglev.v3.Maglev', { consistent_hashing_lb_config: { hash_policy } })));
    const byHeader = { header: { header_name: 'X-User' }, terminal: true };
    assert.deepEqual(clusterSettings(hashing([byHeader])).hashing.policies, [
      { kind: 'header', name: 'x-user', rewrite: null, isTerminal: true },
    ]);
    const place = 'policies[0].typed_extension_config.typed_config.consistent_hashing_lb_config.hash_policy[0].cookie';
    assert.deepEqual(clusterErrors(hashing([{ cookie: { name: 'a;b' } }])), [
      `${AT}.${place}.name: "a;b" holds characters that would end a part of the cookie`,
    ]);
  });

  it('hashes by what the HTTP options of the cluster say, unless it says something itself', () => {
    const type = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
    const by = (header_name: string): JsonObject => ({ header: { header_name } });
    const options = {
      '@type': `type.googleapis.com/${type}`,
      explicit_http_config: { http_protocol_options: {} },
      hash_policy: [by('x-cluster')],
    };
    const typed_extension_protocol_options = { [type]: options };
    const names = (fields: JsonObject): unknown[] =>
      clusterSettings(clusterNamed('web', fields)).hashing.policies.map((policy) => 'name' in policy && policy.name);
    assert.deepEqual(names({ lb_policy: 'RING_HASH', typed_extension_protocol_options }), ['x-cluster']);
    const own = balanced(
      extension('maglev.v3.Maglev', { consistent_hashing_lb_config: { hash_policy: [by('x-balancer')] } }),
    );
    assert.deepEqual(names({ ...own, typed_extension_protocol_options }), ['x-balancer']);
    assert.deepEqual(names({ ...balanced(extension('maglev.v3.Maglev')), typed_extension_protocol_options }), [
      'x-cluster',
    ]);
    const wrong = { [type]: { ...options, hash_policy: [{ cookie: { name: 'a;b' } }] } };
    assert.deepEqual(clusterErrors(clusterNamed('web', { typed_extension_protocol_options: wrong })), [
      `static_resources.clusters[0].typed_extension_protocol_options["${type}"].hash_policy[0].cookie.name: "a;b" holds characters that would end a part of the cookie`,
    ]);
  });

  it('within subsets or weighed localities keeps what it says itself', () => {
    const config = {
      fallback_policy: 'ANY_ENDPOINT',
      subset_selectors: [{ keys: ['a'], fallback_policy: 'NO_FALLBACK' }],
      locality_weight_aware: true,
    };
    const maglev = extension('maglev.v3.Maglev', { table_size: 31 });
    const endpoint_picking_policy = policies(maglev);
    const wrr = extension('wrr_locality.v3.WrrLocality', { endpoint_picking_policy });
    assertSame(balanced(extension('subset.v3.Subset', { ...config, subset_lb_policy: policies(wrr) })), {
      lb_policy: 'MAGLEV',
      maglev_lb_config: { table_size: 31 },
      lb_subset_config: config,
      common_lb_config: { locality_weighted_lb_config: {} },
    });
  });

  it('leaves the rest of the cluster as it is, and wins over what it replaces', () => {
    const common_lb_config = { healthy_panic_threshold: { value: 7 }, locality_weighted_lb_config: {} };
    const newer = { ...balanced(extension('random.v3.Random')), lb_policy: 'ROUND_ROBIN', common_lb_config };
    assertSame(newer, { lb_policy: 'RANDOM', common_lb_config: { healthy_panic_threshold: { value: 7 } } });
  });

  it('tells subsets what hosts say', () => {
    const subset_lb_policy = policies(extension('random.v3.Random'));
    const subset = extension('subset.v3.Subset', { subset_selectors: [{ keys: ['a'] }], subset_lb_policy });
    const address = { socket_address: { address: '10.0.0.1', port_value: 1 } };
    const metadata = { filter_metadata: { 'envoy.lb': { a: 1 } } };
    const members = assigned([{ lb_endpoints: [{ endpoint: { address }, metadata }] }]);
    assert.deepEqual(clusterSettings({ ...members, ...balanced(subset) }).hosts[0]!.subsetValues, [
      { key: 'a', value: '1', elements: null },
    ]);
  });

  it('of subsets may let redundant keys pass, and take lists of what is asked', () => {
    const subset_lb_policy = policies(extension('random.v3.Random'));
    const settings = (fields: JsonObject) =>
      clusterSettings(
        clusterNamed(
          'web',
          balanced(extension('subset.v3.Subset', { subset_selectors: [{ keys: ['a'] }], subset_lb_policy, ...fields })),
        ),
      ).subsets!;
    const plain = settings({});
    assert.deepEqual([plain.allowsRedundantKeys, plain.takesAlternatives], [false, false]);
    const lenient = settings({ allow_redundant_keys: true, metadata_fallback_policy: 'FALLBACK_LIST' });
    assert.deepEqual([lenient.allowsRedundantKeys, lenient.takesAlternatives], [true, true]);
  });

  it('is the first of those that this build has, and warns of those before', () => {
    const clientSide = 'client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin';
    const others = [extension('pick_first.v3.PickFirst'), extension(clientSide, { blackout_period: '10s' })];
    const place = (index: number): string => `${AT}.policies[${index}].typed_extension_config.typed_config`;
    // Nobody asks for what comes behind.
    const cluster = clusterNamed('web', balanced(...others, extension('random.v3.Random'), ...others));
    const result = load(withClusters(cluster));
    assert.equal(result.bootstrap!.clusters[0]!.lbPolicy, 'RANDOM');
    assert.deepEqual(faultTexts(result, 'warning'), [
      `${place(0)}: "PickFirst" is not supported by this build; the next policy counts`,
      `${place(1)}: "ClientSideWeightedRoundRobin" is not supported by this build; the next policy counts`,
    ]);
    const without = load(withClusters(clusterNamed('web', balanced(...others))));
    const types = '"PickFirst", "ClientSideWeightedRoundRobin"';
    assert.deepEqual(faultTexts(without), [`${AT}: names no policy that this build has, only ${types}`]);
    assert.deepEqual(faultTexts(without, 'warning'), []);
  });

  it('has settings, and faults where it has none', () => {
    const faultsOf = (...list: JsonObject[]): string[] => {
      const result = load(withClusters(clusterNamed('web', balanced(...list))));
      return [...faultTexts(result), ...faultTexts(result, 'warning')];
    };
    const untyped = { typed_extension_config: { name: 'envoy.load_balancing_policies.random' } };
    const missing = `${AT}.policies[0].typed_extension_config.typed_config: must be set`;
    assert.deepEqual(faultsOf(untyped), [missing]);
    assert.deepEqual(faultsOf(untyped, extension('random.v3.Random')), [missing]);
    assert.deepEqual(faultsOf(), [`${AT}: names no policy`]);
    assert.deepEqual(faultsOf({}), [`${AT}: names no policy`]);
  });

  it('is refused with what no table or subset can have, at its own place', () => {
    const errorsOf = (...list: JsonObject[]): string[] =>
      clusterErrors(clusterNamed('web', balanced(...list)))
        .map((text) => text.replace(`${AT}.policies[0].`, ''))
        .toSorted();
    const config = 'typed_extension_config.typed_config';
    assert.deepEqual(errorsOf(extension('ring_hash.v3.RingHash', { minimum_ring_size: 9, maximum_ring_size: 8 })), [
      `${config}.minimum_ring_size: 9 exceeds maximum_ring_size 8`,
    ]);
    assert.deepEqual(errorsOf(extension('maglev.v3.Maglev', { table_size: 10 })), [
      `${config}.table_size: 10 is not a prime number`,
    ]);
    const subset_lb_policy = policies(extension('random.v3.Random'));
    const subset_selectors = [{ keys: ['a'], fallback_policy: 'KEYS_SUBSET', fallback_keys_subset: ['b'] }];
    assert.deepEqual(
      errorsOf(extension('subset.v3.Subset', { subset_selectors, locality_weight_aware: true, subset_lb_policy })),
      [
        `${config}.locality_weight_aware: needs common_lb_config.locality_weighted_lb_config`,
        `${config}.subset_selectors[0].fallback_keys_subset: "b" is not one of keys`,
        `${config}.subset_selectors[0].fallback_keys_subset: must hold fewer keys than keys`,
      ],
    );
  });
});
