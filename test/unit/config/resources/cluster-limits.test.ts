// The limits of clusters, one by one: what is just beyond each is refused, with the place and the limit, and what is just
// within it is taken.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  assigned,
  clusterErrors,
  clusterNamed,
  clusterSettings,
  faultTexts,
  type Json,
  type JsonObject,
  load,
  member,
  socketAddress,
  withClusters,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0]';

interface Limit {
  readonly name: string;
  readonly cluster: (value: Json) => JsonObject;
  /** Behind the path of the cluster. */
  readonly at: string;
  readonly within: readonly Json[];
  readonly beyond: readonly (readonly [Json, string])[];
}

const LARGEST_RING = 8_388_608;
const named = (fields: JsonObject): JsonObject => clusterNamed('web', fields);
const ring = (fields: JsonObject): JsonObject => named({ lb_policy: 'RING_HASH', ring_hash_lb_config: fields });
const lookedUp = (fields: JsonObject): JsonObject => ({
  name: 'web',
  type: 'STRICT_DNS',
  hosts: [socketAddress('web.test', 80)],
  ...fields,
});
const newerDns = (fields: JsonObject): JsonObject => ({
  ...assigned([{ lb_endpoints: [{ endpoint: { address: socketAddress('web.test', 80) } }] }]),
  cluster_type: {
    name: 'envoy.cluster.dns',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster', ...fields },
  },
});
const common = (fields: JsonObject): JsonObject => named({ common_lb_config: fields });
const notAbove = (limit: string) => (value: string) => `${value} is not above ${limit}`;

