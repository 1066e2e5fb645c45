import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import protobuf from 'protobufjs/light.js';
import type { Generation } from '../../../../src/config/proto/message-names.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { parseRule } from '../../../../src/config/proto/rules/rule.ts';
import { type TypedMessage, Validator } from '../../../../src/config/proto/rules/validator.ts';

const schema = protoSchema();

interface FieldCase {
  readonly name: string;
  readonly rule: string;
  readonly field: Partial<protobuf.IField> & { readonly keyType?: string };
  readonly good: readonly unknown[];
  /** Offending value → the fault's text after the path. */
  readonly bad: readonly (readonly [value: unknown, fault: string])[];
}

/** Faults of one message with one field `f`, as `path: text`. */
function faultsOf(field: FieldCase['field'], rule: string, value: unknown): string[] {
  const json = { id: 1, options: { '(proxy.rule)': rule }, ...field };
  const type = protobuf.Type.fromJSON('Holder', { fields: { f: json as protobuf.IField } });
  schema.root.add(type);
  try {
    schema.root.resolveAll();
    return validate(new Validator(), { type, message: type.fromObject({ f: value }), generation: 'v3' });
  } finally {
    schema.root.remove(type);
  }
}

function validate(validator: Validator, message: TypedMessage): string[] {
  const faults: string[] = [];
  validator.validate(message, '', {
    report: (path, text) => faults.push(path === '' ? text : `${path}: ${text}`),
    unpack: () => undefined,
  });
  return faults;
}

/** Faults of a message of the schema. */
function check(name: string, fields: object, generation: Generation = 'v3'): string[] {
  const type = schema.messageType(name);
  return validate(schema.validator, { type, message: type.fromObject(fields as Record<string, unknown>), generation });
}

const STRING = { type: 'string' };
const UINT32 = { type: 'uint32' };
const DURATION = { type: 'google.protobuf.Duration' };

