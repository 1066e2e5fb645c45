// The jwt_authn filter through the whole proxy: which requests go on, what upstreams and clients hear of their tokens, and keys that
// a server publishes.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, it, type TestContext, test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { type Bench, close, counts, guardFor, OK, REPLIES, request, valuesOf } from '../support/guarded-proxy.ts';
import { curveSigner, keySet, rsaSigner, SIGNERS, type Signer, tokenOf } from '../support/tokens.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'jwt_authn.v3.JwtAuthentication';
const SCOPE = 'http.main.jwt_authn.';
const SIGNER = curveSigner('ES256', 'one');
const OTHER = curveSigner('ES256', 'two');
const now = (): number => Math.floor(Date.now() / 1000);
const LATER = { iss: 'me', sub: 'ann', aud: 'shop', exp: now() + 3600 };

const local = (...signers: readonly Signer[]): JsonObject => ({
  local_jwks: { inline_string: keySet(...signers) },
});
const needs = (name: string): JsonObject => typed('jwt_authn.v3.PerRouteConfig', { requirement_name: name });
const bearer = (token: string): string => `authorization: Bearer ${token}`;

async function protectedProxy(
  fields: JsonObject,
  {
    routes = [routeTo('/')],
    clusters = [],
    before = [],
  }: {
    routes?: readonly JsonObject[];
    clusters?: readonly JsonObject[];
    /** Filters. */
    before?: readonly JsonObject[];
  } = {},
): Promise<Bench> {
  const upstream = await WireUpstream.answering(OK);
  const listener = filteredListener([...before, filterOf(TYPE, fields)], routes, { manager: REPLIES });
  const proxy = await createProxy(
    bootstrapOf([listener], [clusterAt('web', upstream.port), ...clusters], { stats_flush_on_admin: true }),
  );
  return { proxy, client: new WireClient(proxy.listeners.get('main')!.port), upstream };
}

async function benchFor(t: TestContext, ...args: Parameters<typeof protectedProxy>): Promise<Bench> {
  const bench = await protectedProxy(...args);
  t.after(() => close(bench));
  return bench;
}

async function answerOf({ client }: Bench, lines: readonly string[], target = '/', method = 'GET') {
  const { status, body, head } = await client.write(request(lines, target, '', method)).response();
  return { status, what: body.split('|')[0], body, head };
}

