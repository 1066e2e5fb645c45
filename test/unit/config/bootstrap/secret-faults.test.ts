// Faults of fields that hold secrets say what is wrong, and not what is written there.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faultTexts, type JsonObject, load, withRoutes } from '../../../support/bootstrap.ts';

const SECRET = 'planted!';

function googleGrpc(fields: JsonObject): JsonObject {
  return { hds_config: { grpc_services: [{ google_grpc: { target_uri: 'a', stat_prefix: 'a', ...fields } }] } };
}

const AT = 'hds_config.grpc_services[0].google_grpc';
const key = (value: JsonObject | string): JsonObject => ({
  channel_credentials: { ssl_credentials: { private_key: value } },
});

/** Routes with a header that is added, or looked for. */
function added(header: JsonObject): JsonObject {
  return withRoutes({ virtual_hosts: [], request_headers_to_add: [{ header }] });
}

function looksFor(header: JsonObject): JsonObject {
  const routes = [{ match: { prefix: '/', headers: [header] }, direct_response: { status: 200 } }];
  return withRoutes({ virtual_hosts: [{ name: 'all', domains: ['*'], routes }] });
}

describe('a fault does not show', () => {
  const cases = [
    [
      'bytes that are none',
      key({ inline_bytes: SECRET }),
      'channel_credentials.ssl_credentials.private_key.inline_bytes: expected bytes in base64, got another value, which is not shown',
    ],
    [
      'a text in the place of a map',
      key(SECRET),
      'channel_credentials.ssl_credentials.private_key: expected a map, got another value, which is not shown',
    ],
    [
      'a number in the place of a text',
      { call_credentials: [{ access_token: 1234567 }] },
      'call_credentials[0].access_token: expected a string, got another value, which is not shown; put it in quotes',
    ],
    [
      'a list in the place of a text, but that it is one',
      { call_credentials: [{ access_token: [SECRET] }] },
      'call_credentials[0].access_token: expected a string, got a list',
    ],
  ] as const;
  for (const [name, fields, expected] of cases) {
    it(name, () => {
      const texts = faultTexts(load(googleGrpc(fields)));
      assert.ok(texts.includes(`${AT}.${expected}`), texts.join('\n'));
      assert.ok(!texts.join('').includes(SECRET) && !texts.join('').includes('1234567'));
    });
  }

  const ofHeaders = [
    [
      'a header value that breaks a head',
      added({ key: 'a', value: `${SECRET}\r\n` }),
      'is not a header value: it holds',
    ],
    [
      'bytes of a header value that are none',
      added({ raw_value: SECRET, key: 'Authorization' }),
      'expected bytes in base64, got another value, which is not shown',
    ],
    [
      'a number as the value of such a header',
      added({ key: 'x-api-key', value: 1234567 }),
      'expected a string, got another value, which is not shown',
    ],
    [
      'an expression that such a header has to match',
      looksFor({ name: 'authorization', string_match: { safe_regex: { regex: `${SECRET}(` } } }),
      'regex: is not a regular expression',
    ],
    [
      'the oldest form of one',
      looksFor({ name: 'cookie', regex_match: `${SECRET}(` }),
      'regex_match: is not a regular expression',
    ],
    [
      'a number that such a header has to be',
      looksFor({ name: 'x-auth-token', exact_match: 1234567 }),
      'expected a string, got another value, which is not shown',
    ],
  ] as const;
  for (const [name, bootstrap, expected] of ofHeaders) {
    it(name, () => {
      const texts = faultTexts(load(bootstrap)).join('\n');
      assert.ok(texts.includes(expected), texts);
      assert.ok(!texts.includes(SECRET) && !texts.includes('1234567'), texts);
    });
  }

  it('but values of other headers', () => {
    const regex = looksFor({ name: 'x-mode', string_match: { safe_regex: { regex: 'a(' } } });
    assert.match(faultTexts(load(regex)).join(), /"a\(" is not a regular expression: missing \)/);
    assert.match(faultTexts(load(added({ key: 'x-mode', value: 5 }))).join(), /expected a string, got 5/);
  });

  it('what stands behind such a field as if it were one', () => {
    const texts = faultTexts(load(googleGrpc({ call_credentials: [{ access_token: 7 }], stat_prefix: 5 })));
    assert.ok(texts.includes(`${AT}.stat_prefix: expected a string, got 5; put it in quotes: "5"`), texts.join('\n'));
  });
});