const CASES: readonly FieldCase[] = [
  { name: 'required', rule: 'required', field: DURATION, good: [{ seconds: 1 }], bad: [[undefined, 'must be set']] },
  { name: 'non-empty', rule: 'non-empty', field: STRING, good: ['x'], bad: [['', 'must not be empty']] },
  {
    name: 'non-empty bytes',
    rule: 'non-empty',
    field: { type: 'bytes' },
    good: [Buffer.from('x')],
    bad: [[Buffer.alloc(0), 'must not be empty']],
  },
  { name: 'upper bound', rule: '<= 100', field: UINT32, good: [100], bad: [[101, '101 exceeds the limit 100']] },
  { name: 'open upper bound', rule: '< 600', field: UINT32, good: [599], bad: [[600, '600 is not below 600']] },
  { name: 'lower bound', rule: '>= 2', field: UINT32, good: [2], bad: [[1, '1 is below the minimum 2']] },
  { name: 'open lower bound', rule: '> 0', field: UINT32, good: [1], bad: [[0, '0 is not above 0']] },
  {
    name: 'both bounds of a double, which NaN breaks',
    rule: '>= 0, <= 1',
    field: { type: 'double' },
    good: [0, 0.5, 1],
    bad: [
      [1.5, '1.5 exceeds the limit 1'],
      [Number.NaN, 'NaN is below the minimum 0'],
    ],
  },
  {
    name: 'bound of a wrapped 64-bit number',
    rule: '<= 8388608',
    field: { type: 'google.protobuf.UInt64Value' },
    good: [undefined, { value: 8388608 }],
    bad: [
      [{ value: 9000000 }, '9000000 exceeds the limit 8388608'],
      [{ value: '18446744073709551615' }, '18446744073709551615 exceeds the limit 8388608'],
    ],
  },
  {
    name: 'required number with a bound',
    rule: 'required, > 0',
    field: { type: 'google.protobuf.UInt32Value' },
    good: [{ value: 1 }],
    bad: [
      [undefined, 'must be set'],
      [{ value: 0 }, '0 is not above 0'],
    ],
  },
  {
    name: 'duration bounds',
    rule: '>= 1ms, < 300s',
    field: DURATION,
    good: [undefined, { nanos: 1_000_000 }, { seconds: 299, nanos: 999_999_999 }],
    bad: [
      [{ nanos: 999_999 }, '0.000999999s is below the minimum 1ms'],
      [{ seconds: 300 }, '300s is not below 300s'],
      [{ seconds: -1, nanos: -500_000_000 }, '-1.5s is below the minimum 1ms'],
    ],
  },
  {
    name: 'the type limits of a duration',
    rule: '',
    field: DURATION,
    good: [{ seconds: 315_576_000_000 }, { seconds: 0 }],
    bad: [
      [{ seconds: -1 }, '-1s is negative'],
      [{ nanos: -1 }, '-0.000000001s is negative'],
      [{ seconds: 315_576_000_001 }, '315576000001s exceeds the limit 315576000000s'],
      [{ seconds: 1, nanos: -1 }, '1 seconds and -1 nanoseconds are not a duration'],
    ],
  },
  {
    name: 'byte limit',
    rule: 'bytes <= 4',
    field: STRING,
    good: ['éé'],
    bad: [['ééé', 'has 6 bytes, at most 4 bytes are allowed']],
  },
  {
    name: 'character limit',
    rule: 'each length >= 3',
    field: { ...STRING, rule: 'repeated' },
    good: [['ééé']],
    bad: [[['ok!', 'éé'], '[1]: has 2 characters, at least 3 characters are allowed']],
  },
  {
    name: 'known enum values',
    rule: 'known',
    field: { type: 'proxy.config.cluster.v3.Cluster.LbPolicy' },
    good: [0, 5],
    bad: [[99, '99 is not a value of LbPolicy']],
  },
  {
    name: 'excluded enum value',
    rule: 'known, not 6',
    field: { type: 'proxy.config.core.v3.RequestMethod' },
    good: [1],
    bad: [[6, 'CONNECT (6) is not allowed here']],
  },
  {
    name: 'header name',
    rule: 'header-name',
    field: STRING,
    good: ['x-a', 'not a token', ''],
    bad: [['x\r\ny', '"x\\r\\ny" is not a header name: it holds CR, LF or NUL']],
  },
  {
    name: 'strict header name that may be empty',
    rule: 'strict-header-name, or-empty',
    field: STRING,
    good: ['', 'x-a', ':authority'],
    bad: [['not a token', '"not a token" is not a header name']],
  },
  {
    name: 'header value',
    rule: 'header-value',
    field: STRING,
    good: ['a b', 'é'],
    bad: [['a\0', 'is not a header value: it holds CR, LF or NUL']],
  },
  {
    name: 'strict header value',
    rule: 'strict-header-value',
    field: STRING,
    good: ['a\tb'],
    bad: [['a\x07', 'is not a header value: it holds control characters']],
  },
  {
    name: 'list of strings',
    rule: "in 'http' 'https'",
    field: STRING,
    good: ['http'],
    bad: [['ftp', '"ftp" is not one of http, https']],
  },
  {
    name: 'prefix and suffix of what may be empty',
    rule: "prefix '%', suffix '%', or-empty",
    field: STRING,
    good: ['', '%A%'],
    bad: [
      ['A%', '"A%" does not start with "%"'],
      ['%A', '"%A" does not end with "%"'],
    ],
  },
  {
    name: 'path prefix',
    rule: 'path-prefix',
    field: STRING,
    good: ['/api'],
    bad: [
      ['/api/', '"/api/" is not a path prefix: it must not end in "/" nor hold "?" or "#"'],
      ['/a?b', '"/a?b" is not a path prefix: it must not end in "/" nor hold "?" or "#"'],
    ],
  },
  { name: 'switch', rule: 'true', field: { type: 'bool' }, good: [true], bad: [[false, 'can only be true']] },
  {
    name: 'least number of entries',
    rule: 'items >= 1',
    field: { ...STRING, rule: 'repeated' },
    good: [['a']],
    bad: [[[], 'must have at least 1 entry']],
  },
  {
    name: 'greatest number of entries',
    rule: 'items <= 2',
    field: { ...UINT32, rule: 'repeated' },
    good: [[], [1, 2]],
    bad: [[[1, 2, 3], 'has 3 entries, must have at most 2 entries']],
  },
  {
    name: 'unique entries',
    rule: 'unique, each > 0',
    field: { type: 'double', rule: 'repeated' },
    good: [[1, 2]],
    bad: [[[1, 2, 1], '1 appears more than once']],
  },
  {
    name: 'bounds of entries',
    rule: 'each >= 1, each <= 65535',
    field: { ...UINT32, rule: 'repeated' },
    good: [[1, 65535]],
    bad: [[[80, 70000], '[1]: 70000 exceeds the limit 65535']],
  },
  {
    name: 'map keys',
    rule: 'keys non-empty',
    field: { ...STRING, keyType: 'string' },
    good: [{ a: '' }],
    bad: [[{ '': 'x' }, '[""]: the key must not be empty']],
  },
];