describe('the jwt_authn filter', () => {
  const A = { issuer: 'me', audiences: ['shop', 'https://store.test/'], ...local(SIGNER) };
  const B = { issuer: 'you', from_headers: [{ name: 'X-Token', value_prefix: 'jwt=' }], ...local(OTHER) };
  const one: JsonObject = { provider_name: 'a' };
  const two: JsonObject = { provider_name: 'b' };
  const either: JsonObject = { requires_any: { requirements: [one, two] } };
  let bench: Bench;

  before(async () => {
    bench = await protectedProxy(
      {
        providers: {
          a: {
            ...A,
            forward_payload_header: 'X-Payload',
            claim_to_headers: [
              { header_name: 'X-User', claim_name: 'sub' },
              { header_name: 'x-tier', claim_name: 'plan.tier' },
              { header_name: 'x-list', claim_name: 'roles' },
            ],
            payload_in_metadata: 'payload',
            header_in_metadata: 'header',
            normalize_payload_in_metadata: { space_delimited_claims: ['scope'] },
          },
          b: { ...B, forward: true, pad_forward_payload_header: true, forward_payload_header: 'x-padded' },
          c: {
            issuer: 'c',
            from_cookies: ['session'],
            from_params: ['t'],
            ...local(SIGNER),
            clear_route_cache: true,
            claim_to_headers: [{ header_name: 'x-group', claim_name: 'group' }],
          },
          d: { ...local(SIGNER), require_expiration: true, max_lifetime: '60s', subjects: { prefix: 'spiffe://' } },
        },
        bypass_cors_preflight: true,
        rules: [
          { match: { prefix: '/open' } },
          { match: { prefix: '/special', headers: [{ name: 'x-special', present_match: true }] }, requires: two },
          { match: { path: '/either' }, requires: either },
          { match: { prefix: '/both' }, requires: { requires_all: { requirements: [one, two] } } },
          { match: { prefix: '/maybe' }, requires: { requires_any: { requirements: [one, { allow_missing: {} }] } } },
          { match: { prefix: '/missing' }, requires: { allow_missing: {} } },
          { match: { prefix: '/whatever' }, requires: { allow_missing_or_failed: {} } },
          { match: { prefix: '/unverified' }, requires: { extract_only_without_validation: {} } },
          {
            match: { prefix: '/audience' },
            requires: { provider_and_audiences: { provider_name: 'a', audiences: ['x'] } },
          },
          { match: { prefix: '/cookie' }, requires: { provider_name: 'c' } },
          { match: { prefix: '/short' }, requires: { provider_name: 'd' } },
          { match: { prefix: '/named' }, requirement_name: 'named' },
          { match: { prefix: '/' }, requires: one },
        ],
        requirement_map: { named: two },
      },
      {
        routes: [
          routeTo('/off', { jwt_authn: typed('jwt_authn.v3.PerRouteConfig', { disabled: true }) }),
          routeTo('/route', { jwt_authn: needs('named') }),
          routeTo('/lost', { jwt_authn: needs('nobody') }),
          routeTo(
            '/cookie',
            {},
            {
              match: { prefix: '/cookie', headers: [{ name: 'x-group', string_match: { exact: 'staff' } }] },
              response_headers_to_add: [{ header: { key: 'x-route', value: 'staff' } }],
            },
          ),
          routeTo(
            '/',
            {},
            {
              response_headers_to_add: [
                { header: { key: 'x-scope', value: '%DYNAMIC_METADATA(envoy.filters.http.jwt_authn:payload:scope)%' } },
                { header: { key: 'x-alg', value: '%DYNAMIC_METADATA(envoy.filters.http.jwt_authn:header:alg)%' } },
              ],
            },
          ),
        ],
      },
    );
  });

  after(async () => {
    if (bench !== undefined) await close(bench);
  });

  const GOOD = tokenOf(SIGNER, LATER);
  const YOURS = tokenOf(OTHER, { ...LATER, iss: 'you' });
  const statusOf = async (target: string, ...lines: string[]) => (await answerOf(bench, lines, target)).status;

  it('lets a good token through, and takes it out', async () => {
    assert.equal(await statusOf('/', bearer(GOOD)), 200);
    assert.equal(await statusOf('/', `authorization: bearer  ${GOOD}`), 200);
    const sent = bench.upstream.heads.at(-1)!;
    assert.deepEqual(valuesOf(sent, 'authorization'), []);
    assert.equal(await statusOf(`/?access_token=${GOOD}`), 200);
    assert.equal(await statusOf('/', 'authorization: Basic abc'), 401);
  });

  it('tells the upstream what it says, and nobody else can', async () => {
    const claims = { ...LATER, sub: 'jörg', plan: { tier: 3 }, roles: ['x'], scope: 'read write' };
    const token = tokenOf(SIGNER, claims);
    const lies = ['x-user: root', 'x-payload: lie', 'x-list: lie', 'x-padded: lie', 'x-tier: lie'];
    const { head } = await answerOf(bench, [...lies, bearer(token)]);
    const sent = bench.upstream.heads.at(-1)!;
    assert.deepEqual(valuesOf(sent, 'x-payload'), [token.split('.')[1]]);
    assert.deepEqual([valuesOf(sent, 'x-user'), valuesOf(sent, 'x-tier')], [['j\xc3\xb6rg'], ['3']]);
    assert.deepEqual([valuesOf(sent, 'x-list'), valuesOf(sent, 'x-padded')], [[], []]);
    assert.deepEqual([valuesOf(head, 'x-scope'), valuesOf(head, 'x-alg')], [['["read","write"]'], ['ES256']]);
    assert.equal(await statusOf('/open', ...lies), 200);
    assert.deepEqual(valuesOf(bench.upstream.heads.at(-1)!, 'x-user'), []);
    assert.equal(await statusOf('/', bearer(tokenOf(SIGNER, { ...LATER, sub: 'a\r\nx-evil: 1' }))), 200);
    assert.deepEqual(valuesOf(bench.upstream.heads.at(-1)!, 'x-evil'), []);
  });

  it('tells what tokens say that nobody has verified, where that is wanted', async () => {
    const told = (): string[] => valuesOf(bench.upstream.heads.at(-1)!, 'x-user');
    const forged = tokenOf({ ...OTHER, kid: 'one' }, { ...LATER, sub: 'eve', aud: 'x', exp: 1 });
    assert.equal(await statusOf('/unverified', bearer(forged), 'x-user: root'), 200);
    assert.deepEqual(told(), ['eve']);
    for (const lines of [[], [bearer('a.b')], [bearer(tokenOf(SIGNER, { ...LATER, iss: 'x' }))]]) {
      assert.equal(await statusOf('/unverified', 'x-user: root', ...lines), 200);
      assert.deepEqual(told(), []);
    }
  });

  it('leaves a token where it is that may go on', async () => {
    assert.equal(await statusOf('/named', `x-token: jwt=${YOURS}; more`), 200);
    const sent = bench.upstream.heads.at(-1)!;
    assert.deepEqual(valuesOf(sent, 'x-token'), [`jwt=${YOURS}; more`]);
    const [padded] = valuesOf(sent, 'x-padded');
    assert.equal(padded!.length % 4, 0);
    assert.equal(padded!.replaceAll('=', ''), YOURS.split('.')[1]);
  });

  it('turns others away, and says why', async () => {
    const forged = `${GOOD.slice(0, -4)}AAAA`;
    const byOther = tokenOf({ ...OTHER, kid: 'one' }, LATER);
    for (const [lines, status, what] of [
      [[], 401, 'Jwt is missing'],
      [[bearer('a.b')], 401, 'Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections'],
      [[bearer(forged)], 401, 'Jwt verification fails'],
      [[bearer(byOther)], 401, 'Jwt verification fails'],
      [[bearer(tokenOf(OTHER, LATER))], 401, "Jwks doesn't have key to match kid or alg from Jwt"],
      [[bearer(tokenOf(SIGNER, { ...LATER, iss: 'x' }))], 401, 'Jwt issuer is not configured'],
      [[bearer(tokenOf(SIGNER, { ...LATER, exp: now() - 120 }))], 401, 'Jwt is expired'],
      [[bearer(tokenOf(SIGNER, { ...LATER, nbf: now() + 120 }))], 401, 'Jwt not yet valid'],
      [[bearer(tokenOf(SIGNER, { ...LATER, aud: 'x' }))], 403, 'Audiences in Jwt are not allowed'],
      [[bearer(tokenOf(SIGNER, { ...LATER, aud: undefined }))], 403, 'Audiences in Jwt are not allowed'],
    ] as const) {
      const answer = await answerOf(bench, lines, '/a"b?access=secret');
      assert.deepEqual([answer.status, answer.what], [status, what]);
      assert.match(answer.body, /\|UAEX\|jwt_authn_access_denied\{[^ ]+\}$/);
      const error = lines.length === 0 ? '' : ', error="invalid_token"';
      assert.deepEqual(valuesOf(answer.head, 'www-authenticate'), [`Bearer realm="http://shop.test/a\\"b"${error}`]);
    }
    for (const claims of [
      { ...LATER, exp: now() - 30 },
      { ...LATER, nbf: now() + 30 },
      { ...LATER, aud: ['x', 'http://store.test'] },
    ]) {
      assert.equal(await statusOf('/', bearer(tokenOf(SIGNER, claims))), 200);
    }
  });

  it('asks for what the first rule that fits says, or the route', async () => {
    const mine = bearer(GOOD);
    const yours = `x-token: jwt=${YOURS}`;
    const bad = bearer(`${GOOD}x`);
    for (const [target, lines, status] of [
      ['/open', [], 200],
      ['/off', [], 200],
      ['/special', ['x-special: 1', yours], 200],
      ['/special', ['x-special: 1', mine], 401],
      ['/special', [mine], 200],
      ['/either', [yours], 200],
      ['/either', [mine], 200],
      ['/either', [bad, yours], 200],
      ['/either', [], 401],
      ['/both', [mine], 401],
      ['/both', [mine, yours], 200],
      ['/maybe', [], 200],
      ['/maybe', [mine], 200],
      ['/maybe', [bad], 401],
      ['/missing', [], 200],
      ['/missing', [yours], 200],
      ['/missing', [bad], 401],
      ['/missing', [mine, `x-token: jwt=${GOOD}`], 401],
      ['/whatever', [bad], 200],
      ['/audience', [mine], 403],
      ['/audience', [bearer(tokenOf(SIGNER, { ...LATER, aud: 'x' }))], 200],
      ['/route', [yours], 200],
      ['/route', [mine], 401],
      ['/lost', [mine, yours], 403],
    ] as const) {
      assert.equal(await statusOf(target, ...lines), status, `${target} ${lines}`);
    }
  });

  it('finds tokens in cookies and parameters, and routes by what they say', async () => {
    const token = (group: string): string => tokenOf(SIGNER, { ...LATER, iss: 'c', group });
    const staff = await answerOf(bench, [`cookie: a=b; session=${token('staff')}`], '/cookie');
    assert.deepEqual([staff.status, valuesOf(staff.head, 'x-route')], [200, ['staff']]);
    const guest = await answerOf(bench, ['x-group: staff'], `/cookie?t=${token('guest')}`);
    assert.deepEqual([guest.status, valuesOf(guest.head, 'x-route')], [200, []]);
  });

  it('wants tokens that end soon, and subjects', async () => {
    const short = (claims: object): Promise<number> =>
      statusOf('/short', bearer(tokenOf(SIGNER, { iss: 'anybody', sub: 'spiffe://a', exp: now() + 30, ...claims })));
    assert.equal(await short({}), 200);
    assert.equal(await short({ exp: now() + 600 }), 401);
    assert.equal(await short({ exp: undefined }), 401);
    assert.equal(await short({ sub: 'ann' }), 401);
  });

  it('lets preflights through', async () => {
    const lines = ['origin: http://a.test', 'access-control-request-method: PUT'];
    assert.equal((await answerOf(bench, [...lines, 'x-user: root'], '/', 'OPTIONS')).status, 200);
    assert.deepEqual(valuesOf(bench.upstream.heads.at(-1)!, 'x-user'), []);
    assert.equal((await answerOf(bench, lines.slice(1), '/', 'OPTIONS')).status, 401);
    const { cors_preflight_bypassed } = await counts(bench.proxy, SCOPE);
    assert.equal(cors_preflight_bypassed, 1);
  });
});

