// What dumps do not show: keys, passwords, tokens, wherever they stand.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Type } from 'protobufjs/light.js';
import { messageJson } from '../../../../src/config/proto/json-text/message-json.ts';
import { isCredentialHeader, isSensitiveName } from '../../../../src/config/proto/json-text/redaction.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { encodeMessage } from '../../../../src/config/proto/wire-parts.ts';
import { anyMessage, Draw } from '../../../support/config/any-message.ts';

const schema = protoSchema();
const PLANTED = 'planted secret';
const TLS = 'proxy.extensions.transport_sockets.tls.v3';
const GOOGLE = 'proxy.config.core.v3.GrpcService.GoogleGrpc';
const REDACTED = '[redacted]';
const source = { inline_string: PLANTED };

function shown(typeName: string, message: object): unknown {
  const type = schema.messageType(typeName);
  return JSON.parse([...messageJson(schema, type, encodeMessage(type, message))].join(''));
}

describe('a dump does not show', () => {
  const cases = [
    [`${TLS}.TlsCertificate`, { private_key: source }, { private_key: { inline_string: REDACTED } }],
    [`${TLS}.TlsCertificate`, { password: source }, { password: { inline_string: REDACTED } }],
    [`${TLS}.TlsCertificate`, { pkcs12: { filename: PLANTED } }, { pkcs12: { filename: REDACTED } }],
    [
      `${TLS}.TlsCertificate`,
      { private_key: { inline_bytes: Buffer.from(PLANTED) } },
      { private_key: { inline_bytes: Buffer.from(REDACTED).toString('base64') } },
    ],
    [
      `${TLS}.TlsSessionTicketKeys`,
      { keys: [source, source] },
      { keys: [{ inline_string: REDACTED }, { inline_string: REDACTED }] },
    ],
    [`${TLS}.GenericSecret`, { secret: source }, { secret: { inline_string: REDACTED } }],
    [`${TLS}.GenericSecret`, { secrets: { a: source } }, { secrets: { a: { inline_string: REDACTED } } }],
    [
      `${TLS}.PrivateKeyProvider`,
      {
        provider_name: 'p',
        config: { fields: { a: { stringValue: PLANTED }, b: { numberValue: 7 }, c: { nullValue: 0 } } },
      },
      { provider_name: 'p', config: { a: REDACTED, b: REDACTED, c: null } },
    ],
    [`${GOOGLE}.SslCredentials`, { private_key: source }, { private_key: { inline_string: REDACTED } }],
    [`${GOOGLE}.CallCredentials`, { access_token: PLANTED }, { access_token: REDACTED }],
    [`${GOOGLE}.CallCredentials`, { google_refresh_token: PLANTED }, { google_refresh_token: REDACTED }],
    [
      `${GOOGLE}.CallCredentials.ServiceAccountJWTAccessCredentials`,
      { json_key: PLANTED, token_lifetime_seconds: 60 },
      { json_key: REDACTED, token_lifetime_seconds: '60' },
    ],
    [
      `${GOOGLE}.CallCredentials.GoogleIAMCredentials`,
      { authorization_token: PLANTED },
      { authorization_token: REDACTED },
    ],
    [
      'proxy.config.core.v3.HeaderValue',
      { key: 'Authorization', value: PLANTED },
      { key: 'Authorization', value: REDACTED },
    ],
    [
      'proxy.config.route.v3.HeaderMatcher',
      { name: 'x-api-key', exact_match: PLANTED, invert_match: true },
      { name: 'x-api-key', exact_match: REDACTED, invert_match: true },
    ],
    [
      'google.protobuf.Struct',
      {
        fields: {
          db: {
            structValue: {
              fields: { 'Client-Secret': { listValue: { values: [{ stringValue: PLANTED }, { boolValue: true }] } } },
            },
          },
        },
      },
      { db: { 'Client-Secret': [REDACTED, REDACTED] } },
    ],
    [
      'proxy.config.core.v3.Metadata',
      { filter_metadata: { 'my.secret': { fields: { a: { stringValue: PLANTED } } } } },
      { filter_metadata: { 'my.secret': { a: REDACTED } } },
    ],
  ] as const;
  for (const [type, message, expected] of cases) {
    it(`${type.slice(type.lastIndexOf('.') + 1)} ${Object.keys(message).join(', ')}`, () => {
      assert.deepEqual(shown(type, message), expected);
    });
  }

  it('a message in an Any of a hidden field, but its type', () => {
    const type = schema.messageType(`${TLS}.GenericSecret`);
    const any = {
      type_url: `type.googleapis.com/${TLS}.GenericSecret`,
      value: encodeMessage(type, { secret: source }),
    };
    assert.deepEqual(shown(`${TLS}.PrivateKeyProvider`, { typed_config: any, fallback: true }), {
      typed_config: {
        '@type': `type.googleapis.com/envoy.${TLS.slice(6)}.GenericSecret`,
        secret: { inline_string: REDACTED },
      },
      fallback: true,
    });
  });

  it('anything that was planted where secrets are, in any message', () => {
    const types = [
      'config.bootstrap.v3.Bootstrap',
      'config.core.v3.GrpcService',
      'config.core.v3.HttpUri',
      'config.cluster.v3.Cluster',
    ];
    const own = [`${TLS}.UpstreamTlsContext`, `${TLS}.Secret`, `${TLS}.DownstreamTlsContext`];
    const all: readonly Type[] = [...types.map((name) => `proxy.${name}`), ...own].map((name) =>
      schema.messageType(name),
    );
    let planted = 0;
    const check = (seed: number): void => {
      const draw = new Draw(seed);
      const type = draw.of(all);
      const textOf = (isHidden: boolean): string => {
        if (isHidden) planted += 1;
        return isHidden ? PLANTED : 'open';
      };
      const contents = [
        ...all,
        schema.messageType('google.protobuf.Struct'),
        schema.messageType('google.protobuf.StringValue'),
      ];
      const bytes = encodeMessage(type, anyMessage(draw, type, { textOf, namesSecrets: true, contents }));
      const text = [...messageJson(schema, type, bytes)].join('');
      assert.ok(!text.includes(PLANTED) && !text.includes(Buffer.from(PLANTED).toString('base64')), text);
    };
    fc.assert(fc.property(fc.integer(), check), { numRuns: 400 });
    assert.ok(planted > 100, `only ${planted} secrets were planted`);
  });
});

describe('names of secrets', () => {
  for (const name of [
    'password',
    'db_password',
    'apiKey',
    'X-Auth-Token',
    'client.secret',
    'private_key',
    'AWS_SECRET_ACCESS_KEY',
  ]) {
    it(`${name} is one`, () => assert.ok(isSensitiveName(name)));
  }
  for (const name of ['name', 'tokenizer', 'key', 'secretary', 'token_bucket', 'passwords_per_day']) {
    it(`${name} is none`, () => assert.ok(!isSensitiveName(name)));
  }
  for (const name of ['authorization', 'Proxy-Authorization', 'Cookie', 'x-api-key', 'x-auth-token', 'token']) {
    it(`a header ${name} has credentials`, () => assert.ok(isCredentialHeader(name)));
  }
  for (const name of ['x-token-count', 'host', 'accept', 'x-authorization-mode']) {
    it(`a header ${name} has none`, () => assert.ok(!isCredentialHeader(name)));
  }
});