describe('rules', () => {
  for (const { name, rule, field, good, bad } of CASES) {
    it(`${name}: accepts what keeps to it`, () => {
      for (const value of good) assert.deepEqual(faultsOf(field, rule, value), []);
    });
    it(`${name}: says what breaks it`, () => {
      for (const [value, fault] of bad) {
        assert.deepEqual(faultsOf(field, rule, value), [fault.startsWith('[') ? `f${fault}` : `f: ${fault}`]);
      }
    });
  }

  it('a long value is cut in the fault', () => {
    const [fault] = faultsOf(STRING, "in 'a'", 'x'.repeat(500));
    assert.equal(fault, `f: "${'x'.repeat(80)}…" is not one of a`);
  });

  it('a rule that cannot be read is a bug', () => {
    assert.throws(() => parseRule('non-empty, sometimes'), /unknown rule term "sometimes"/);
    assert.throws(() => parseRule('<= many'), /unknown rule term "<= many"/);
  });

  it('every rule of the schema can be compiled, for both generations', () => {
    for (const type of schema.types()) {
      for (const generation of ['v2', 'v3'] as const) {
        const unpacked = { type, message: type.create({}), generation };
        assert.doesNotThrow(() => validate(schema.validator, unpacked), `${type.fullName} ${generation}`);
      }
    }
  });
});

