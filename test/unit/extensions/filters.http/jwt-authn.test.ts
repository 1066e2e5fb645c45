import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { parseKeySet } from '../../../../src/base/json-web-keys.ts';
import type { JwtAuthnSettings } from '../../../../src/extensions/filters.http/jwt_authn/settings.ts';
import { fits, isSigned } from '../../../../src/extensions/filters.http/jwt_authn/signature.ts';
import { JwtStatus } from '../../../../src/extensions/filters.http/jwt_authn/status.ts';
import { parseToken } from '../../../../src/extensions/filters.http/jwt_authn/token.ts';
import { faultTexts, type JsonObject, load } from '../../../support/bootstrap.ts';
import { CertificateFolder } from '../../../support/certificates.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';
import {
  curveSigner,
  keySet,
  PUBLIC_PEM,
  rsaSigner,
  SIGNERS,
  type Signer,
  secretSigner,
  tokenOf,
} from '../../../support/tokens.ts';

const NAME = 'envoy.filters.http.jwt_authn';
const V3 = 'envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication';
const V2 = 'envoy.config.filter.http.jwt_authn.v2alpha.JwtAuthentication';
const KEYS = keySet(curveSigner('ES256'));
const LOCAL: JsonObject = { local_jwks: { inline_string: KEYS } };
const REMOTE: JsonObject = { http_uri: { uri: 'https://a.test:8443/keys?x=1', cluster: 'web', timeout: '1s' } };

describe('the settings of the jwt_authn filter', () => {
  it('are the same in both generations', () => {
    const fields: JsonObject = {
      providers: {
        a: {
          issuer: 'me',
          audiences: ['x'],
          forward: true,
          from_headers: [{ name: 'X-T', value_prefix: 'p' }],
          ...LOCAL,
        },
        b: {
          remote_jwks: { ...REMOTE, cache_duration: '5s' },
          forward_payload_header: 'X-P',
          payload_in_metadata: 'p',
        },
      },
      rules: [
        {
          match: { prefix: '/' },
          requires: { requires_any: { requirements: [{ provider_name: 'a' }, { provider_name: 'b' }] } },
        },
      ],
      bypass_cors_preflight: true,
    };
    const settings = filterSettings<JwtAuthnSettings>(NAME, V3, fields);
    assert.deepEqual(filterSettings<JwtAuthnSettings>(NAME, V2, fields), settings);
    const [a, b] = settings.providers;
    assert.deepEqual([a!.fromHeaders, a!.fromParameters], [[{ name: 'x-t', prefix: 'p' }], []]);
    assert.deepEqual(
      [b!.fromHeaders, b!.fromParameters, b!.payloadHeader],
      [[{ name: 'authorization', prefix: 'Bearer ' }], ['access_token'], 'x-p'],
    );
    assert.deepEqual(b!.keys, {
      kind: 'remote',
      cluster: 'web',
      host: 'a.test:8443',
      path: '/keys?x=1',
      timeoutMs: 1000,
      cacheMs: 5000,
      isEager: false,
      failedRefetchMs: 1000,
      retries: 0,
      backoffBaseMs: 1000,
      backoffMaxMs: 10_000,
    });
    assert.deepEqual([a!.skewSeconds, a!.cachedTokens, a!.maxLifetimeMs], [60, 0, Number.POSITIVE_INFINITY]);
    assert.equal(settings.stats.denied, 'jwt_authn.denied');
  });

  const provider = (fields: JsonObject): JsonObject => ({ providers: { a: { ...LOCAL, ...fields } } });
  const rule = (fields: JsonObject): JsonObject => ({
    ...provider({}),
    rules: [{ match: { prefix: '/' }, ...fields }],
  });

  for (const [what, fields, expected] of [
    ['no keys', { providers: { a: { issuer: 'me' } } }, /^providers\["a"\]: .*jwks/],
    ['keys that are no JSON', { providers: { a: { local_jwks: { inline_string: 'x' } } } }, /local_jwks: is no JSON/],
    [
      'no key',
      { providers: { a: { local_jwks: { inline_string: '{"keys":[{"kty":"x"}]}' } } } },
      /local_jwks: has no key/,
    ],
    ['a file that is none', { providers: { a: { local_jwks: { filename: '/nowhere' } } } }, /local_jwks\.filename: /],
    [
      'a variable that is none',
      { providers: { a: { local_jwks: { environment_variable: 'NO_SUCH' } } } },
      /local_jwks\.environment_variable: "NO_SUCH"/,
    ],
    [
      'a cluster that is none',
      { providers: { a: { remote_jwks: { http_uri: { uri: 'http://a', cluster: 'wed', timeout: '1s' } } } } },
      /remote_jwks\.http_uri\.cluster: .*"wed"/,
    ],
    [
      'a place that is none',
      { providers: { a: { remote_jwks: { http_uri: { uri: 'a/b', cluster: 'web', timeout: '1s' } } } } },
      /remote_jwks\.http_uri\.uri: "a\/b"/,
    ],
    [
      'waits that shrink',
      {
        providers: {
          a: {
            remote_jwks: { ...REMOTE, retry_policy: { retry_back_off: { base_interval: '2s', max_interval: '1s' } } },
          },
        },
      },
      /retry_back_off\.max_interval: /,
    ],
    [
      'a header that frames',
      provider({ forward_payload_header: 'Content-Length' }),
      /forward_payload_header: "Content-Length"/,
    ],
    [
      'a claim in such a header',
      provider({ claim_to_headers: [{ header_name: 'host', claim_name: 'x' }] }),
      /claim_to_headers\[0\]\.header_name: /,
    ],
    ['subjects that are no expression', provider({ subjects: { safe_regex: { regex: '(' } } }), /subjects\.safe_regex/],
    [
      'a provider that is none',
      rule({ requires: { provider_name: 'b' } }),
      /^rules\[0\]\.requires\.provider_name: .*"b"/,
    ],
    [
      'the same within others',
      rule({
        requires: {
          requires_all: { requirements: [{ provider_name: 'a' }, { provider_and_audiences: { provider_name: 'b' } }] },
        },
      }),
      /requires_all\.requirements\[1\]\.provider_and_audiences\.provider_name: /,
    ],
    [
      'a list of one',
      rule({ requires: { requires_any: { requirements: [{ provider_name: 'a' }] } } }),
      /requires_any\.requirements/,
    ],
    ['a name that is none', rule({ requirement_name: 'x' }), /^rules\[0\]\.requirement_name: .*"x"/],
    [
      'a path that is no expression',
      { ...provider({}), rules: [{ match: { safe_regex: { regex: '(' } } }] },
      /^rules\[0\]\.match\.safe_regex/,
    ],
    ['a state without a name', { ...provider({}), filter_state_rules: { name: '' } }, /^filter_state_rules\.name: /],
    [
      'a provider of a state that there is not',
      { ...provider({}), filter_state_rules: { name: 'x', requires: { a: { provider_name: 'y' } } } },
      /^filter_state_rules\.requires\["a"\]\.provider_name: .*"y"/,
    ],
  ] as const) {
    test(`are refused by the name of the field: ${what}`, () => {
      assert.match(filterFaults('jwt_authn', V3, fields as JsonObject).join('\n'), new RegExp(expected.source, 'm'));
    });
  }

  test('of a route are refused, too', () => {
    const faultsOf = (fields: JsonObject): readonly string[] => {
      const type = 'type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig';
      return faultTexts(
        load(withHttpFilter(NAME, V3, provider({}), { [NAME]: { '@type': type, ...fields } })),
        'error',
      );
    };
    assert.deepEqual([faultsOf({ disabled: true }), faultsOf({ requirement_name: 'x' })], [[], []]);
    assert.match(faultsOf({})[0]!, /disabled|requirement/);
  });
});

