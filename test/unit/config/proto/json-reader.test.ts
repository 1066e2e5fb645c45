import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import protojson from 'protobufjs/ext/protojson.js';
import { exactInteger } from '../../../../src/config/proto/decimal.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { UnknownFieldPolicy } from '../../../../src/config/proto/unknown-fields.ts';
import { readText } from '../../../support/config/read.ts';

const CLUSTER = 'config.cluster.v3.Cluster';
const ROUTE_ACTION = 'config.route.v3.RouteAction';

/** Canonical JSON of what was read, to compare without spelling out prototypes. */
function json(typeName: string, text: string, form: 'yaml' | 'json' = 'yaml'): unknown {
  const { message, faults } = readText(typeName, text, { form });
  assert.deepEqual(faults, []);
  return protojson.toJson(protoSchema().messageType(`proxy.${typeName}`), message);
}

function faults(typeName: string, text: string): readonly string[] {
  return readText(typeName, text).faults.map((fault) => fault.replace('test.yaml:', ''));
}

describe('values', () => {
  test('fields are accepted in both spellings, null means absent', () => {
    const snake = json(
      CLUSTER,
      'name: a\nconnect_timeout: 1.5s\nlb_policy: RING_HASH\nadmin: ~'.replace('\nadmin: ~', ''),
    );
    const camel = json(CLUSTER, 'name: a\nconnectTimeout: 1.5s\nlbPolicy: ring_hash\nmaxRequestsPerConnection: ~');
    assert.deepEqual(camel, snake);
    assert.deepEqual(snake, { name: 'a', connectTimeout: '1.500s', lbPolicy: 'RING_HASH' });
  });

  test('integers keep 64 bits exactly and accept every written form of a whole number', () => {
    const ring = (value: string) => {
      const { message, faults: found } = readText(CLUSTER, `ring_hash_lb_config: { minimum_ring_size: ${value} }`);
      const config = message.ring_hash_lb_config as { minimum_ring_size: { value: { toString(): string } } | null };
      return found.length > 0 ? found[0] : config.minimum_ring_size?.value.toString();
    };
    assert.equal(ring('18446744073709551615'), '18446744073709551615');
    assert.equal(ring('9007199254740993'), '9007199254740993');
    assert.equal(ring('"1024"'), '1024');
    assert.equal(ring('1e3'), '1000');
    assert.equal(ring('5.0'), '5');
    assert.equal(ring('0x10'), '16');
    assert.match(ring('18446744073709551616')!, /"18446744073709551616" is outside 0 to 18446744073709551615$/);
    assert.match(ring('5.5')!, /expected a whole number, got "5.5"$/);
    assert.match(ring('many')!, /expected an integer, got "many"$/);
  });

  test('exact integers agree with big integer arithmetic', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }),
        fc.integer({ min: 0, max: 12 }),
        (value, zeros) => {
          assert.equal(exactInteger(`${value}`), value);
          assert.equal(exactInteger(`${value}.${'0'.repeat(zeros + 1)}`), value);
          assert.equal(exactInteger(`${value}e${zeros}`), value * 10n ** BigInt(zeros));
          assert.equal(exactInteger(`${value}${'0'.repeat(zeros)}e-${zeros}`), value);
          assert.equal(exactInteger(`${value}.5`), 'fraction');
        },
      ),
    );
    assert.equal(exactInteger('1e999999999'), 'out of range');
    assert.equal(exactInteger('0e999999999'), 0n);
    assert.equal(exactInteger('1e-999999999'), 'fraction');
    assert.equal(exactInteger('0x10'), 'not a number');
  });

  test('floats are read from their text, floats of 32 bits are rounded as on the wire', () => {
    assert.deepEqual(json('type.v3.Percent', 'value: 0.1'), { value: 0.1 });
    assert.deepEqual(json('type.v3.Percent', 'value: "NaN"'), { value: 'NaN' });
    assert.match(faults('type.v3.Percent', 'value: 1e999')[0]!, /"1e999" is outside/);
    assert.match(faults('type.v3.Percent', 'value: a lot')[0]!, /expected a number, got "a lot"/);
  });

  test('wrappers, durations, masks and structs take their JSON forms', () => {
    const text = `
      per_connection_buffer_limit_bytes: 0
      dns_refresh_rate: -0.000000001s
      cleanup_interval: 315576000000s
      metadata: { filter_metadata: { lb: { a: 0.5, b: 5, c: yes, d: ~, e: [x, { f: 1 }] } } }
    `;
    assert.deepEqual(json(CLUSTER, text), {
      perConnectionBufferLimitBytes: 0,
      dnsRefreshRate: '-0.000000001s',
      cleanupInterval: '315576000000s',
      metadata: { filterMetadata: { lb: { a: '0.5', b: 5, c: true, d: null, e: ['x', { f: 1 }] } } },
    });
    assert.deepEqual(json(CLUSTER, '{"metadata":{"filterMetadata":{"lb":{"a":0.5}}}}', 'json'), {
      metadata: { filterMetadata: { lb: { a: 0.5 } } },
    });
  });

  test('durations may be written by their parts', () => {
    const text = `
      connect_timeout: { seconds: 300 }
      dns_refresh_rate: { seconds: '2', nanos: 500000000 }
      cleanup_interval: { seconds: -1, nanos: -1 }
    `;
    assert.deepEqual(json(CLUSTER, text), {
      connectTimeout: '300s',
      dnsRefreshRate: '2.500s',
      cleanupInterval: '-1.000000001s',
    });
    for (const parts of ['{ minutes: 1 }', '{ seconds: 0.5 }', '{ seconds: 1, nanos: -1 }', '{ nanos: 1000000000 }']) {
      assert.match(faults(CLUSTER, `connect_timeout: ${parts}`)[0]!, /expected a duration in seconds such as/, parts);
    }
    assert.equal(faults(CLUSTER, 'connect_timeout: { seconds: 315576000001 }').length, 1);
  });

  test('durations and timestamps out of shape or range are refused', () => {
    for (const text of ['5', '5s5', '1m', '.5s', '1.0000000001s', '9999999999999s', '315576000001s']) {
      assert.equal(faults(CLUSTER, `connect_timeout: ${text}`).length, 1, text);
    }
    const secret = 'admin.v3.CertificateDetails';
    const valid = json(secret, 'valid_from: "2024-02-29T23:59:59.25+01:30"');
    assert.deepEqual(valid, { validFrom: '2024-02-29T22:29:59.250Z' });
    for (const text of ['2023-02-29T00:00:00Z', '2023-01-01T24:00:00Z', '2023-01-01', 'now', '0000-01-01T00:00:00Z']) {
      assert.match(faults(secret, `valid_from: "${text}"`)[0]!, /expected a time such as/, text);
    }
  });

  test('bytes are base64 of either alphabet, padded or not', () => {
    const bytes = (text: string) => {
      const { message, faults: found } = readText('config.core.v3.DataSource', `inline_bytes: "${text}"`);
      return found.length > 0 ? 'fault' : Buffer.from(message.inline_bytes as Uint8Array).toString('hex');
    };
    assert.equal(bytes('-_8='), 'fbff');
    assert.equal(bytes('+/8'), 'fbff');
    assert.equal(bytes(''), '');
    for (const text of ['a', '!!', 'ab=', 'abc==', 'a b']) assert.equal(bytes(text), 'fault', text);
  });

  test('enums go by either generation’s name in any case, or by number', () => {
    const lbPolicy = (text: string) => readText(CLUSTER, `lb_policy: ${text}`).message.lb_policy;
    assert.equal(lbPolicy('maglev'), 5);
    assert.equal(lbPolicy('ORIGINAL_DST_LB'), 4);
    assert.equal(lbPolicy('3'), 3);
    assert.equal(lbPolicy('99'), 99);
    assert.deepEqual(faults(CLUSTER, 'lb_policy: RING_HSH'), [
      '1:12: lb_policy: "RING_HSH" is not one of ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, ORIGINAL_DST_LB, MAGLEV, CLUSTER_PROVIDED, LOAD_BALANCING_POLICY_CONFIG; did you mean "RING_HASH"?',
    ]);
  });

  test('a map key named __proto__ is a key like any other', () => {
    const { message } = readText(CLUSTER, 'metadata: { filter_metadata: { __proto__: { __proto__: 1 } } }');
    const { filter_metadata: map } = message.metadata as { filter_metadata: Record<string, object> };
    assert.deepEqual(Object.keys(map), ['__proto__']);
    assert.equal(({} as Record<string, unknown>).fields, undefined);
  });
});

