// Bind configurations: which source address and which options connections to hosts of each family begin with.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConnectionOrigin } from '../../../../src/base/own-sockets.ts';
import {
  clusterErrors,
  clusterNamed,
  faultTexts,
  type JsonObject,
  load,
  mustLoad,
  withClusters,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0].upstream_bind_config';
const V4 = { address: '127.0.0.2', port_value: 0 };
const OTHER_V4 = { address: '127.0.0.3', port_value: 0 };
const V6 = { address: '::1', port_value: 5 };
const MARK = { level: 1, name: 36, int_value: 7 };
const NAGLE = { level: 6, name: 1, int_value: 1, state: 'STATE_BOUND' };
const FREE_V4 = { level: 0, name: 15, value: 1 };
const FREE_V6 = { level: 41, name: 78, value: 1 };
const SOURCE_V4 = { kind: 'ip', ip: '127.0.0.2', port: 0 };
const SOURCE_V6 = { kind: 'ip', ip: '::1', port: 5 };

function origin(ofCluster: JsonObject | null, ofBootstrap: JsonObject | null = null): ConnectionOrigin {
  const cluster = clusterNamed('web', ofCluster === null ? {} : { upstream_bind_config: ofCluster });
  const cluster_manager = ofBootstrap === null ? {} : { upstream_bind_config: ofBootstrap };
  const { sourceAddress, sourcesByFamily } = mustLoad({ ...withClusters(cluster), cluster_manager }).clusters[0]!;
  return { sourceAddress, ...(sourcesByFamily && { sourcesByFamily }) };
}

