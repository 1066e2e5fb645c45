// TLVs of PROXY headers that go through the proxy: which clients' ones hosts are told of, and what takes their place.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_TLV_BYTES, proxyHeader, readTlvs, tlv } from '../../src/base/proxy-header.ts';
import {
  clusterErrors,
  clusterNamed,
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  tcpFilter,
  withClusters,
  withListeners,
} from '../support/bootstrap.ts';
import { running } from '../support/network-filter-proxy.ts';
import { proxyV2 } from '../support/proxy-header.ts';
import { WireUpstream } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
const ENDS = Buffer.from([192, 0, 2, 1, 198, 51, 100, 2, 0x10, 0, 0x01, 0xbb]);
const CLIENT = { remoteAddress: '192.0.2.1', remotePort: 1, localAddress: '198.51.100.2', localPort: 2 };
const ALL: JsonObject = { match_type: 'INCLUDE_ALL' };
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

function only(...tlv_type: number[]): JsonObject {
  return { match_type: 'INCLUDE', tlv_type };
}

/** Base64, as JSON has bytes. */
function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function passing(fields: JsonObject): JsonObject {
  const type = `${TYPES}.filters.listener.proxy_protocol.v3.ProxyProtocol`;
  return { name: 'proxy_protocol', typed_config: { '@type': type, ...fields } };
}

/** Hosts get a header of version 2. */
function telling(config: JsonObject): JsonObject {
  const raw = { name: 'raw', typed_config: { '@type': `${TYPES}.transport_sockets.raw_buffer.v3.RawBuffer` } };
  const type = `${TYPES}.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport`;
  const typed_config = { '@type': type, config: { version: 'V2', ...config }, transport_socket: raw };
  return { transport_socket: { name: 'proxy', typed_config } };
}

function header(...tlvs: readonly (readonly [type: number, value: string])[]): Buffer {
  return proxyV2(0x21, 0x11, Buffer.concat([ENDS, ...tlvs.map(([type, value]) => tlv(type, Buffer.from(value)))]));
}

/** Those of a header, as `type=value`. */
function shown(bytes: Buffer): readonly string[] {
  const found: string[] = [];
  const end = 16 + bytes.readUInt16BE(14);
  assert.ok(readTlvs(bytes, 16 + ENDS.length, end, (type, value) => found.push(`${type}=${value}`)));
  return found;
}

/** An upstream that answers, and what has come on each of its connections. */
async function recorder(t: { after(end: () => Promise<void>): void }) {
  const received: Buffer[] = [];
  const upstream = await WireUpstream.start((socket, index) => {
    received[index] = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => {
      received[index] = Buffer.concat([received[index]!, bytes]);
      if (bytes.includes('ping')) socket.write(OK);
    });
    socket.on('end', () => socket.end());
  });
  t.after(() => upstream.close());
  return { port: upstream.port, received };
}

const PING = 'GET /ping HTTP/1.1\r\nhost: x\r\n\r\n';
const ROUTES = {
  virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] }],
};

for (const [name, filter] of [
  ['a TCP proxy', tcpFilter({})],
  ['HTTP', httpFilter({ route_config: ROUTES })],
] as const) {
  test(`TLVs pass ${name} where listener and cluster both let them`, async (t) => {
    const cases = [
      { listener: { pass_through_tlvs: ALL }, config: { pass_through_tlvs: ALL }, told: ['1=h2', '224=a', '224=b'] },
      { listener: { pass_through_tlvs: only(224) }, config: { pass_through_tlvs: ALL }, told: ['224=a', '224=b'] },
      { listener: { pass_through_tlvs: ALL }, config: { pass_through_tlvs: only(1, 2) }, told: ['1=h2'] },
      { listener: { pass_through_tlvs: ALL }, config: { pass_through_tlvs: only() }, told: [] },
      { listener: { pass_through_tlvs: ALL }, config: {}, told: [] },
      { listener: {}, config: { pass_through_tlvs: ALL }, told: [] },
      {
        listener: { pass_through_tlvs: ALL },
        config: { pass_through_tlvs: ALL, added_tlvs: [{ type: 224, value: base64('own') }] },
        told: ['1=h2', '224=own'],
      },
    ];
    for (const { listener, config, told } of cases) {
      const web = await recorder(t);
      const { client } = await running(t, [filter], {
        listener: { listener_filters: [passing(listener)] },
        clusters: { web: web.port },
        clusterFields: { web: telling(config) },
      });
      const one = client();
      one.socket.write(header([1, 'h2'], [224, 'a'], [224, 'b']));
      assert.equal((await one.write(PING).response()).status, 200);
      assert.deepEqual(shown(web.received[0]!), told);
      one.close();
    }
  });
}