test('what stands in place of a list is a list of one', () => {
  const { message } = readText(
    CLUSTER,
    'load_assignment: { endpoints: { lb_endpoints: { endpoint: { hostname: a } } } }',
  );
  const { endpoints } = message.load_assignment as {
    endpoints: { lb_endpoints: { endpoint: { hostname: string } }[] }[];
  };
  assert.deepEqual(
    endpoints.map(({ lb_endpoints }) => lb_endpoints.map(({ endpoint }) => endpoint.hostname)),
    [['a']],
  );
  const host = readText('config.route.v3.VirtualHost', 'domains: "*"').message;
  assert.deepEqual(host.domains, ['*']);
});

describe('faults', () => {
  test('one pass finds them all, each with path, value and place', () => {
    const text = `name: 5
conect_timeout: 1s
connect_timeout: soon
hosts: { a: 1 }
load_assignment:
  endpoints:
  - lb_endpoints: x
  - ~
  - { priority: -1 }
http2_protocol_options: []
metadata: { filter_metadata: [] }`;
    assert.deepEqual(faults(CLUSTER, text), [
      '1:7: name: expected a string, got 5; put it in quotes: "5"',
      '2:1: conect_timeout: unknown field "conect_timeout" in proxy.config.cluster.v3.Cluster; did you mean "connect_timeout"?',
      '3:18: connect_timeout: expected a duration in seconds such as "0.25s", got "soon"',
      '4:10: hosts[0].a: unknown field "a" in proxy.config.core.v3.Address',
      '7:19: load_assignment.endpoints[0].lb_endpoints: expected a list, got "x"',
      '8:5: load_assignment.endpoints[1]: a list cannot hold null',
      '9:17: load_assignment.endpoints[2].priority: -1 is outside 0 to 4294967295',
      '10:25: http2_protocol_options: expected a map, got a list',
      '11:30: metadata.filter_metadata: expected a map, got a list',
    ]);
  });

  test('a oneof set twice and a field given in two spellings are contradictions', () => {
    assert.deepEqual(faults('config.route.v3.RouteMatch', 'prefix: /\npath: /x'), [
      '2:1: path: path_specifier is already set by prefix; only one of them may be given',
    ]);
    assert.deepEqual(faults(CLUSTER, 'connect_timeout: 1s\nconnectTimeout: 2s'), [
      '2:1: connect_timeout: given twice, as connect_timeout and as connectTimeout',
    ]);
    assert.deepEqual(faults('config.route.v3.RouteMatch', 'prefix: /\npath: ~'), []);
  });

  test('a faulty item leaves the indices of its neighbours alone', () => {
    const { message, faults: found } = readText(CLUSTER, 'hosts: [5, { pipe: { path: p } }, { pipe: { mode: x } }]');
    assert.equal((message.hosts as unknown[]).length, 3);
    assert.deepEqual(
      found.map((fault) => fault.split(': ')[1]),
      ['hosts[0]', 'hosts[2].pipe.mode'],
    );
  });

  test('aliases that nest without end are stopped by the path, not by the stack', () => {
    const deep = Array.from({ length: 190 }, (_, level) =>
      level === 0 ? 'l0: &l0 {}' : `l${level}: &l${level} ${'{ a: '.repeat(8)}*l${level - 1}${' }'.repeat(8)}`,
    ).join('\n');
    const found = faults('config.core.v3.Node', `metadata:\n${deep.replaceAll(/^/gm, '  ')}`);
    assert.equal(found.length, 1);
    assert.match(found[0]!, /nested too deep$/);
  });
});