describe('a bind configuration', () => {
  it('needs no more than an address where there is nothing else', () => {
    assert.deepEqual(origin({ source_address: V4, freebind: false }), { sourceAddress: SOURCE_V4 });
    assert.deepEqual(origin({}), { sourceAddress: undefined });
  });

  it('sets options, each in its time, with or without an address', () => {
    const source = {
      address: undefined,
      beforeBind: [{ level: 1, name: 36, value: 7 }],
      afterBind: [{ level: 6, name: 1, value: 1 }],
    };
    assert.deepEqual(origin({ socket_options: [NAGLE, MARK] }).sourcesByFamily, { v4: source, v6: source });
    const { v4 } = origin({ source_address: V4, socket_options: [MARK] }).sourcesByFamily!;
    assert.deepEqual(v4, { address: SOURCE_V4, beforeBind: [{ level: 1, name: 36, value: 7 }], afterBind: [] });
  });

  it('binds freely, by the option of the family', () => {
    const { v4, v6 } = origin({ source_address: V4, freebind: true }).sourcesByFamily!;
    assert.deepEqual([v4.beforeBind, v6.beforeBind], [[FREE_V4], [FREE_V6]]);
  });

  it('takes bytes, and options for one family or for streams', () => {
    const bytes = { level: 1, name: 25, buf_value: Buffer.from('lo').toString('base64'), type: { stream: {} } };
    const ofV6 = { level: 41, name: 67, int_value: 1, ip_version: 'SOCKET_IP_VERSION_IPV6' };
    const { v4, v6 } = origin({ socket_options: [bytes, ofV6] }).sourcesByFamily!;
    assert.deepEqual(v4.beforeBind, [{ level: 1, name: 25, value: '6c6f' }]);
    assert.deepEqual(v6.beforeBind, [...v4.beforeBind, { level: 41, name: 67, value: 1 }]);
  });

  for (const list of ['extra', 'additional'] as const) {
    it(`has ${list} source addresses, by the family of the host`, () => {
      const more =
        list === 'extra' ? { extra_source_addresses: [{ address: V6 }] } : { additional_source_addresses: [V6] };
      const { v4, v6 } = origin({ source_address: V4, socket_options: [MARK], ...more }).sourcesByFamily!;
      assert.deepEqual([v4.address, v6.address], [SOURCE_V4, SOURCE_V6]);
      assert.deepEqual(v6.beforeBind, [{ level: 1, name: 36, value: 7 }]);
      const plain = origin({ source_address: V6, ...JSON.parse(JSON.stringify(more).replace('"::1"', '"127.0.0.2"')) });
      assert.deepEqual(plain.sourcesByFamily!.v4.address, { ...SOURCE_V4, port: 5 });
      assert.deepEqual(plain.sourcesByFamily!.v4.beforeBind, []);
    });
  }

  it('gives an extra source address options of its own, perhaps none', () => {
    const extra = (own: JsonObject): JsonObject => ({
      source_address: V4,
      freebind: true,
      socket_options: [MARK],
      extra_source_addresses: [{ address: V6, socket_options: own }],
    });
    const without = origin(extra({})).sourcesByFamily!;
    assert.deepEqual(without.v6.beforeBind, [FREE_V6]);
    assert.equal(without.v4.beforeBind.length, 2);
    const withOne = origin(extra({ socket_options: [{ ...MARK, int_value: 8 }] })).sourcesByFamily!;
    assert.deepEqual(withOne.v6.beforeBind, [FREE_V6, { level: 1, name: 36, value: 8 }]);
  });

  it('of a cluster takes the addresses of the bootstrap away, and keeps the options that it does not set', () => {
    const common = { source_address: V6, freebind: true, socket_options: [MARK] };
    const inherited = origin(null, common).sourcesByFamily!;
    assert.deepEqual(inherited.v6, {
      address: SOURCE_V6,
      beforeBind: [FREE_V6, { level: 1, name: 36, value: 7 }],
      afterBind: [],
    });
    const { v6 } = origin({ source_address: V4 }, common).sourcesByFamily!;
    assert.deepEqual(v6, { ...inherited.v6, address: SOURCE_V4 });
    const own = { freebind: false, socket_options: [{ ...MARK, int_value: 9 }] };
    const { v4 } = origin(own, common).sourcesByFamily!;
    assert.deepEqual(v4, { address: undefined, beforeBind: [{ level: 1, name: 36, value: 9 }], afterBind: [] });
  });

  it('may name what chooses by family, and nothing else that chooses', () => {
    const selector = (type: string): JsonObject => ({
      source_address: V4,
      local_address_selector: { name: 'choice', typed_config: { '@type': `type.googleapis.com/${type}` } },
    });
    const known = 'envoy.config.upstream.local_address_selector.v3.DefaultLocalAddressSelector';
    assert.deepEqual(origin(selector(known)), { sourceAddress: SOURCE_V4 });
    const [error] = clusterErrors(clusterNamed('web', { upstream_bind_config: selector('example.Selector') }));
    assert.match(error!, /local_address_selector/);
  });

  for (const [what, fields, error] of [
    [
      'both lists',
      { source_address: V4, extra_source_addresses: [{ address: V6 }], additional_source_addresses: [V6] },
      'extra_source_addresses and additional_source_addresses cannot both be set',
    ],
    [
      'more than one',
      { source_address: V4, additional_source_addresses: [V6, V6] },
      'has more than one source address beside source_address',
    ],
    ['none beside them', { additional_source_addresses: [V6] }, 'further source addresses need a source_address'],
    [
      'an empty one beside them',
      { source_address: { address: '', port_value: 0 }, additional_source_addresses: [V6] },
      'source addresses beside others must not be empty',
    ],
    [
      'two of a family',
      { source_address: V4, additional_source_addresses: [OTHER_V4] },
      'source addresses must be of different families',
    ],
  ] as const) {
    it(`is refused for source addresses: ${what}`, () => {
      const errors = clusterErrors(clusterNamed('web', { upstream_bind_config: fields as JsonObject }));
      assert.ok(errors.includes(`${AT}: ${error}`), errors.join('\n'));
    });
  }

  it('is refused for numbers that are too large, and warned of what has no effect', () => {
    const warningsOf = (option: JsonObject): string[] =>
      faultTexts(
        load(withClusters(clusterNamed('web', { upstream_bind_config: { socket_options: [option] } }))),
        'warning',
      );
    const errorsOf = (option: JsonObject): string[] =>
      clusterErrors(clusterNamed('web', { upstream_bind_config: { socket_options: [option] } }));
    for (const field of ['level', 'name', 'int_value']) {
      assert.deepEqual(errorsOf({ ...MARK, [field]: '4294967296' }), [
        `${AT}.socket_options[0].${field}: 4294967296 does not fit into an int`,
      ]);
    }
    assert.deepEqual(errorsOf({ ...MARK, int_value: '4294967295' }), []);
    assert.deepEqual(warningsOf({ ...MARK, state: 'STATE_LISTENING' }), [
      `${AT}.socket_options[0]: has no effect: a connection to an upstream never listens`,
    ]);
    assert.deepEqual(warningsOf({ ...MARK, type: { datagram: {} } }), [
      `${AT}.socket_options[0]: has no effect: it is for datagrams`,
    ]);
  });
});
