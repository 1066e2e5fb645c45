// Messages as the JSON of dumps: it means the same message to another reader, and tells no secrets.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import protojson from 'protobufjs/ext/protojson.js';
import type { Field, Type } from 'protobufjs/light.js';
import { maskTree } from '../../../../src/config/proto/json-text/field-mask.ts';
import { messageJson } from '../../../../src/config/proto/json-text/message-json.ts';
import { fieldOptions, protoSchema } from '../../../../src/config/proto/root.ts';
import { encodeMessage } from '../../../../src/config/proto/wire-parts.ts';
import { anyMessage, Draw } from '../../../support/config/any-message.ts';

const schema = protoSchema();
const TEXTS = ['', 'a', 'web.example', 'a "b"\\', 'line\nline\u0000\u2028', 'naïve 😀', '__proto__'];
const PLANTED = 'planted';
const ROOTS = [
  'proxy.config.bootstrap.v3.Bootstrap',
  'proxy.config.cluster.v3.Cluster',
  'proxy.config.listener.v3.Listener',
  'proxy.config.route.v3.RouteConfiguration',
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
  'proxy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
  'proxy.extensions.transport_sockets.tls.v3.Secret',
  'proxy.config.core.v3.GrpcService',
  'proxy.admin.v3.ServerInfo',
].map((name) => schema.messageType(name));
const CONTENTS = [
  ...ROOTS,
  ...['Duration', 'Struct', 'StringValue', 'UInt64Value', 'BoolValue', 'Any'].map((name) =>
    schema.messageType(`google.protobuf.${name}`),
  ),
];

function json(type: Type, bytes: Uint8Array, options = {}): string {
  return [...messageJson(schema, type, bytes, options)].join('');
}

/** As a reader of protobuf's own JSON takes it. Its types have the names of our schema. */
function readBack(type: Type, text: string): Uint8Array {
  return encodeMessage(
    type,
    protojson.fromJsonString(type, text.replaceAll('googleapis.com/envoy.', 'googleapis.com/proxy.')),
  );
}

function isSensitive(field: Field): boolean {
  return fieldOptions(field)['(proxy.sensitive)'] === true;
}

describe('the JSON of a message', () => {
  it('means the same message to a reader of protobuf', () => {
    const check = (seed: number): void => {
      const draw = new Draw(seed);
      const type = draw.of(ROOTS);
      const textOf = (): string => draw.of(TEXTS);
      const bytes = encodeMessage(type, anyMessage(draw, type, { textOf, skips: isSensitive, contents: CONTENTS }));
      assert.deepEqual(Buffer.from(readBack(type, json(type, bytes))), Buffer.from(bytes));
    };
    fc.assert(fc.property(fc.integer(), check), { numRuns: 300 });
  });

  it('is laid out as JSON.stringify does it', () => {
    const check = (seed: number): void => {
      const draw = new Draw(seed);
      const type = draw.of(ROOTS);
      const textOf = (): string => draw.of(TEXTS);
      const bytes = encodeMessage(type, anyMessage(draw, type, { textOf, contents: CONTENTS }));
      const text = json(type, bytes);
      // A member called __proto__ is one, and numbers stay as they are.
      if (!text.includes('-0') && !/\d[eE]/.test(text))
        assert.equal(JSON.stringify(JSON.parse(text), undefined, 1), text);
    };
    fc.assert(fc.property(fc.integer(), check), { numRuns: 200 });
  });

  it('comes in pieces that are the same as the whole', () => {
    const type = schema.messageType('proxy.config.cluster.v3.Cluster');
    const hosts = Array.from({ length: 2_000 }, (_, at) => ({ pipe: { path: `/run/${at}` } }));
    const pieces = [...messageJson(schema, type, encodeMessage(type, { name: 'a', hosts }))];
    assert.ok(pieces.length > 3, String(pieces.length));
    for (const piece of pieces) assert.ok(piece.length < 20_000);
    assert.equal((JSON.parse(pieces.join('')) as { hosts: unknown[] }).hosts.length, 2_000);
  });

  it('shows what an Any holds under the name that it has now', () => {
    const type = schema.messageType('proxy.config.core.v3.TransportSocket');
    const tls = schema.messageType('proxy.extensions.transport_sockets.tls.v3.UpstreamTlsContext');
    const any = {
      type_url: 'type.googleapis.com/envoy.api.v2.auth.UpstreamTlsContext',
      value: encodeMessage(tls, { sni: 'a' }),
    };
    assert.deepEqual(JSON.parse(json(type, encodeMessage(type, { name: 'tls', typed_config: any }))), {
      name: 'tls',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
        sni: 'a',
      },
    });
  });

  it('shows nothing of an Any that it does not know', () => {
    const type = schema.messageType('proxy.config.core.v3.TransportSocket');
    const any = { type_url: 'type.googleapis.com/example.Secret', value: Buffer.from(PLANTED) };
    assert.deepEqual(JSON.parse(json(type, encodeMessage(type, { typed_config: any }))), {
      typed_config: { '@type': 'type.googleapis.com/example.Secret' },
    });
  });

  it('holds as many levels as a source may have', () => {
    const type = schema.messageType('google.protobuf.Struct');
    let struct: object = { fields: {} };
    for (let level = 0; level < 900; level++) struct = { fields: { a: { structValue: struct } } };
    assert.equal(json(type, encodeMessage(type, struct)).split('"a"').length, 901);
  });

  it('shows the fields of a mask alone', () => {
    const type = schema.messageType('proxy.config.cluster.v3.Cluster');
    const bytes = encodeMessage(type, {
      name: 'a',
      connect_timeout: { seconds: 1 },
      circuit_breakers: { thresholds: [{}] },
    });
    const mask = maskTree(['name', 'circuit_breakers', 'circuit_breakers.thresholds', 'metadata.filter_metadata']);
    assert.deepEqual(JSON.parse(json(type, bytes, { mask })), { name: 'a', circuit_breakers: { thresholds: [{}] } });
  });
});