describe('validation of messages', () => {
  const bootstrap = (clusters: object[]) => ({ static_resources: { clusters } });
  const BOOTSTRAP = 'proxy.config.bootstrap.v3.Bootstrap';

  it('reports every fault with its path, in the order of the fields', () => {
    const clusters = [
      { name: 'a' },
      { name: '', connect_timeout: {}, typed_extension_protocol_options: {} },
      { name: 'c', ring_hash_lb_config: { minimum_ring_size: { value: 9000000 } } },
    ];
    assert.deepEqual(check(BOOTSTRAP, bootstrap(clusters)), [
      'static_resources.clusters[1].name: must not be empty',
      'static_resources.clusters[1].connect_timeout: 0s is not above 0s',
      'static_resources.clusters[2].ring_hash_lb_config.minimum_ring_size: 9000000 exceeds the limit 8388608',
    ]);
  });

  it('names the members of a oneof of which none is set', () => {
    const cluster = {
      name: 'a',
      load_assignment: { cluster_name: 'a', endpoints: [{ lb_endpoints: [{ endpoint: { address: {} } }] }] },
    };
    assert.deepEqual(check(BOOTSTRAP, bootstrap([cluster])), [
      'static_resources.clusters[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address: ' +
        'one of socket_address, pipe, envoy_internal_address must be set',
    ]);
  });

  it('leaves the members of a oneof that are not set alone, and checks the one that is', () => {
    const HEADER = 'proxy.config.route.v3.HeaderMatcher';
    assert.deepEqual(check(HEADER, { name: 'x', exact_match: '' }), []);
    assert.deepEqual(check(HEADER, { name: 'x', prefix_match: '' }), ['prefix_match: must not be empty']);
  });

  it('goes into maps and messages that hold themselves', () => {
    const rules = { and_rules: { rules: [{ not_rule: { destination_port: 70000 } }] } };
    const message = { policies: { p: { permissions: [rules], principals: [{ any: true }] } } };
    assert.deepEqual(check('proxy.config.rbac.v3.RBAC', message), [
      'policies["p"].permissions[0].and_rules.rules[0].not_rule.destination_port: 70000 exceeds the limit 65535',
    ]);
  });

  it('enters what an Any holds, in the generation of its type URL', () => {
    const type = schema.messageType('proxy.config.listener.v3.Filter');
    const message = type.fromObject({ name: 'tcp', typed_config: { type_url: 'x/proxy.tcp', value: Buffer.alloc(0) } });
    const inner = schema.find('envoy.config.filter.network.tcp_proxy.v2.TcpProxy')!;
    const faults: string[] = [];
    schema.validator.validate({ type, message, generation: 'v3' }, 'filters[0]', {
      report: (path, text) => faults.push(`${path}: ${text}`),
      unpack: (any, path) => {
        assert.equal(any.type_url, 'x/proxy.tcp');
        assert.equal(path, 'filters[0].typed_config');
        return { ...inner, message: inner.type.fromObject({ stat_prefix: '', cluster: 'c' }) };
      },
    });
    assert.deepEqual(faults, ['filters[0].typed_config.stat_prefix: must not be empty']);
  });

  it('refuses fields that the interface dropped', () => {
    assert.deepEqual(check('proxy.config.listener.v3.Filter', { name: 'x', deprecated_v1: {} }), [
      'deprecated_v1: this field was removed from the interface; take it out',
    ]);
    assert.deepEqual(
      check('proxy.config.core.v3.GrpcService', { envoy_grpc: { cluster_name: 'c' }, credentials: [{}] }),
      ['credentials: this field was removed from the interface; take it out'],
    );
  });

  describe('of the v2 generation', () => {
    const STATUS = 'proxy.config.route.v3.DirectResponseAction';

    it('may keep to the looser rule', () => {
      assert.deepEqual(check(STATUS, { status: 101 }, 'v3'), ['status: 101 is below the minimum 200']);
      assert.deepEqual(check(STATUS, { status: 101 }, 'v2'), []);
      assert.deepEqual(check(STATUS, { status: 99 }, 'v2'), ['status: 99 is below the minimum 100']);
    });

    it('is not held to rules that v3 dropped', () => {
      assert.deepEqual(check('proxy.config.core.v3.RuntimeDouble', { default_value: 1 }, 'v2'), []);
    });

    it('is free where v2 had no rule', () => {
      assert.deepEqual(check('proxy.extensions.transport_sockets.tls.v3.SdsSecretConfig', {}, 'v2'), []);
      assert.deepEqual(check('proxy.extensions.transport_sockets.tls.v3.SdsSecretConfig', {}, 'v3'), [
        'name: must not be empty',
      ]);
    });
  });

  it('follows the interface document where it sets another limit', () => {
    const cluster = { name: 'a', dns_refresh_rate: { nanos: 1_000_000 } };
    assert.deepEqual(check('proxy.config.cluster.v3.Cluster', cluster), []);
    assert.deepEqual(check('proxy.config.cluster.v3.Cluster', { ...cluster, dns_refresh_rate: { nanos: 999_999 } }), [
      'dns_refresh_rate: 0.000999999s is below the minimum 1ms',
    ]);
  });

  it('takes strict_check_headers in both spellings', () => {
    const headers = ['x-proxy-max-retries', 'x-envoy-max-retries', 'x-other'];
    const [fault, ...others] = check('proxy.extensions.filters.http.router.v3.Router', {
      strict_check_headers: headers,
    });
    assert.match(fault!, /^strict_check_headers\[2\]: "x-other" is not one of x-proxy-upstream-rq-timeout-ms/);
    assert.deepEqual(others, []);
  });
});