const LIMITS: readonly Limit[] = [
  {
    name: 'the smallest size of a ring',
    cluster: (size) => ring({ minimum_ring_size: size }),
    at: 'ring_hash_lb_config.minimum_ring_size',
    within: [0, 1, LARGEST_RING],
    beyond: [[LARGEST_RING + 1, `${LARGEST_RING + 1} exceeds the limit ${LARGEST_RING}`]],
  },
  {
    name: 'the largest size of a ring',
    cluster: (size) => ring({ minimum_ring_size: 0, maximum_ring_size: size }),
    at: 'ring_hash_lb_config.maximum_ring_size',
    within: [0, 1, LARGEST_RING],
    beyond: [[LARGEST_RING + 1, `${LARGEST_RING + 1} exceeds the limit ${LARGEST_RING}`]],
  },
  {
    name: 'the order of both sizes, of which one may be the default',
    cluster: (size) => ring({ maximum_ring_size: size }),
    at: 'ring_hash_lb_config.maximum_ring_size',
    within: [1024],
    beyond: [[1023, '1023 is below minimum_ring_size 1024']],
  },
  {
    name: 'the size of a Maglev table',
    cluster: (size) => named({ lb_policy: 'MAGLEV', maglev_lb_config: { table_size: size } }),
    at: 'maglev_lb_config.table_size',
    within: [2, 65_537, 5_000_011],
    beyond: [
      [0, '0 is not a prime number'],
      [1, '1 is not a prime number'],
      [65_536, '65536 is not a prime number'],
      [5_000_077, '5000077 exceeds the limit 5000011'],
    ],
  },
  {
    name: 'the choices of LEAST_REQUEST',
    cluster: (count) => named({ lb_policy: 'LEAST_REQUEST', least_request_lb_config: { choice_count: count } }),
    at: 'least_request_lb_config.choice_count',
    within: [2, 4_294_967_295],
    beyond: [[1, '1 is below the minimum 2']],
  },
  {
    name: 'the panic threshold',
    cluster: (value) => common({ healthy_panic_threshold: { value } }),
    at: 'common_lb_config.healthy_panic_threshold.value',
    within: [0, 100],
    beyond: [
      [-0.1, '-0.1 is below the minimum 0'],
      [100.1, '100.1 exceeds the limit 100'],
      ['NaN', 'NaN is below the minimum 0'],
    ],
  },
  {
    name: 'the share of zone aware routing',
    cluster: (value) => common({ zone_aware_lb_config: { routing_enabled: { value } } }),
    at: 'common_lb_config.zone_aware_lb_config.routing_enabled.value',
    within: [0, 100],
    beyond: [
      [-1, '-1 is below the minimum 0'],
      [101, '101 exceeds the limit 100'],
    ],
  },
  {
    name: 'the bound of the loads of hashed hosts',
    cluster: (factor) =>
      named({
        lb_policy: 'MAGLEV',
        common_lb_config: { consistent_hashing_lb_config: { hash_balance_factor: factor } },
      }),
    at: 'common_lb_config.consistent_hashing_lb_config.hash_balance_factor',
    within: [100],
    beyond: [[99, '99 is below the minimum 100']],
  },
  {
    name: 'the share of ejected hosts',
    cluster: (percent) => named({ outlier_detection: { max_ejection_percent: percent } }),
    at: 'outlier_detection.max_ejection_percent',
    within: [0, 100],
    beyond: [[101, '101 exceeds the limit 100']],
  },
  {
    name: 'the share of retries',
    cluster: (value) => named({ circuit_breakers: { thresholds: [{ retry_budget: { budget_percent: { value } } }] } }),
    at: 'circuit_breakers.thresholds[0].retry_budget.budget_percent.value',
    within: [0, 100],
    beyond: [[101, '101 exceeds the limit 100']],
  },
  {
    name: 'the refresh rate of lookups',
    cluster: (rate) => lookedUp({ dns_refresh_rate: rate }),
    at: 'dns_refresh_rate',
    within: ['0.001s', '0.0015s', '86400s'],
    beyond: ['0.0009s', '0s', '-1s'].map((rate) => [rate, `${rate} is below the minimum 1ms`] as const),
  },
  {
    name: 'the refresh rate of the newer settings',
    cluster: (rate) => newerDns({ dns_refresh_rate: rate }),
    at: 'cluster_type.typed_config.dns_refresh_rate',
    within: ['0.0011s'],
    beyond: ['0.001s', '0s'].map((rate) => [rate, notAbove('1ms')(rate)] as const),
  },
  {
    name: 'the first wait after a failed lookup',
    cluster: (interval) => lookedUp({ dns_failure_refresh_rate: { base_interval: interval } }),
    at: 'dns_failure_refresh_rate.base_interval',
    within: ['0.0001s', '1s'],
    beyond: ['0s', '-1s'].map((interval) => [interval, notAbove('0s')(interval)] as const),
  },
  {
    name: 'the longest wait after failed lookups',
    cluster: (interval) => lookedUp({ dns_failure_refresh_rate: { base_interval: '2s', max_interval: interval } }),
    at: 'dns_failure_refresh_rate.max_interval',
    within: ['2s', '3s'],
    beyond: [['1.9s', 'must not be less than base_interval']],
  },
  {
    name: 'the longest wait of the newer settings',
    cluster: (interval) => newerDns({ dns_failure_refresh_rate: { base_interval: '2s', max_interval: interval } }),
    at: 'cluster_type.typed_config.dns_failure_refresh_rate.max_interval',
    within: ['2s'],
    beyond: [['1s', 'must not be less than base_interval']],
  },
  {
    name: 'the jitter of lookups',
    cluster: (jitter) => lookedUp({ dns_jitter: jitter }),
    at: 'dns_jitter',
    within: ['0s', '1s'],
    beyond: [['-1s', '-1s is below the minimum 0s']],
  },
  {
    name: 'the time to connect',
    cluster: (timeout) => named({ connect_timeout: timeout }),
    at: 'connect_timeout',
    within: ['0.0001s', '3600s'],
    beyond: ['0s', '-1s'].map((timeout) => [timeout, notAbove('0s')(timeout)] as const),
  },
  {
    name: 'the overprovisioning factor',
    cluster: (factor) => assigned([{ lb_endpoints: [member(1)] }], { policy: { overprovisioning_factor: factor } }),
    at: 'load_assignment.policy.overprovisioning_factor',
    within: [1, 1000],
    beyond: [[0, '0 is not above 0']],
  },
  {
    name: 'weights of endpoints',
    cluster: (weight) => assigned([{ lb_endpoints: [member(1, { load_balancing_weight: weight })] }]),
    at: 'load_assignment.endpoints[0].lb_endpoints[0].load_balancing_weight',
    within: [1, 4_294_967_295],
    beyond: [[0, '0 is below the minimum 1']],
  },
  {
    name: 'weights of localities',
    cluster: (weight) => assigned([{ load_balancing_weight: weight, lb_endpoints: [member(1)] }]),
    at: 'load_assignment.endpoints[0].load_balancing_weight',
    within: [1],
    beyond: [[0, '0 is below the minimum 1']],
  },
  {
    name: 'ports',
    cluster: (port) => ({ name: 'web', hosts: [socketAddress('10.0.0.1', Number(port))] }),
    at: 'hosts[0].socket_address.port_value',
    within: [1, 65_535],
    beyond: [[65_536, '65536 exceeds the limit 65535']],
  },
];

