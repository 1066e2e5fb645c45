import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  assigned,
  clusterErrors,
  clusterNamed,
  clusterSettings,
  type JsonObject,
  member,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0]';

describe('a balancer that goes by hashes', () => {
  it('reads its sizes, its function and what places hosts', () => {
    const ring = clusterSettings({
      ...assigned([
        {
          lb_endpoints: [
            member(1, { metadata: { filter_metadata: { 'envoy.lb': { hash_key: 'one' } } } }),
            member(2, { metadata: { filter_metadata: { 'proxy.lb': { hash_key: 2 } } } }),
          ],
        },
      ]),
      lb_policy: 'RING_HASH',
      ring_hash_lb_config: { minimum_ring_size: 7, maximum_ring_size: '9000', hash_function: 'MURMUR_HASH_2' },
      common_lb_config: { consistent_hashing_lb_config: { use_hostname_for_hashing: true } },
    });
    assert.equal(ring.lbPolicy, 'RING_HASH');
    assert.deepEqual(ring.hashing, {
      minimumRingSize: 7,
      maximumRingSize: 9000,
      hashFunction: 'MURMUR_HASH_2',
      maglevTableSize: 65537,
      usesHostname: true,
      balancePercent: 0,
      policies: [],
    });
    assert.deepEqual(
      ring.hosts.map(({ hashKey }) => hashKey),
      ['one', ''],
    );
    const maglev = clusterSettings(
      clusterNamed('web', { lb_policy: 'MAGLEV', maglev_lb_config: { table_size: 5_000_011 } }),
    );
    assert.equal(maglev.hashing.maglevTableSize, 5_000_011);
  });

  it('is refused with sizes that no table can have', () => {
    const ring = (fields: JsonObject): JsonObject =>
      clusterNamed('web', { lb_policy: 'RING_HASH', ring_hash_lb_config: fields });
    const maglev = (table_size: number): JsonObject =>
      clusterNamed('web', { lb_policy: 'MAGLEV', maglev_lb_config: { table_size } });
    assert.deepEqual(clusterErrors(ring({ minimum_ring_size: 20, maximum_ring_size: 10 })), [
      `${AT}.ring_hash_lb_config.minimum_ring_size: 20 exceeds maximum_ring_size 10`,
    ]);
    assert.deepEqual(clusterErrors(ring({ minimum_ring_size: 8_388_609 })), [
      `${AT}.ring_hash_lb_config.minimum_ring_size: 8388609 exceeds the limit 8388608`,
    ]);
    assert.deepEqual(clusterErrors(ring({ maximum_ring_size: 8_388_609 })), [
      `${AT}.ring_hash_lb_config.maximum_ring_size: 8388609 exceeds the limit 8388608`,
    ]);
    for (const size of [0, 1, 4, 65536]) {
      assert.deepEqual(clusterErrors(maglev(size)), [
        `${AT}.maglev_lb_config.table_size: ${size} is not a prime number`,
      ]);
    }
    const factor = (hash_balance_factor: number): JsonObject =>
      clusterNamed('web', {
        lb_policy: 'MAGLEV',
        common_lb_config: { consistent_hashing_lb_config: { hash_balance_factor } },
      });
    assert.deepEqual(clusterErrors(factor(99)), [
      `${AT}.common_lb_config.consistent_hashing_lb_config.hash_balance_factor: 99 is below the minimum 100`,
    ]);
    assert.equal(clusterSettings(factor(100)).hashing.balancePercent, 100);
    assert.deepEqual(clusterErrors(maglev(5_000_012)), [
      `${AT}.maglev_lb_config.table_size: 5000012 exceeds the limit 5000011`,
    ]);
  });
});

describe('slow start', () => {
  const policies = [
    ['ROUND_ROBIN', 'round_robin_lb_config'],
    ['LEAST_REQUEST', 'least_request_lb_config'],
  ] as const;
  const starting = (lb_policy: string, field: string, slow_start_config: JsonObject): JsonObject =>
    clusterNamed('web', { lb_policy, [field]: { slow_start_config } });

  it('is read with its defaults, and there is none without a window', () => {
    for (const [policy, field] of policies) {
      const read = (config: JsonObject) => clusterSettings(starting(policy, field, config)).slowStart;
      assert.deepEqual(read({ slow_start_window: '60s' }), {
        windowMs: 60_000,
        aggression: { key: '', default: 1 },
        minWeightPercent: 10,
      });
      const aggression = { default_value: 2.5, runtime_key: 'hurry' };
      assert.deepEqual(read({ slow_start_window: '0.5s', aggression, min_weight_percent: { value: 2.5 } }), {
        windowMs: 500,
        aggression: { key: 'hurry', default: 2.5 },
        minWeightPercent: 2.5,
      });
      assert.equal(read({}), null);
      assert.equal(read({ slow_start_window: '0s' }), null);
    }
    assert.equal(clusterSettings(clusterNamed('web')).slowStart, null);
  });

  it('is refused without aggression, and with percent that are none', () => {
    for (const [policy, field] of policies) {
      const at = `${AT}.${field}.slow_start_config`;
      const errors = (config: JsonObject): string[] => clusterErrors(starting(policy, field, config));
      for (const default_value of [0, -1]) {
        assert.deepEqual(errors({ slow_start_window: '1s', aggression: { default_value } }), [
          `${at}.aggression.default_value: ${default_value} is not above 0`,
        ]);
      }
      assert.deepEqual(errors({ min_weight_percent: { value: 101 } }), [
        `${at}.min_weight_percent.value: 101 exceeds the limit 100`,
      ]);
    }
  });
});