describe('tokens', () => {
  test('are verified by every algorithm, and say nothing where that is wanted', async (t) => {
    const provider = { issuer: 'me', ...local(...SIGNERS), jwt_cache_config: { jwt_cache_size: 5 } };
    const rules = [{ match: { prefix: '/' }, requires: { provider_name: 'a' } }];
    const bench = await benchFor(t, {
      providers: { a: provider },
      rules,
      strip_failure_response: true,
      stat_prefix: 'edge',
    });
    for (const signer of SIGNERS) {
      assert.equal((await answerOf(bench, [bearer(tokenOf(signer, LATER))])).status, 200, signer.alg);
      assert.equal((await answerOf(bench, [bearer(tokenOf(signer, LATER, { kid: undefined }))])).status, 200);
    }
    const { status, body, head } = await answerOf(bench, []);
    assert.deepEqual([status, body.split('|')[0], valuesOf(head, 'www-authenticate')], [401, '', ['Bearer']]);
    const token = bearer(tokenOf(SIGNERS[0]!, LATER));
    for (let at = 0; at < 3; at += 1) await answerOf(bench, [token]);
    const n = SIGNERS.length * 2;
    assert.deepEqual(await counts(bench.proxy, `${SCOPE}edge.`), {
      allowed: n + 3,
      denied: 1,
      jwt_cache_hit: 2,
      jwt_cache_miss: n + 1,
    });
  });
});