function verifies(text: string, set: string): boolean {
  const token = parseToken(text);
  if (typeof token === 'string') return false;
  const keys = parseKeySet(set).keys ?? [];
  const { algorithm, signed, signature } = token;
  return keys.some((key) => fits(key, algorithm) && isSigned(key, algorithm, signed, signature));
}

describe('a signature', () => {
  test('is good by its own key alone', () => {
    for (const signer of SIGNERS) {
      const token = tokenOf(signer, { a: 1 });
      assert.ok(verifies(token, keySet(signer)), signer.alg);
      const others = SIGNERS.filter(({ jwk }) => jwk.kty !== signer.jwk.kty || jwk.crv !== signer.jwk.crv);
      assert.ok(!verifies(token, keySet(...others)), signer.alg);
    }
  });

  test('is never one by a public key taken for a secret', () => {
    const rsa = rsaSigner('RS256');
    for (const secret of [PUBLIC_PEM, JSON.stringify(rsa.jwk), rsa.jwk.n as string]) {
      for (const alg of ['HS256', 'HS384', 'HS512']) {
        assert.ok(!verifies(tokenOf(secretSigner(alg, Buffer.from(secret)), {}), keySet(rsa)));
      }
    }
  });

  test('is good for what was signed alone, bit by bit', () => {
    const picked = [SIGNERS[0]!, SIGNERS[6]!, SIGNERS[9]!, SIGNERS[10]!].map(
      (signer) => [tokenOf(signer, { sub: 'ann' }), keySet(signer)] as const,
    );
    fc.assert(
      fc.property(fc.constantFrom(...picked), fc.nat(), fc.integer({ min: 1, max: 63 }), ([token, set], place, by) => {
        const at = place % token.length;
        const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
        const old = letters.indexOf(token[at]!);
        const letter = old === -1 ? 'A' : letters[(old + by) % 64]!;
        assert.ok(!verifies(`${token.slice(0, at)}${letter}${token.slice(at + 1)}`, set));
      }),
      { numRuns: 300 },
    );
  });

  test('keeps to what its key is for', () => {
    const signer = rsaSigner('RS256');
    const of = (fields: object): string => JSON.stringify({ keys: [{ ...signer.jwk, ...fields }] });
    assert.ok(verifies(tokenOf(signer, {}), of({ use: 'sig', alg: 'RS256' })));
    assert.ok(!verifies(tokenOf(signer, {}), of({ use: 'enc' })));
    assert.ok(!verifies(tokenOf(signer, {}), of({ alg: 'RS512' })));
  });
});

