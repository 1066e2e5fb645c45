import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { priorityLoads } from '../../../../src/control-plane/cluster-manager/host-lists/priority-load.ts';
import { FIELD_LIMIT, HEAD_LIMIT_BYTES } from '../../../../src/wasm/http1.ts';
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
  mustLoad,
  socketAddress,
  withClusters,
} from '../../../support/bootstrap.ts';
import { DEFAULT_HASHING } from '../../../support/lb.ts';

const AT = 'static_resources.clusters[0]';

/** The newer form of the HTTP options, and where it stands. */
function typedOptions(fields: JsonObject): { readonly typed: JsonObject; readonly at: string } {
  const name = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
  const options = {
    '@type': `type.googleapis.com/${name}`,
    explicit_http_config: { http_protocol_options: {} },
    ...fields,
  };
  return {
    typed: { typed_extension_protocol_options: { [name]: options } },
    at: `${AT}.typed_extension_protocol_options["${name}"]`,
  };
}

describe('a cluster', () => {
  it('fills in the documented defaults', () => {
    assert.deepEqual(clusterSettings(clusterNamed('web')), {
      name: 'web',
      statName: 'web',
      observabilityName: 'web',
      connectTimeoutMs: 5000,
      bufferLimitBytes: 1048576,
      lbPolicy: 'ROUND_ROBIN',
      originalDst: null,
      poolsPerClient: false,
      leastRequest: { choiceCount: 2, activeRequestBias: undefined, activeRequestBiasKey: '', comparesAll: false },
      slowStart: null,
      hashing: DEFAULT_HASHING,
      subsets: null,
      healthyPanicThreshold: 50,
      overprovisioningFactor: 140,
      weightedPriorityHealth: false,
      failsTrafficOnPanic: false,
      dropShare: null,
      weighsLocalities: false,
      zoneRouting: { enabledPercent: 100, minClusterSize: 6, forcedFrom: null, goesByWeight: false },
      closeConnectionsOnHostSetChange: false,
      sourceAddress: undefined,
      tcpKeepalive: undefined,
      maxConnectionDurationMs: 0,
      closeConnectionsOnHostHealthFailure: false,
      tracksTimeoutBudgets: false,
      tracksMessageSizes: false,
      updateMergeWindowMs: 1000,
      healthCheck: undefined,
      outlierDetection: undefined,
      waitForWarmOnInit: true,
      discovery: { kind: 'static' },
      maxRequestsPerConnection: 0,
      enableTrailers: false,
      retry: null,
      mirrors: null,
      idleTimeoutMs: 3_600_000,
      circuitBreakers: {
        default: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 },
        high: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 },
      },
      hosts: [
        {
          address: { kind: 'ip', ip: '127.0.0.1', port: 8080 },
          hostname: '',
          weight: 1,
          locality: { region: '', zone: '', subZone: '' },
          localityWeight: 0,
          priority: 0,
          canary: false,
          health: 'unknown',
          hashKey: '',
          subsetValues: [],
        },
      ],
    });
  });

  it('takes its stat name from alt_stat_name and turns colons into underscores', () => {
    const settings = clusterSettings(clusterNamed('web', { alt_stat_name: 'a:b:c' }));
    assert.equal(settings.observabilityName, 'a:b:c');
    assert.equal(settings.statName, 'a_b_c');
  });

  it('tracks what it is told to, by either form', () => {
    const tracked = (fields: JsonObject): readonly boolean[] => {
      const { tracksTimeoutBudgets, tracksMessageSizes } = clusterSettings(clusterNamed('web', fields));
      return [tracksTimeoutBudgets, tracksMessageSizes];
    };
    assert.deepEqual(tracked({ track_timeout_budgets: true }), [true, false]);
    assert.deepEqual(tracked({ track_cluster_stats: { timeout_budgets: true } }), [true, false]);
    assert.deepEqual(tracked({ track_cluster_stats: { request_response_sizes: true } }), [false, true]);
    assert.deepEqual(tracked({ track_cluster_stats: {} }), [false, false]);
    const hosts = (fields: JsonObject) =>
      clusterSettings(clusterNamed('web', { track_cluster_stats: fields })).tracksHosts;
    assert.deepEqual([hosts({ per_endpoint_stats: true }), hosts({})], [true, undefined]);
  });

  it('sets circuit breakers per priority and keeps defaults for what is missing', () => {
    const thresholds = [{ max_connections: 0 }, { priority: 'HIGH', max_retries: 9 }];
    const { circuitBreakers } = clusterSettings(clusterNamed('web', { circuit_breakers: { thresholds } }));
    assert.equal(circuitBreakers.default.maxConnections, 0);
    assert.equal(circuitBreakers.default.maxRetries, 3);
    assert.equal(circuitBreakers.high.maxRetries, 9);
  });

  it('limits connection pools where that is asked for', () => {
    const thresholds = [{ max_connection_pools: 0 }, { priority: 'HIGH' }];
    const { circuitBreakers } = clusterSettings(clusterNamed('web', { circuit_breakers: { thresholds } }));
    assert.equal(circuitBreakers.default.maxConnectionPools, 0);
    assert.equal('maxConnectionPools' in circuitBreakers.high, false);
  });

  it('limits the connections of each host per priority, where that is asked for', () => {
    const perHost = [{ max_connections: 0 }, { priority: 'HIGH' }];
    const { circuitBreakers } = clusterSettings(
      clusterNamed('web', { circuit_breakers: { per_host_thresholds: perHost } }),
    );
    assert.equal(circuitBreakers.default.maxConnectionsPerHost, 0);
    assert.equal(circuitBreakers.default.maxConnections, 1024);
    assert.equal('maxConnectionsPerHost' in circuitBreakers.high, false);
  });

  it('never rounds a positive timeout down to 0, which would mean none', () => {
    const settings = clusterSettings(
      clusterNamed('web', { common_http_protocol_options: { idle_timeout: '0.0002s' } }),
    );
    assert.equal(settings.idleTimeoutMs, 1);
    assert.equal(clusterSettings(clusterNamed('web', { connect_timeout: '1.2345s' })).connectTimeoutMs, 1234);
  });

  it('may have a retry policy and mirrors of its own', () => {
    const name = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
    const options = (fields: JsonObject): JsonObject => ({
      typed_extension_protocol_options: {
        [name]: {
          '@type': `type.googleapis.com/${name}`,
          explicit_http_config: { http_protocol_options: {} },
          ...fields,
        },
      },
    });
    const retry_policy = { retry_on: '5xx', num_retries: 7 };
    const settings = clusterSettings(
      clusterNamed('web', options({ retry_policy, request_mirror_policies: [{ cluster: 'web' }] })),
    );
    assert.deepEqual([settings.retry!.conditions, settings.retry!.maxRetries], [['5xx'], 7]);
    assert.deepEqual(
      settings.mirrors!.map(({ cluster }) => cluster),
      ['web'],
    );
    const wrong = { retry_policy: { retry_back_off: { base_interval: '2s', max_interval: '1s' } } };
    const mirrors = { request_mirror_policies: [{ cluster: 'nobody' }] };
    assert.deepEqual(clusterErrors(clusterNamed('web', options({ ...wrong, ...mirrors }))), [
      `static_resources.clusters[0].typed_extension_protocol_options["${name}"].retry_policy.retry_back_off.max_interval: 1000ms is below base_interval 2000ms`,
      `static_resources.clusters[0].typed_extension_protocol_options["${name}"].request_mirror_policies[0].cluster: cluster "nobody" does not exist`,
    ]);
  });

  it('may have a form of its own for requests', () => {
    const form = (fields: JsonObject) =>
      clusterSettings(clusterNamed('web', { http_protocol_options: fields })).requestForm;
    assert.deepEqual(form({ send_fully_qualified_url: true }), { hasFullUrl: true, hasProperCase: false });
    assert.deepEqual(form({ header_key_format: { proper_case_words: {} } }), {
      hasFullUrl: false,
      hasProperCase: true,
    });
    assert.equal(form({ enable_trailers: true }), undefined);
    const type = 'envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig';
    const stateful_formatter = {
      name: 'preserve_case',
      typed_config: { '@type': `type.googleapis.com/${type}`, forward_reason_phrase: true },
    };
    const preserving = clusterNamed('web', { http_protocol_options: { header_key_format: { stateful_formatter } } });
    assert.deepEqual(clusterErrors(preserving), []);
    assert.deepEqual(faultTexts(load(withClusters(preserving)), 'warning'), []);
    assert.equal(clusterSettings(preserving).requestForm, undefined);
  });

  it('limits the heads of responses by either of two fields', () => {
    const limits = (fields: JsonObject): unknown =>
      clusterSettings(clusterNamed('web', { common_http_protocol_options: fields })).responseHeadLimits;
    assert.equal(limits({ idle_timeout: '1s' }), undefined);
    assert.deepEqual(limits({ max_response_headers_kb: 2 }), { maxHeadBytes: 2048, maxFields: 100 });
    assert.deepEqual(limits({ max_headers_count: 7 }), { maxHeadBytes: 61_440, maxFields: 7 });
    assert.deepEqual(limits({ max_response_headers_kb: 63, max_headers_count: 1024 }), {
      maxHeadBytes: 64_512,
      maxFields: 1024,
    });
  });

  it('bears a length beside chunks where it is told to', () => {
    const limits = (allow_chunked_length: boolean): unknown =>
      clusterSettings(clusterNamed('web', { http_protocol_options: { allow_chunked_length } })).responseHeadLimits;
    assert.equal(limits(false), undefined);
    assert.deepEqual(limits(true), { maxHeadBytes: 61_440, maxFields: 100, takesChunkedLength: true });
  });

  it('says by name which limits of heads are beyond what can be read', () => {
    const fields = { max_response_headers_kb: 64, max_headers_count: 1025 };
    const { typed, at } = typedOptions({ common_http_protocol_options: fields });
    const texts = [
      '64 KiB is more than can be read: heads end at 65535 bytes',
      '1025 is more than can be read: heads have at most 1024 fields',
    ];
    for (const [cluster, path] of [
      [clusterNamed('web', { common_http_protocol_options: fields }), AT],
      [clusterNamed('web', typed), at],
    ] as const) {
      const common = `${path}.common_http_protocol_options`;
      assert.deepEqual(faultTexts(load(withClusters(cluster)), 'warning'), [
        `${common}.max_response_headers_kb: ${texts[0]}`,
        `${common}.max_headers_count: ${texts[1]}`,
      ]);
      assert.deepEqual(clusterSettings(cluster).responseHeadLimits, {
        maxHeadBytes: HEAD_LIMIT_BYTES,
        maxFields: FIELD_LIMIT,
      });
    }
  });

  it('takes options of HTTP/1 that mean nothing to it without a word', () => {
    const http_protocol_options = {
      allow_absolute_url: false,
      accept_http_10: true,
      default_host_for_http_10: 'x',
      override_stream_error_on_invalid_http_message: true,
      use_balsa_parser: true,
      allow_custom_methods: true,
      ignore_http_11_upgrade: [{ exact: 'h2c' }],
    };
    const common_http_protocol_options = { headers_with_underscores_action: 'REJECT_REQUEST' };
    const cluster = clusterNamed('web', { http_protocol_options, common_http_protocol_options });
    const result = load(withClusters(cluster));
    assert.deepEqual([faultTexts(result), faultTexts(result, 'warning')], [[], []]);
    assert.deepEqual(clusterSettings(cluster), clusterSettings(clusterNamed('web')));
  });

  it('reads HTTP options from the extension message as from its own fields', () => {
    const own = clusterSettings(
      clusterNamed('web', {
        common_http_protocol_options: { idle_timeout: '7s' },
        http_protocol_options: { enable_trailers: true },
        max_requests_per_connection: 3,
      }),
    );
    const options = {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      common_http_protocol_options: { idle_timeout: '7s', max_requests_per_connection: 3 },
      explicit_http_config: { http_protocol_options: { enable_trailers: true } },
    };
    const typed = { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options };
    assert.equal(own.enableTrailers, true);
    assert.deepEqual(clusterSettings(clusterNamed('web', { typed_extension_protocol_options: typed })), own);
    const both = clusterNamed('web', {
      typed_extension_protocol_options: typed,
      max_requests_per_connection: 3,
      http_protocol_options: {},
    });
    assert.deepEqual(
      clusterErrors(both).map((text) => text.split(':')[0]),
      [`${AT}.max_requests_per_connection`, `${AT}.http_protocol_options`],
    );
  });

  it('gives hosts and load_assignment equal members', () => {
    const hosts = [socketAddress('10.0.0.1', 80), { pipe: { path: '/run/app', mode: 0o600 } }];
    const endpoints = [{ lb_endpoints: hosts.map((address) => ({ endpoint: { address } })) }];
    assert.deepEqual(clusterSettings({ name: 'web', hosts }), clusterSettings(assigned(endpoints)));
  });

  it('lets load_assignment supersede hosts, with a warning', () => {
    const result = load(
      withClusters({ ...assigned([{ lb_endpoints: [member(80)] }]), hosts: [socketAddress('10.9.9.9', 1)] }),
    );
    assert.equal(result.bootstrap?.clusters[0]?.hosts.length, 1);
    assert.deepEqual(faultTexts(result, 'warning'), [`${AT}.hosts: ignored, because load_assignment supersedes it`]);
  });

  it('keeps the first of two members with one address, however it is written', () => {
    const ipv6 = (address: string, weight: number) => ({
      endpoint: { address: socketAddress(address, 80) },
      load_balancing_weight: weight,
    });
    const { hosts } = clusterSettings(assigned([{ lb_endpoints: [ipv6('::1', 2), ipv6('0:0:0:0:0:0:0:1', 3)] }]));
    assert.deepEqual(
      hosts.map(({ address, weight }) => [address, weight]),
      [[{ kind: 'ip', ip: '::1', port: 80 }, 2]],
    );
  });

  it('reads weight, locality, priority, hostname and the canary mark of members', () => {
    const lb_endpoints = [
      {
        endpoint: { address: socketAddress('10.0.0.1', 80), hostname: 'a.example' },
        load_balancing_weight: 7,
        metadata: { filter_metadata: { 'envoy.lb': { canary: true } } },
      },
      {
        endpoint_name: 'b',
        metadata: { filter_metadata: { 'proxy.lb': { canary: false }, 'envoy.lb': { canary: true } } },
      },
    ];
    const locality = { region: 'r', zone: 'z', sub_zone: 's' };
    const named = { named_endpoints: { b: { address: socketAddress('10.0.0.2', 80) } } };
    const low = { priority: 1, load_balancer_endpoints: { lb_endpoints: [member(81)] } };
    const { hosts } = clusterSettings(assigned([{ locality, lb_endpoints }, low], named));
    assert.deepEqual(
      hosts.map(({ hostname, weight, priority, canary, locality: { zone } }) => [
        hostname,
        weight,
        priority,
        canary,
        zone,
      ]),
      [
        ['a.example', 7, 0, true, 'z'],
        ['', 1, 0, false, 'z'],
        ['', 1, 1, false, ''],
      ],
    );
  });
});