describe('keys that a server publishes', () => {
  const remote = (fields: JsonObject = {}, uri: JsonObject = {}): JsonObject => ({
    issuer: 'me',
    remote_jwks: {
      http_uri: { uri: 'https://keys.test/jwks.json?v=1', cluster: 'keys', timeout: '30s', ...uri },
      ...fields,
    },
  });
  const rules = [{ match: { prefix: '/' }, requires: { provider_name: 'a' } }];
  const TOKEN = bearer(tokenOf(SIGNER, LATER));

  test('are fetched once for all who wait, and kept', async (t) => {
    const server = await guardFor(t);
    const held: (() => void)[] = [];
    server.answer = (response) => held.push(() => response.end(keySet(SIGNER)));
    const bench = await benchFor(
      t,
      { providers: { a: remote() }, rules },
      { clusters: [clusterAt('keys', server.port)] },
    );
    const { port } = bench.proxy.listeners.get('main')!;
    const clients = [bench.client, new WireClient(port), new WireClient(port)];
    const body = 'hello';
    for (const client of clients) client.write(request([TOKEN], '/', body, 'POST'));
    await eventually(() => held.length > 0, 'the keys are asked for');
    const leaving = new WireClient(port);
    leaving.write(request([TOKEN]));
    const active = async (): Promise<unknown> =>
      (await bench.proxy.stats.gauges('http.main.'))['http.main.downstream_rq_active'];
    await untilEqual(4, active, 'requests that wait');
    leaving.close();
    await untilEqual(3, active, 'requests that wait');
    held[0]!();
    for (const client of clients) assert.equal((await client.response()).status, 200);
    assert.equal((await answerOf(bench, [TOKEN])).status, 200);
    assert.equal((await answerOf(bench, [bearer(tokenOf(OTHER, LATER))])).status, 401);
    assert.equal(held.length, 1);
    const { method, url, headers } = server.last;
    assert.deepEqual([method, url, headers.host], ['GET', '/jwks.json?v=1', 'keys.test']);
    const { jwks_fetch_success, allowed, denied } = await counts(bench.proxy, SCOPE);
    assert.deepEqual([jwks_fetch_success, allowed, denied], [1, 4, 1]);
  });

  test('that do not come let nobody in', async (t) => {
    const server = await guardFor(t);
    let sent = 'no keys';
    server.answer = (response) => response.end(sent);
    const bench = await benchFor(
      t,
      { providers: { a: remote() }, rules },
      { clusters: [clusterAt('keys', server.port)] },
    );
    for (const text of [
      'no keys',
      '{"keys":[]}',
      '[]',
      '{"keys":[{"kty":"RSA","n":"","e":""}]}',
      'x'.repeat(1_100_000),
    ]) {
      sent = text;
      const { status, what } = await answerOf(bench, [TOKEN]);
      assert.deepEqual([status, what], [401, 'Jwks remote fetch is failed']);
    }
    server.answer = (response) => response.writeHead(500).end(keySet(SIGNER));
    assert.equal((await answerOf(bench, [TOKEN])).status, 401);
    assert.equal((await counts(bench.proxy, SCOPE)).jwks_fetch_failed, 6);
    server.answer = (response) => response.end(keySet(SIGNER));
    assert.equal((await answerOf(bench, [TOKEN])).status, 200);
  });

  test('are asked for again as often as is said', async (t) => {
    const server = await guardFor(t);
    let failures = 3;
    server.answer = (response) => {
      failures -= 1;
      response.writeHead(failures >= 0 ? 503 : 200).end(keySet(SIGNER));
    };
    const retry_policy = { num_retries: 3, retry_back_off: { base_interval: '0.001s' } };
    const bench = await benchFor(
      t,
      { providers: { a: remote({ retry_policy }) }, rules },
      { clusters: [clusterAt('keys', server.port)] },
    );
    assert.equal((await answerOf(bench, [TOKEN])).status, 200);
    assert.equal(server.told.length, 4);
  });

  test('are taken back when they are no longer published', async (t) => {
    const server = await guardFor(t);
    server.answer = (response) => response.end(keySet(SIGNER));
    const bench = await benchFor(
      t,
      { providers: { a: { ...remote({ cache_duration: '0.02s' }), jwt_cache_config: {} } }, rules },
      { clusters: [clusterAt('keys', server.port)] },
    );
    server.answer = (response) => response.end(keySet(server.told.length === 1 ? SIGNER : OTHER));
    let last = await answerOf(bench, [TOKEN]);
    assert.equal(last.status, 200);
    while (last.status === 200) last = await answerOf(bench, [TOKEN]);
    assert.equal(last.what, "Jwks doesn't have key to match kid or alg from Jwt");
  });

  test('are fetched before they are needed', async (t) => {
    const server = await guardFor(t);
    server.answer = (response) => response.end(keySet(SIGNER));
    const bench = await benchFor(
      t,
      { providers: { a: remote({ async_fetch: { fast_listener: true } }) }, rules },
      { clusters: [clusterAt('keys', server.port)] },
    );
    await eventually(() => server.told.length > 0, 'the keys are asked for');
    assert.equal((await answerOf(bench, [TOKEN])).status, 200);
  });

  test('of a server that hangs or is away are not waited for', async (t) => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as { port: number };
    const hangs = await benchFor(
      t,
      { providers: { a: remote({}, { timeout: '0.05s' }) }, rules },
      { clusters: [clusterAt('keys', port)] },
    );
    assert.equal((await answerOf(hangs, [TOKEN])).status, 401);
    const away = await benchFor(t, { providers: { a: remote() }, rules }, { clusters: [clusterAt('keys', 1)] });
    assert.equal((await answerOf(away, [TOKEN])).what, 'Jwks remote fetch is failed');
  });
});