describe('a set of keys', () => {
  test('may hold certificates', async () => {
    using folder = new CertificateFolder();
    const { certificate } = await folder.make('web');
    const der = certificate.replaceAll(/-----[^-]+-----|\s/g, '');
    const [byName] = parseKeySet(JSON.stringify({ one: certificate, two: 'x' })).keys!;
    assert.equal(byName!.id, 'one');
    if (byName!.kind === 'RSA') {
      const [inSet] = parseKeySet(JSON.stringify({ keys: [{ kty: 'RSA', kid: 'a', x5c: [der] }] })).keys!;
      assert.ok(inSet!.key.equals(byName!.key));
    }
  });

  test('is read, or refused, whatever it is', () => {
    const names = fc.constantFrom('kty', 'kid', 'alg', 'use', 'n', 'e', 'crv', 'x', 'y', 'k', 'x5c');
    const values = fc.oneof(fc.constantFrom('RSA', 'EC', 'OKP', 'oct', 'P-256', 'Ed25519', '', 'AQAB'), fc.jsonValue());
    fc.assert(
      fc.property(fc.array(fc.dictionary(names, values)), (keys) => {
        const parsed = parseKeySet(JSON.stringify({ keys }));
        for (const { kind, key } of parsed.keys ?? []) assert.equal(key.type, kind === 'oct' ? 'secret' : 'public');
      }),
    );
    fc.assert(fc.property(fc.string(), (text) => assert.notEqual(parseKeySet(text).error, undefined)));
  });
});

describe('a token', () => {
  const signer: Signer = SIGNERS[10]!;

  test('is read, or refused, whatever it is', () => {
    const parts = fc.oneof(
      fc.string(),
      fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')),
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 4 }), (list) => {
        const token = parseToken(list.join('.'));
        if (typeof token === 'string') assert.ok(Object.values(JwtStatus).includes(token));
      }),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('iss', 'sub', 'aud', 'exp', 'nbf'), fc.jsonValue()), (claims) => {
        const token = parseToken(tokenOf(signer, claims));
        if (typeof token === 'string') return;
        assert.equal(typeof token.issuer, 'string');
        assert.ok(token.audiences.every((audience) => typeof audience === 'string'));
        assert.ok(token.expires === null || token.expires >= 0);
      }),
    );
  });

  test('is refused for what it is not', () => {
    const status = (claims: unknown, header: Record<string, unknown> = {}) =>
      parseToken(tokenOf(signer, claims, header));
    let deep: unknown = 1;
    for (let at = 0; at < 40; at += 1) deep = { deep };
    assert.equal(status({}, { alg: 'none' }), JwtStatus.headerUnknownAlgorithm);
    assert.equal(status({}, { alg: 'hs256' }), JwtStatus.headerUnknownAlgorithm);
    assert.equal(status({}, { alg: 1 }), JwtStatus.headerBadAlgorithm);
    assert.equal(status({}, { kid: 1 }), JwtStatus.headerBadKeyId);
    assert.equal(status({}, { crit: ['exp'] }), JwtStatus.headerCritical);
    assert.equal(status([]), JwtStatus.payloadBadJson);
    assert.equal(status(deep), JwtStatus.payloadBadJson);
    assert.equal(status({ iss: 1 }), JwtStatus.payloadBadIssuer);
    assert.equal(status({ sub: 1 }), JwtStatus.payloadBadSubject);
    assert.equal(status({ aud: ['a', 1] }), JwtStatus.payloadBadAudience);
    assert.equal(status({ exp: 'soon' }), JwtStatus.payloadBadExpiration);
    assert.equal(status({ nbf: -1 }), JwtStatus.payloadBadNotBefore);
    const [head, payload, signature] = tokenOf(signer, {}).split('.') as [string, string, string];
    assert.equal(parseToken(`${head}.${payload}`), JwtStatus.badFormat);
    assert.equal(parseToken(`${head}.${payload}.`), JwtStatus.signatureBadBase64);
    assert.equal(parseToken(`${head}.${payload}.${signature}=`), JwtStatus.signatureBadBase64);
    assert.equal(parseToken(`${head}=.${payload}.${signature}`), JwtStatus.headerBadBase64);
    assert.equal(parseToken(`${head}.+${payload}.${signature}`), JwtStatus.payloadBadBase64);
    assert.equal(parseToken(`e30.${payload}.${signature}`), JwtStatus.headerBadAlgorithm);
  });
});