describe('localities and panic', () => {
  it('are read as they are configured', () => {
    const localities = [
      { locality: { zone: 'a' }, load_balancing_weight: 7, lb_endpoints: [member(1)] },
      { locality: { zone: 'b' }, lb_endpoints: [member(2)] },
    ];
    const weighed = clusterSettings({ ...assigned(localities), common_lb_config: { locality_weighted_lb_config: {} } });
    assert.deepEqual([weighed.weighsLocalities, weighed.failsTrafficOnPanic], [true, false]);
    assert.deepEqual(
      weighed.hosts.map(({ localityWeight }) => localityWeight),
      [7, 0],
    );
    const zone_aware_lb_config = { fail_traffic_on_panic: true };
    const failing = clusterSettings(clusterNamed('web', { common_lb_config: { zone_aware_lb_config } }));
    assert.deepEqual([failing.weighsLocalities, failing.failsTrafficOnPanic], [false, true]);
    assert.equal(weighed.zoneRouting, null);
    const zones = { routing_enabled: { value: 33.9 }, min_cluster_size: 9 };
    const aware = clusterSettings(clusterNamed('web', { common_lb_config: { zone_aware_lb_config: zones } }));
    const plain = { forcedFrom: null, goesByWeight: false };
    assert.deepEqual(aware.zoneRouting, { enabledPercent: 33, minClusterSize: 9, ...plain });
  });

  it('go by zones or by weights, not by both, and percent are such', () => {
    const both = { zone_aware_lb_config: {}, locality_weighted_lb_config: {} };
    assert.equal(clusterErrors(clusterNamed('web', { common_lb_config: both })).length, 1);
    for (const value of [-1, 100.5]) {
      assert.deepEqual(
        clusterErrors(clusterNamed('web', { common_lb_config: { healthy_panic_threshold: { value } } })),
        [
          value < 0
            ? `${AT}.common_lb_config.healthy_panic_threshold.value: -1 is below the minimum 0`
            : `${AT}.common_lb_config.healthy_panic_threshold.value: 100.5 exceeds the limit 100`,
        ],
      );
    }
  });
});

describe('subsets', () => {
  const withSubsets = (lb_subset_config: JsonObject, fields: JsonObject = {}): JsonObject =>
    clusterNamed('web', { lb_subset_config, ...fields });

  it('are none without selectors', () => {
    assert.equal(clusterSettings(withSubsets({ fallback_policy: 'ANY_ENDPOINT' })).subsets, null);
  });

  it('are read with their selectors, their fallbacks and what hosts say', () => {
    const lb = (fields: JsonObject): JsonObject => ({ metadata: { filter_metadata: { 'envoy.lb': fields } } });
    const settings = clusterSettings({
      ...assigned([{ lb_endpoints: [member(1, lb({ b: { y: 1, x: [true] }, a: ['u', 2], other: 1 })), member(2)] }]),
      common_lb_config: { locality_weighted_lb_config: {} },
      lb_subset_config: {
        fallback_policy: 'DEFAULT_SUBSET',
        default_subset: { b: null, a: 'x' },
        subset_selectors: [
          { keys: ['b', 'a', 'b'], fallback_policy: 'KEYS_SUBSET', fallback_keys_subset: ['b'] },
          { keys: ['a'], fallback_policy: 'ANY_ENDPOINT', single_host_per_subset: true },
        ],
        locality_weight_aware: true,
        scale_locality_weight: true,
        panic_mode_any: true,
        list_as_any: true,
        metadata_fallback_policy: 'FALLBACK_LIST',
      },
    });
    assert.deepEqual(settings.subsets, {
      selectors: [
        { keys: ['a', 'b'], fallback: 'fewer-keys', fallbackKeys: ['b'], isSingleHost: false },
        { keys: ['a'], fallback: 'any-host', fallbackKeys: [], isSingleHost: true },
      ],
      fallback: 'default-subset',
      defaultSubset: [
        ['a', '"x"'],
        ['b', 'null'],
      ],
      weighsLocalities: true,
      scalesLocalityWeights: true,
      panicModeAny: true,
      listAsAny: true,
      takesAlternatives: true,
      allowsRedundantKeys: false,
    });
    assert.deepEqual(
      settings.hosts.map(({ subsetValues }) => subsetValues),
      [
        [
          { key: 'b', value: '{"x":[true],"y":1}', elements: null },
          { key: 'a', value: '["u",2]', elements: ['"u"', '2'] },
        ],
        [],
      ],
    );
  });

  it('weigh localities only where the cluster does', () => {
    const config = { subset_selectors: [{ keys: ['a'] }], locality_weight_aware: true };
    assert.deepEqual(clusterErrors(withSubsets(config)), [
      `${AT}.lb_subset_config.locality_weight_aware: needs common_lb_config.locality_weighted_lb_config`,
    ]);
    const common_lb_config = { locality_weighted_lb_config: {} };
    assert.deepEqual(clusterErrors(withSubsets(config, { common_lb_config })), []);
  });
});