describe('what is wrong with tokens', () => {
  const failed = '%DYNAMIC_METADATA(envoy.filters.http.jwt_authn:failed)%';
  const routes = [routeTo('/', {}, { response_headers_to_add: [{ header: { key: 'x-failed', value: failed } }] })];
  const rules = [{ match: { prefix: '/' }, requires: { allow_missing_or_failed: {} } }];
  const told = async (bench: Bench, lines: readonly string[]): Promise<unknown> => {
    const { status, head } = await answerOf(bench, lines);
    assert.equal(status, 200);
    const [text] = valuesOf(head, 'x-failed');
    return text === undefined ? null : JSON.parse(text);
  };

  test('is told in metadata, by its number and in words', async (t) => {
    const a = { issuer: 'me', ...local(SIGNER), failed_status_in_metadata: 'failed' };
    const bench = await benchFor(t, { providers: { a }, rules }, { routes });
    for (const [lines, code, message] of [
      [[], 1, 'Jwt is missing'],
      [[bearer(tokenOf(SIGNER, { ...LATER, nbf: now() + 120 }))], 2, 'Jwt not yet valid'],
      [[bearer(tokenOf(SIGNER, { ...LATER, exp: now() - 120 }))], 3, 'Jwt is expired'],
      [[bearer('a.b')], 4, 'Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections'],
      [[bearer(tokenOf(SIGNER, { ...LATER, iss: 'x' }))], 24, 'Jwt issuer is not configured'],
      [[bearer(tokenOf({ ...OTHER, kid: 'one' }, LATER))], 26, 'Jwt verification fails'],
    ] as const) {
      assert.deepEqual(await told(bench, lines), { code, message });
    }
    assert.equal(await told(bench, [bearer(tokenOf(SIGNER, LATER))]), null);
  });

  test('is told of the provider whose token it is', async (t) => {
    const a = { issuer: 'me', ...local(SIGNER) };
    const b = { issuer: 'you', ...local(OTHER), failed_status_in_metadata: 'failed' };
    const bench = await benchFor(t, { providers: { a, b }, rules }, { routes });
    const expired = { exp: now() - 120 };
    assert.equal(await told(bench, [bearer(tokenOf(SIGNER, { iss: 'me', ...expired }))]), null);
    const outcome = { code: 3, message: 'Jwt is expired' };
    assert.deepEqual(await told(bench, [bearer(tokenOf(OTHER, { iss: 'you', ...expired }))]), outcome);
    assert.equal(await told(bench, []), null);
  });
});