interface ErrorCase {
  readonly name: string;
  readonly cluster: JsonObject;
  readonly errors: readonly string[];
}

const POLICY_ERRORS: readonly ErrorCase[] = [
  {
    name: 'ring_hash_lb_config without its policy',
    cluster: clusterNamed('web', { ring_hash_lb_config: { minimum_ring_size: 9, maximum_ring_size: 8 } }),
    errors: [
      `${AT}.ring_hash_lb_config: needs lb_policy RING_HASH, not ROUND_ROBIN`,
      `${AT}.ring_hash_lb_config.minimum_ring_size: 9 exceeds maximum_ring_size 8`,
    ],
  },
  {
    name: 'least_request_lb_config without its policy',
    cluster: clusterNamed('web', { lb_policy: 'MAGLEV', least_request_lb_config: {} }),
    errors: [`${AT}.least_request_lb_config: needs lb_policy LEAST_REQUEST, not MAGLEV`],
  },
  {
    name: 'LOAD_BALANCING_POLICY_CONFIG without load_balancing_policy',
    cluster: clusterNamed('web', { lb_policy: 'LOAD_BALANCING_POLICY_CONFIG' }),
    errors: [`${AT}.lb_policy: LOAD_BALANCING_POLICY_CONFIG needs load_balancing_policy`],
  },
  {
    name: 'subsets where the cluster brings its own balancer',
    cluster: clusterNamed('web', { lb_policy: 'CLUSTER_PROVIDED', lb_subset_config: {} }),
    errors: [
      `${AT}.lb_policy: CLUSTER_PROVIDED needs type ORIGINAL_DST, not STATIC`,
      `${AT}.lb_subset_config: cannot be combined with lb_policy CLUSTER_PROVIDED`,
    ],
  },
  {
    name: 'subset selectors whose fallback keys do not fit',
    cluster: clusterNamed('web', {
      lb_subset_config: {
        subset_selectors: [
          { keys: ['a', 'b'], fallback_policy: 'KEYS_SUBSET' },
          { keys: ['a', 'b'], fallback_keys_subset: ['a'] },
          { keys: ['a'], fallback_policy: 'KEYS_SUBSET', fallback_keys_subset: ['a'] },
          { keys: ['a', 'b'], fallback_policy: 'KEYS_SUBSET', fallback_keys_subset: ['c'] },
        ],
      },
    }),
    errors: [
      ...[
        [0, 'fallback_policy KEYS_SUBSET needs at least one key'],
        [1, 'needs fallback_policy KEYS_SUBSET'],
        [2, 'must hold fewer keys than keys'],
        [3, '"c" is not one of keys'],
      ].map(([index, text]) => `${AT}.lb_subset_config.subset_selectors[${index}].fallback_keys_subset: ${text}`),
    ],
  },
];