describe('generations', () => {
  test('host_rewrite means the literal in v2 and the format string in v3', () => {
    const v2 = readText(ROUTE_ACTION, 'host_rewrite: h', { generation: 'v2' }).message;
    const v3 = readText(ROUTE_ACTION, 'host_rewrite: h', { generation: 'v3' }).message;
    assert.deepEqual([v2.host_rewrite_literal, v2.host_rewrite], ['h', '']);
    assert.deepEqual([v3.host_rewrite_literal, v3.host_rewrite], ['', 'h']);
    assert.equal(readText(ROUTE_ACTION, 'auto_host_rewrite_header: h').message.host_rewrite_header, 'h');
  });

  test('a field that only the older generation has marks the whole source as older', () => {
    assert.equal(readText(CLUSTER, 'name: a').generation, 'v3');
    assert.equal(readText(CLUSTER, 'hosts: []').generation, 'v2');
  });

  test('a list of now may be the single message of then', () => {
    const { message, faults: found } = readText(
      'config.core.v3.HealthCheck.HttpHealthCheck',
      'receive: { text: "00" }',
    );
    assert.deepEqual(found, []);
    assert.equal((message.receive as unknown[]).length, 1);
  });
});

describe('unknown fields', () => {
  const text = 'bogus: 1\nname: a\nhosts: [{ bogus: 1 }, { bogus: 2 }]';

  test('are errors at every place when they are rejected', () => {
    assert.equal(readText(CLUSTER, text).faults.length, 3);
  });

  test('are warned of and counted once per message type and field when they are allowed', () => {
    let counted = 0;
    const policy = UnknownFieldPolicy.forDynamic(
      { rejectUnknownDynamicFields: false, ignoreUnknownDynamicFields: false },
      () => (counted += 1),
    );
    const first = readText(CLUSTER, text, { unknownFields: policy });
    assert.equal(first.message.name, 'a');
    assert.equal(first.faults.length, 2);
    assert.deepEqual(readText(CLUSTER, text, { unknownFields: policy }).faults, []);
    assert.deepEqual([policy.count, counted], [2, 2]);
  });

  test('pass in silence when they are ignored, unless they are rejected as well', () => {
    const ignoring = UnknownFieldPolicy.forDynamic({
      rejectUnknownDynamicFields: false,
      ignoreUnknownDynamicFields: true,
    });
    assert.deepEqual(readText(CLUSTER, text, { unknownFields: ignoring }).faults, []);
    assert.equal(ignoring.count, 0);
    const both = UnknownFieldPolicy.forDynamic({ rejectUnknownDynamicFields: true, ignoreUnknownDynamicFields: true });
    assert.equal(both.mode, 'reject');
    assert.equal(UnknownFieldPolicy.forStatic({ allowUnknownStaticFields: true }).mode, 'warn');
    assert.equal(UnknownFieldPolicy.forStatic({ allowUnknownStaticFields: false }).mode, 'reject');
  });

  test('are seen in the binary form too, at any depth', () => {
    const type = protoSchema().messageType(`proxy.${CLUSTER}`);
    const locality = Buffer.from([0xf8, 0x07, 0x01]); // field 127, varint 1
    const cluster = Buffer.concat([
      type.encode(type.create({ name: 'a' })).finish(),
      Buffer.from([0x8a, 0x02, locality.length + 2, 0x12, locality.length]), // load_assignment = 33, endpoints = 2
      locality,
      Buffer.from([0xf2, 0x3f, 0x01, 0x00]), // field 1022, one byte
    ]);
    const { faults: found } = readText(CLUSTER, cluster, { form: 'binary' });
    assert.deepEqual(found, [
      'test.binary: 1022: unknown field "1022" in proxy.config.cluster.v3.Cluster',
      'test.binary: load_assignment.endpoints[0].127: unknown field "127" in proxy.config.endpoint.v3.LocalityLbEndpoints',
    ]);
  });
});