test('what filters before have said decides what requests need that no rule is for', async (t) => {
  const says = {
    on_request_headers: [
      {
        object_key: 'who',
        factory_key: 'envoy.string',
        skip_if_empty: true,
        format_string: { omit_empty_values: true, text_format_source: { inline_string: '%REQ(x-who)%' } },
      },
    ],
  };
  const bench = await benchFor(
    t,
    {
      providers: { one: { issuer: 'me', ...local(SIGNER) }, two: { issuer: 'you', ...local(OTHER) } },
      rules: [{ match: { prefix: '/ruled' }, requires: { provider_name: 'one' } }],
      filter_state_rules: { name: 'who', requires: { a: { provider_name: 'one' }, b: { provider_name: 'two' } } },
    },
    { before: [filterOf('set_filter_state.v3.Config', says)] },
  );
  const mine = bearer(tokenOf(SIGNER, LATER));
  const yours = bearer(tokenOf(OTHER, { ...LATER, iss: 'you' }));
  for (const [target, lines, status] of [
    ['/', [], 200],
    ['/', ['x-who: a'], 401],
    ['/', ['x-who: a', mine], 200],
    ['/', ['x-who: a', yours], 401],
    ['/', ['x-who: b', yours], 200],
    ['/', ['x-who: c'], 200],
    ['/ruled', ['x-who: b', mine], 200],
    ['/ruled', ['x-who: b', yours], 401],
  ] as const) {
    assert.equal((await answerOf(bench, lines, target)).status, status, `${target} ${lines}`);
  }
});

test('a state that leads to a provider that there is not is refused', async () => {
  await assert.rejects(
    protectedProxy({ filter_state_rules: { name: 'who', requires: { a: { provider_name: 'nobody' } } } }),
    /filter_state_rules\.requires\["a"\]\.provider_name: .*nobody/,
  );
});

test('an RSA key is no secret', async (t) => {
  const signer = rsaSigner('RS256');
  const rules = [{ match: { prefix: '/' }, requires: { provider_name: 'a' } }];
  const bench = await benchFor(t, { providers: { a: { issuer: 'me', ...local(signer) } }, rules });
  assert.equal((await answerOf(bench, [bearer(tokenOf(signer, LATER))])).status, 200);
  assert.equal((await answerOf(bench, [bearer(tokenOf({ ...signer, alg: 'none' }, LATER))])).status, 401);
});