function originalDst(fields: JsonObject): JsonObject {
  return { name: 'web', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', ...fields };
}

function newerPolicy(name: string, fields: JsonObject = {}): JsonObject {
  const type = `type.googleapis.com/envoy.extensions.load_balancing_policies.${name}`;
  return { policies: [{ typed_extension_config: { name, typed_config: { '@type': type, ...fields } } }] };
}

const TYPE_ERRORS: readonly ErrorCase[] = [
  {
    name: 'EDS without eds_cluster_config',
    cluster: { name: 'web', type: 'EDS' },
    errors: [`${AT}.type: EDS needs eds_cluster_config`],
  },
  {
    name: 'eds_cluster_config on a STATIC cluster',
    cluster: clusterNamed('web', { eds_cluster_config: {} }),
    errors: [`${AT}.eds_cluster_config: needs type EDS, not STATIC`],
  },
  {
    name: 'ORIGINAL_DST with members and another policy',
    cluster: clusterNamed('web', { type: 'ORIGINAL_DST' }),
    errors: [
      `${AT}.load_assignment: type ORIGINAL_DST takes its members from the connections`,
      `${AT}.lb_policy: type ORIGINAL_DST needs CLUSTER_PROVIDED, not ROUND_ROBIN`,
    ],
  },
  {
    name: 'ORIGINAL_DST with members of the older form, and with subsets',
    cluster: originalDst({ hosts: [socketAddress('127.0.0.1', 80)], lb_subset_config: {} }),
    errors: [
      `${AT}.hosts: type ORIGINAL_DST takes its members from the connections`,
      `${AT}.lb_subset_config: cannot be combined with lb_policy CLUSTER_PROVIDED`,
    ],
  },
  {
    name: 'ORIGINAL_DST that is balanced by a policy of the newer form',
    cluster: originalDst({
      lb_policy: 'LOAD_BALANCING_POLICY_CONFIG',
      load_balancing_policy: newerPolicy('random.v3.Random'),
    }),
    errors: [`${AT}.load_balancing_policy: type ORIGINAL_DST needs CLUSTER_PROVIDED, not RANDOM`],
  },
  {
    name: 'ORIGINAL_DST with subsets of the newer form',
    cluster: originalDst({
      load_balancing_policy: newerPolicy('subset.v3.Subset', {
        subset_selectors: [{ keys: ['a'] }],
        subset_lb_policy: newerPolicy('cluster_provided.v3.ClusterProvided'),
      }),
    }),
    errors: [`${AT}.load_balancing_policy: subsets cannot be combined with CLUSTER_PROVIDED`],
  },
  {
    name: 'CLUSTER_PROVIDED, in each of its forms, where nothing provides for it',
    cluster: clusterNamed('web', { lb_policy: 'CLUSTER_PROVIDED' }),
    errors: [`${AT}.lb_policy: CLUSTER_PROVIDED needs type ORIGINAL_DST, not STATIC`],
  },
  {
    name: 'the v2 name of CLUSTER_PROVIDED on a STATIC cluster',
    cluster: clusterNamed('web', { lb_policy: 'ORIGINAL_DST_LB' }),
    errors: [`${AT}.lb_policy: CLUSTER_PROVIDED needs type ORIGINAL_DST, not STATIC`],
  },
  {
    name: 'the newer form of CLUSTER_PROVIDED on a STATIC cluster',
    cluster: clusterNamed('web', { load_balancing_policy: newerPolicy('cluster_provided.v3.ClusterProvided') }),
    errors: [`${AT}.load_balancing_policy: CLUSTER_PROVIDED needs type ORIGINAL_DST, not STATIC`],
  },
  {
    name: 'options of ORIGINAL_DST on a STATIC cluster',
    cluster: clusterNamed('web', { original_dst_lb_config: { use_http_header: true } }),
    errors: [`${AT}.original_dst_lb_config: needs type ORIGINAL_DST`],
  },
  {
    name: 'a port that is none',
    cluster: originalDst({ original_dst_lb_config: { upstream_port_override: 65_536 } }),
    errors: [`${AT}.original_dst_lb_config.upstream_port_override: 65536 exceeds the limit 65535`],
  },
  {
    name: 'a cleanup that never ends',
    cluster: originalDst({ cleanup_interval: '0s' }),
    errors: [`${AT}.cleanup_interval: 0s is not above 0s`],
  },
  {
    name: 'a STATIC cluster without members',
    cluster: { name: 'web' },
    errors: [`${AT}: a cluster of type STATIC needs load_assignment`],
  },
  {
    name: 'LOGICAL_DNS with two members',
    cluster: {
      name: 'web',
      type: 'LOGICAL_DNS',
      hosts: [socketAddress('a.example', 80), socketAddress('b.example', 80)],
    },
    errors: [`${AT}: a cluster of type LOGICAL_DNS needs exactly one member in one locality`],
  },
  {
    name: 'a failure refresh rate whose bounds are the wrong way round',
    cluster: clusterNamed('web', { dns_failure_refresh_rate: { base_interval: '2s', max_interval: '1s' } }),
    errors: [`${AT}.dns_failure_refresh_rate.max_interval: must not be less than base_interval`],
  },
  {
    name: 'options for both HTTP versions without a way to choose',
    cluster: clusterNamed('web', { http_protocol_options: {}, http2_protocol_options: {} }),
    errors: [
      `${AT}.http2_protocol_options: beside http_protocol_options needs protocol_selection USE_DOWNSTREAM_PROTOCOL`,
    ],
  },
];

const MEMBER_ERRORS: readonly ErrorCase[] = [
  {
    name: 'a host name in a STATIC cluster',
    cluster: { name: 'web', hosts: [socketAddress('app.example', 80)] },
    errors: [
      `${AT}.hosts[0].socket_address.address: "app.example" is not an IP address; a STATIC cluster needs IP addresses; STRICT_DNS and LOGICAL_DNS resolve names`,
    ],
  },
  {
    name: 'a gap between priorities',
    cluster: assigned([{ lb_endpoints: [member(1)] }, { priority: 2, lb_endpoints: [member(2)] }]),
    errors: [`${AT}.load_assignment.endpoints: priorities must be contiguous from 0: 2 is used, 1 is not`],
  },
  {
    name: 'a priority above the limit',
    cluster: assigned([{ priority: 129, lb_endpoints: [member(1)] }]),
    errors: [`${AT}.load_assignment.endpoints[0].priority: 129 exceeds the limit 128`],
  },
  {
    name: 'endpoint weights whose sum overflows',
    cluster: assigned([{ lb_endpoints: [member(1, { load_balancing_weight: 4294967295 }), member(2)] }]),
    errors: [
      `${AT}.load_assignment.endpoints[0].lb_endpoints: the sum of endpoint weights is 4294967296 and exceeds the limit 4294967295`,
    ],
  },
  {
    name: 'locality weights whose sum overflows in one priority',
    cluster: assigned([
      { load_balancing_weight: 4294967295, lb_endpoints: [member(1)] },
      { load_balancing_weight: 1, lb_endpoints: [member(2)] },
    ]),
    errors: [
      `${AT}.load_assignment.endpoints: the sum of locality weights of priority 0 is 4294967296 and exceeds the limit 4294967295`,
    ],
  },
  {
    name: 'a member that names an endpoint that is not there, or none',
    cluster: assigned([{ lb_endpoints: [{ endpoint_name: 'x' }, {}] }]),
    errors: [
      `${AT}.load_assignment.endpoints[0].lb_endpoints[0].endpoint_name: "x" is not in named_endpoints`,
      `${AT}.load_assignment.endpoints[0].lb_endpoints[1]: one of endpoint, endpoint_name is required`,
    ],
  },
  {
    name: 'two thresholds for one priority',
    cluster: clusterNamed('web', { circuit_breakers: { thresholds: [{}, { priority: 'DEFAULT' }] } }),
    errors: [`${AT}.circuit_breakers.thresholds[1].priority: a second entry for priority DEFAULT`],
  },
  {
    name: 'two limits of each host for one priority, and limits that hosts do not have',
    cluster: clusterNamed('web', {
      circuit_breakers: { per_host_thresholds: [{ priority: 'HIGH' }, { priority: 'HIGH', max_requests: 1 }] },
    }),
    errors: [
      `${AT}.circuit_breakers.per_host_thresholds[1].priority: a second entry for priority HIGH`,
      `${AT}.circuit_breakers.per_host_thresholds[1].max_requests: max_requests is not supported by this build: hosts have no limit of their own for it`,
    ],
  },
  {
    name: 'a connect timeout of 0',
    cluster: clusterNamed('web', { connect_timeout: '0s' }),
    errors: [`${AT}.connect_timeout: 0s is not above 0s`],
  },
];

describe('balancing and connections of a cluster', () => {
  it('of ORIGINAL_DST have hosts on demand, whichever way they say so', () => {
    const onDemand = { kind: 'original-dst', cleanupIntervalMs: 5000 };
    const newer = { load_balancing_policy: newerPolicy('cluster_provided.v3.ClusterProvided') };
    const named = { name: 'web', lb_policy: 'ORIGINAL_DST_LB', cluster_type: { name: 'envoy.cluster.original_dst' } };
    for (const cluster of [originalDst({}), originalDst({ lb_policy: 4 }), originalDst(newer), named]) {
      const { lbPolicy, discovery, originalDst: settings, hosts } = clusterSettings(cluster);
      assert.deepEqual([lbPolicy, discovery, hosts], ['CLUSTER_PROVIDED', onDemand, []]);
      assert.deepEqual(settings, { header: null, port: 0 });
    }
    assert.equal(clusterSettings(clusterNamed('web')).originalDst, null);
  });

  it('of ORIGINAL_DST read where requests name their hosts', () => {
    const read = (original_dst_lb_config: JsonObject): unknown =>
      clusterSettings(originalDst({ original_dst_lb_config, cleanup_interval: '0.5s' })).originalDst;
    assert.deepEqual(read({ use_http_header: true }), { header: 'x-proxy-original-dst-host', port: 0 });
    assert.deepEqual(read({ upstream_port_override: 81 }), { header: null, port: 81 });
    assert.deepEqual(read({ use_http_header: true, http_header_name: 'X-A' }), { header: 'x-a', port: 0 });
  });

  it('of ORIGINAL_DST name a header that there can be, and that is asked', () => {
    const errors = (original_dst_lb_config: JsonObject): string[] =>
      clusterErrors(originalDst({ original_dst_lb_config }));
    const headerAt = `${AT}.original_dst_lb_config.http_header_name`;
    assert.deepEqual(errors({ http_header_name: 'x-a' }), [`${headerAt}: needs use_http_header: true`]);
    assert.deepEqual(errors({ use_http_header: true, http_header_name: 'bad header' }), [
      `${headerAt}: "bad header" is not a header name`,
    ]);
    assert.deepEqual(errors({ use_http_header: true, http_header_name: ':authority' }), []);
  });

  it('warn of zones where their policy looks at none', () => {
    const warnings = (lb_policy: string, zones: JsonObject): string[] => {
      const common_lb_config = { zone_aware_lb_config: zones };
      return faultTexts(load(withClusters(clusterNamed('web', { lb_policy, common_lb_config }))), 'warning');
    };
    const zonesAt = `${AT}.common_lb_config.zone_aware_lb_config`;
    for (const policy of ['RING_HASH', 'MAGLEV']) {
      const ignored = `has no effect with lb_policy ${policy}`;
      assert.deepEqual(warnings(policy, { fail_traffic_on_panic: true }), [
        `${zonesAt}.fail_traffic_on_panic: ${ignored}`,
      ]);
      assert.deepEqual(warnings(policy, {}), [`${zonesAt}: ${ignored}`]);
    }
    assert.deepEqual(warnings('RANDOM', { fail_traffic_on_panic: true }), []);
  });

  it('warn of selectors of subsets that do not say what was meant', () => {
    const warnings = (selector: JsonObject): string[] => {
      const lb_subset_config = { subset_selectors: [selector] };
      return faultTexts(load(withClusters(clusterNamed('web', { lb_subset_config }))), 'warning');
    };
    const selectorAt = `${AT}.lb_subset_config.subset_selectors[0]`;
    assert.deepEqual(warnings({ keys: [] }), [`${selectorAt}.keys: empty: the selector makes no subset`]);
    assert.deepEqual(warnings({ keys: ['a', 'b'], single_host_per_subset: true }), [
      `${selectorAt}.single_host_per_subset: meant for one key; with 2, each combination of values keeps one host`,
    ]);
    assert.deepEqual(warnings({ keys: ['a'], single_host_per_subset: true }), []);
    assert.deepEqual(warnings({ keys: ['a', 'b'] }), []);
  });

  it('warn of what concerns ORIGINAL_DST elsewhere', () => {
    const warnings = (cluster: JsonObject): string[] => faultTexts(load(withClusters(cluster)), 'warning');
    assert.deepEqual(warnings(clusterNamed('web', { cleanup_interval: '1s' })), [
      `${AT}.cleanup_interval: ignored without type ORIGINAL_DST`,
    ]);
  });

  it('may stand in metadata', () => {
    const metadata_key = { key: 'com.test', path: [{ key: 'a' }, { key: 'b' }] };
    const { originalDst: settings } = clusterSettings(originalDst({ original_dst_lb_config: { metadata_key } }));
    assert.deepEqual(settings, { header: null, port: 0, metadata: { namespace: 'com.test', path: ['a', 'b'] } });
  });

  it('read what is configured', () => {
    const settings = clusterSettings(
      clusterNamed('web', {
        lb_policy: 'LEAST_REQUEST',
        least_request_lb_config: { choice_count: 5, active_request_bias: { default_value: 0.5, runtime_key: 'x' } },
        common_lb_config: {
          healthy_panic_threshold: { value: 33.9 },
          close_connections_on_host_set_change: true,
        },
        upstream_bind_config: { source_address: { address: '127.0.0.2', port_value: 0 } },
        upstream_connection_options: { tcp_keepalive: { keepalive_time: 30 } },
        common_http_protocol_options: { max_connection_duration: '60s' },
        wait_for_warm_on_init: false,
      }),
    );
    assert.equal(settings.lbPolicy, 'LEAST_REQUEST');
    assert.deepEqual(settings.leastRequest, {
      choiceCount: 5,
      activeRequestBias: 0.5,
      activeRequestBiasKey: 'x',
      comparesAll: false,
    });
    assert.equal(settings.healthyPanicThreshold, 33);
    assert.equal(settings.closeConnectionsOnHostSetChange, true);
    assert.deepEqual(settings.sourceAddress, { kind: 'ip', ip: '127.0.0.2', port: 0 });
    assert.deepEqual(settings.tcpKeepalive, { probes: 9, timeSeconds: 30, intervalSeconds: 75 });
    assert.equal(settings.maxConnectionDurationMs, 60_000);
    assert.equal(settings.waitForWarmOnInit, false);
  });

  it('read the policy of the assignment and the health of its members', () => {
    const statuses = ['UNKNOWN', 'HEALTHY', 'UNHEALTHY', 'TIMEOUT', 'DRAINING', 'DEGRADED'];
    const members = statuses.map((health_status, index) => member(index + 1, { health_status }));
    const policy = { overprovisioning_factor: 100, weighted_priority_health: true };
    const settings = clusterSettings(assigned([{ lb_endpoints: members }], { policy }));
    assert.equal(settings.overprovisioningFactor, 100);
    assert.equal(settings.weightedPriorityHealth, true);
    assert.deepEqual(
      settings.hosts.map(({ health }) => health),
      ['unknown', 'healthy', 'unhealthy', 'timeout', 'draining', 'degraded'],
    );
  });

  it('keep traffic where a host is available when they are not to be overprovisioned', () => {
    const settings = (policy: JsonObject) => clusterSettings(assigned([{ lb_endpoints: [member(1)] }], { policy }));
    const { overprovisioningFactor } = settings({ disable_overprovisioning: true, overprovisioning_factor: 100 });
    assert.equal(settings({ disable_overprovisioning: false }).overprovisioningFactor, 140);
    const counts = { hosts: 4_000_000_000, excluded: 0, healthy: 1, degraded: 0 };
    const loads = priorityLoads(
      [counts, { ...counts, healthy: counts.hosts }].map((each) => ({ counts: each, capacity: each })),
      { overprovisioningFactor, healthyPanicThreshold: 50 },
    );
    assert.deepEqual(loads.healthy, [100, 0]);
    assert.deepEqual(loads.isPanic, [false, false]);
  });

  it('may have no source address, whatever the bootstrap says', () => {
    const bound = { source_address: { address: '127.0.0.2', port_value: 0 } };
    const unbound = { source_address: { address: '', port_value: 0 } };
    const source = (ofBootstrap: Json, ofCluster: JsonObject): string | undefined => {
      const cluster_manager = ofBootstrap === null ? {} : { upstream_bind_config: ofBootstrap };
      const resources = withClusters(clusterNamed('web', ofCluster));
      return mustLoad({ ...resources, cluster_manager }).clusters[0]!.sourceAddress?.ip;
    };
    assert.equal(source(null, {}), undefined);
    assert.equal(source(null, { upstream_bind_config: unbound }), undefined);
    assert.equal(source(null, { upstream_bind_config: {} }), undefined);
    assert.equal(source(bound, {}), '127.0.0.2');
    assert.equal(source(bound, { upstream_bind_config: unbound }), undefined);
    assert.equal(source(bound, { upstream_bind_config: { source_address: { address: '::1', port_value: 0 } } }), '::1');
    assert.equal(source(unbound, {}), undefined);
  });

  it('refuse a port without a source address', () => {
    const upstream_bind_config = { source_address: { address: '', port_value: 5 } };
    assert.deepEqual(clusterErrors(clusterNamed('web', { upstream_bind_config })), [
      `${AT}.upstream_bind_config.source_address.address: must not be empty`,
    ]);
    const bootstrap = {
      cluster_manager: { upstream_bind_config: { source_address: socketAddress('x', 0).socket_address! } },
    };
    assert.deepEqual(faultTexts(load(bootstrap)), [
      'cluster_manager.upstream_bind_config.source_address.address: "x" is not an IP address; connections start from an IP address',
    ]);
  });

  it('refuse a source address that is a name', () => {
    const upstream_bind_config = { source_address: socketAddress('here.test', 0).socket_address! };
    assert.deepEqual(clusterErrors(clusterNamed('web', { upstream_bind_config })), [
      `${AT}.upstream_bind_config.source_address.address: "here.test" is not an IP address; connections start from an IP address`,
    ]);
  });
});

describe('a cluster is refused for', () => {
  for (const { name, cluster, errors } of [...POLICY_ERRORS, ...TYPE_ERRORS, ...MEMBER_ERRORS]) {
    it(name, () => assert.deepEqual(clusterErrors(cluster).toSorted(), errors.toSorted()));
  }
});