describe('limits of a cluster:', () => {
  for (const { name, cluster, at, within, beyond } of LIMITS) {
    it(name, () => {
      for (const value of within) assert.deepEqual(clusterErrors(cluster(value)), [], JSON.stringify(value));
      for (const [value, message] of beyond) {
        const errors = clusterErrors(cluster(value));
        assert.ok(errors.includes(`${AT}.${at}: ${message}`), `${JSON.stringify(value)}: ${errors.join(' | ')}`);
      }
    });
  }
});

const POLICIES: Readonly<Record<string, string>> = {
  ring_hash_lb_config: 'RING_HASH',
  maglev_lb_config: 'MAGLEV',
  least_request_lb_config: 'LEAST_REQUEST',
  round_robin_lb_config: 'ROUND_ROBIN',
};

describe('options of a balancer', () => {
  for (const [field, policy] of Object.entries(POLICIES)) {
    it(`${field} need lb_policy ${policy}`, () => {
      assert.deepEqual(clusterErrors(named({ lb_policy: policy, [field]: {} })), []);
      for (const other of [...Object.values(POLICIES), 'RANDOM']) {
        if (other === policy) continue;
        assert.deepEqual(clusterErrors(named({ lb_policy: other, [field]: {} })), [
          `${AT}.${field}: needs lb_policy ${policy}, not ${other}`,
        ]);
      }
    });
  }
});

describe('of members of which one may be given', () => {
  const address = socketAddress('10.0.0.1', 1);
  const check = { timeout: '1s', interval: '1s', unhealthy_threshold: 1, healthy_threshold: 1 };
  const endpoint = { endpoint: { address }, endpoint_name: 'x' };
  const cases: readonly (readonly [string, JsonObject])[] = [
    ['maglev_lb_config: lb_config', named({ lb_policy: 'RING_HASH', ring_hash_lb_config: {}, maglev_lb_config: {} })],
    ['cluster_type: cluster_discovery_type', named({ type: 'STATIC', cluster_type: { name: 'envoy.cluster.static' } })],
    [
      'common_lb_config.locality_weighted_lb_config: locality_config_specifier',
      common({ zone_aware_lb_config: {}, locality_weighted_lb_config: {} }),
    ],
    [
      'load_assignment.endpoints[0].lb_endpoints[0].endpoint_name: host_identifier',
      assigned([{ lb_endpoints: [endpoint] }], { named_endpoints: { x: { address } } }),
    ],
    ['hosts[0].pipe: address', { name: 'web', hosts: [{ ...address, pipe: { path: '/run/x' } }] }],
    [
      'hosts[0].socket_address.named_port: port_specifier',
      { name: 'web', hosts: [{ socket_address: { address: '10.0.0.1', port_value: 1, named_port: 'x' } }] },
    ],
    [
      'health_checks[0].tcp_health_check: health_checker',
      named({ health_checks: [{ ...check, http_health_check: { path: '/' }, tcp_health_check: {} }] }),
    ],
  ];
  for (const [at, cluster] of cases) {
    it(`${at} takes one`, () => {
      const errors = clusterErrors(cluster).filter((text) => text.startsWith(`${AT}.${at} is already set by `));
      assert.equal(errors.length, 1, clusterErrors(cluster).join(' | '));
    });
  }
});