test('a TCP proxy says TLVs of connections that have brought none', async (t) => {
  const web = await recorder(t);
  const proxy_protocol_tlvs = [
    { type: 224, value: base64('fixed') },
    {
      type: 225,
      format_string: { text_format_source: { inline_string: 'from %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' } },
    },
    { type: 226, format_string: { text_format_source: { inline_string: '%REQUESTED_SERVER_NAME%' } } },
    {
      type: 227,
      format_string: { text_format_source: { inline_string: '%REQUESTED_SERVER_NAME%' }, omit_empty_values: true },
    },
  ];
  const { client } = await running(t, [tcpFilter({ proxy_protocol_tlvs })], {
    listener: {
      listener_filters: [passing({ pass_through_tlvs: only(1), allow_requests_without_proxy_protocol: true })],
    },
    clusters: { web: web.port },
    clusterFields: { web: telling({ pass_through_tlvs: ALL }) },
  });
  const firsts = [Buffer.alloc(0), header([2, 'x']), header([1, 'own'], [2, 'x'])];
  for (const first of firsts) {
    const one = client();
    if (first.length > 0) one.socket.write(first);
    assert.equal((await one.write(PING).response()).status, 200);
    one.close();
  }
  const said = (ip: string) => ['224=fixed', `225=from ${ip}`, '226=-', '227='];
  assert.deepEqual(web.received.map(shown), [said('127.0.0.1'), said('192.0.2.1'), ['1=own']]);
});

test('what passes never takes more room than there is, and what is added goes first', () => {
  const lengths = fc.array(fc.nat(40_000), { maxLength: 6 });
  fc.assert(
    fc.property(lengths, fc.nat(60_000), (passed, added) => {
      const own = tlv(9, Buffer.alloc(added)).toString('hex');
      const passedTlvs = Buffer.concat(passed.map((length, type) => tlv(type, Buffer.alloc(length))));
      const bytes = proxyHeader({ version: 2, tlvs: own, passes: 'all' }, { ...CLIENT, passedTlvs });
      assert.equal(bytes.length, 16 + bytes.readUInt16BE(14));
      const found: [number, number][] = [];
      assert.ok(readTlvs(bytes, 28, bytes.length, (type, { length }) => found.push([type, length])));
      let room = MAX_TLV_BYTES - 3 - added;
      const expected: [number, number][] = [];
      for (const [type, length] of passed.entries()) {
        if (3 + length > room) continue;
        expected.push([type, length]);
        room -= 3 + length;
      }
      assert.deepEqual(found, [...expected, [9, added]]);
    }),
  );
});

test('faults of TLVs are named', () => {
  const at = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.proxy_protocol_tlvs[0]';
  const errorsOf = (entry: JsonObject): string[] =>
    faultTexts(load(withListeners(listenerWith([tcpFilter({ proxy_protocol_tlvs: [entry] })]))));
  const format_string = { text_format_source: { inline_string: 'a' } };
  assert.deepEqual(errorsOf({ type: 1 }), []);
  assert.deepEqual(errorsOf({ type: 1, format_string, value: base64('a') }), [
    `${at}.format_string: cannot stand beside a value`,
  ]);
  assert.deepEqual(errorsOf({ type: 1, format_string: { json_format: { a: 'b' } } }), [
    `${at}.format_string.json_format: is no text: use text_format_source`,
  ]);
  assert.match(errorsOf({ type: 1, format_string: { text_format_source: { inline_string: '%NO%' } } })[0]!, /NO/);
  assert.match(errorsOf({ type: 256 })[0]!, /proxy_protocol_tlvs\[0\]\.type/);
  const value = Buffer.alloc(MAX_TLV_BYTES - 2).toString('base64');
  assert.deepEqual(errorsOf({ type: 1, value }), [
    `${at}.value: takes ${MAX_TLV_BYTES + 1} bytes with its head; there is room for ${MAX_TLV_BYTES}`,
  ]);
  const cluster = 'static_resources.clusters[0].transport_socket.typed_config.config';
  assert.deepEqual(clusterErrors(clusterNamed('web', telling({ added_tlvs: [{ type: 1, format_string }] }))), [
    `${cluster}.added_tlvs[0].format_string: format_string is not supported by this build: proxy_protocol_tlvs of a TCP proxy makes TLVs of connections`,
  ]);
  const older = load(withClusters(clusterNamed('web', telling({ version: 'V1', pass_through_tlvs: ALL }))));
  assert.deepEqual(faultTexts(older, 'warning'), [`${cluster}.pass_through_tlvs: version 1 has no room for them`]);
});