describe('names and addresses that come twice', () => {
  it('are refused of clusters, at the later one', () => {
    assert.deepEqual(faultTexts(load(withClusters(clusterNamed('a'), clusterNamed('b'), clusterNamed('a')))), [
      'static_resources.clusters[2].name: cluster "a" is already defined at static_resources.clusters[0]',
    ]);
  });

  it('are one host of a cluster, with the settings of the first', () => {
    const twice = [member(1, { load_balancing_weight: 3 }), member(2), member(1, { load_balancing_weight: 4 })];
    const { hosts } = clusterSettings(assigned([{ lb_endpoints: twice }]));
    assert.deepEqual(
      hosts.map(({ address, weight }) => [address.kind === 'ip' && address.port, weight]),
      [
        [1, 3],
        [2, 1],
      ],
    );
    const again = assigned([{ lb_endpoints: [member(1)] }, { priority: 1, lb_endpoints: [member(1)] }]);
    assert.deepEqual(
      clusterSettings(again).hosts.map(({ priority }) => priority),
      [0],
    );
  });

  it('may be of statistics', () => {
    const clusters = ['a', 'b'].map((name) => clusterNamed(name, { alt_stat_name: 'both:of:them' }));
    assert.deepEqual(faultTexts(load(withClusters(...clusters))), []);
    assert.equal(load(withClusters(...clusters)).bootstrap!.clusters[1]!.statName, 'both_of_them');
  });
});

describe('requests that a load assignment has dropped', () => {
  const dropping = (...percentages: readonly Json[]): JsonObject =>
    assigned([{ lb_endpoints: [member(80)] }], {
      policy: { drop_overloads: percentages.map((drop_percentage) => ({ category: 'storm', drop_percentage })) },
    });

  it('are a share of all', () => {
    const cluster = dropping({ numerator: 25, denominator: 'TEN_THOUSAND' });
    assert.deepEqual(clusterSettings(cluster).dropShare, { numerator: 25, denominator: 10_000 });
    for (const none of [dropping(), dropping({ numerator: 0 }), named({})]) {
      assert.equal(clusterSettings(none).dropShare, null);
    }
  });

  it('are no more than all', () => {
    const at = `${AT}.load_assignment.policy.drop_overloads[0].drop_percentage`;
    assert.deepEqual(clusterErrors(dropping({ numerator: 101 })), [`${at}: 101 of 100 is more than all requests`]);
    assert.deepEqual(clusterErrors(dropping({ numerator: 100 })), []);
  });

  it('may be a percentage, which the newer form supersedes', () => {
    const at = `${AT}.load_assignment.policy.drop_overload`;
    const dropped = (policy: JsonObject): JsonObject => assigned([{ lb_endpoints: [member(80)] }], { policy });
    const share = (policy: JsonObject): unknown => clusterSettings(dropped(policy)).dropShare;
    assert.deepEqual(share({ drop_overload: 12.5 }), { numerator: 125_000, denominator: 1_000_000 });
    assert.deepEqual(share({ drop_overload: 100 }), { numerator: 1_000_000, denominator: 1_000_000 });
    assert.equal(share({ drop_overload: 0 }), null);
    for (const wrong of [-1, 100.5]) {
      assert.deepEqual(clusterErrors(dropped({ drop_overload: wrong })), [
        `${at}: ${wrong} is no percentage of requests`,
      ]);
    }
    const both = { drop_overload: 50, drop_overloads: [{ category: 'storm', drop_percentage: { numerator: 7 } }] };
    assert.deepEqual(share(both), { numerator: 7, denominator: 100 });
    assert.deepEqual(faultTexts(load(withClusters(dropped(both))), 'warning'), [
      `${at}: ignored, because drop_overloads supersedes it`,
    ]);
  });

  it('are of one category', () => {
    const at = `${AT}.load_assignment.policy.drop_overloads`;
    const errors = clusterErrors(dropping({ numerator: 1 }, { numerator: 2 }));
    assert.deepEqual(errors, [`${at}: one category can be dropped, 2 are given`]);
  });
});

describe('a ring', () => {
  it('has room for an entry whatever its sizes say', () => {
    const { hashing } = clusterSettings(ring({ minimum_ring_size: 0, maximum_ring_size: 0 }));
    assert.deepEqual([hashing.minimumRingSize, hashing.maximumRingSize], [1, 1]);
  });
});
