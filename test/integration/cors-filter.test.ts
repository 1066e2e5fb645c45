// Cross-origin requests against the whole proxy: what browsers are told, by whose policy, and what is counted.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type JsonObject, ROUTER } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy, httpListener } from '../support/embedded.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters.http.cors.v3';
const FILTER_CONFIG = 'type.googleapis.com/envoy.config.route.v3.FilterConfig';
const ALLOWED = 'https://shop.example';
const STRANGER = 'https://evil.example';
const NONE = { default_value: { numerator: 0 } };
const ALL = { default_value: { numerator: 100 } };

const FULL = policy({
  allow_origin_string_match: [{ exact: ALLOWED }, { safe_regex: { regex: 'https://[a-z]+\\.shop\\.example' } }],
  allow_methods: 'GET, PUT',
  allow_headers: 'x-cart',
  expose_headers: 'x-total',
  max_age: '600',
  allow_credentials: true,
  allow_private_network_access: true,
});

function policy(fields: JsonObject): JsonObject {
  return { '@type': `${TYPES}.CorsPolicy`, ...fields };
}

function route(prefix: string, cors?: JsonObject, older?: JsonObject): JsonObject {
  const typed_per_filter_config = cors === undefined ? {} : { 'envoy.filters.http.cors': cors };
  return { match: { prefix }, route: { cluster: 'web', ...(older && { cors: older }) }, typed_per_filter_config };
}

function listenerOf(routes: readonly JsonObject[]): JsonObject {
  const listener = httpListener('main', 'web') as { filter_chains: { filters: { typed_config: JsonObject }[] }[] };
  const [filter] = listener.filter_chains[0]!.filters;
  const cors = { name: 'envoy.filters.http.cors', typed_config: { '@type': `${TYPES}.Cors` } };
  const ofHost = policy({ allow_origin_string_match: [{ exact: '*' }], expose_headers: 'x-of-host' });
  const hosts = [
    { name: 'plain', domains: ['plain'], routes },
    { name: 'levels', domains: ['levels'], routes, typed_per_filter_config: { 'envoy.filters.http.cors': ofHost } },
  ];
  filter!.typed_config = {
    ...filter!.typed_config,
    http_filters: [cors, ROUTER],
    route_config: { virtual_hosts: hosts },
  };
  return listener as unknown as JsonObject;
}

const ROUTES = [
  route('/full', FULL),
  route('/strict', policy({ ...FULL, forward_not_matching_preflights: false })),
  route('/shadow', policy({ ...FULL, filter_enabled: NONE, shadow_enabled: ALL })),
  route('/asleep', policy({ ...FULL, filter_enabled: NONE })),
  route('/narrow', policy({ allow_methods: 'PATCH' })),
  route('/off', { '@type': FILTER_CONFIG, disabled: true }),
  route('/older', undefined, { allow_origin_string_match: [{ prefix: 'https://shop' }], allow_methods: 'GET' }),
  route('/'),
];

describe('the cors filter', () => {
  let upstream: WireUpstream;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;

  before(async () => {
    const own = 'access-control-allow-origin: *\r\nx-upstream: yes\r\n';
    upstream = await WireUpstream.answering(`HTTP/1.1 204 No Content\r\n${own}\r\n`);
    const fields = { stats_flush_on_admin: true };
    proxy = await createProxy(bootstrapOf([listenerOf(ROUTES)], [clusterAt('web', upstream.port)], fields));
    client = new WireClient(proxy.listeners.get('main')!.port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    await upstream?.close();
  });

  /** The answer's status and its fields for browsers, and whether the upstream gave it. */
  async function ask(path: string, fields: Record<string, string>, method = 'GET', host = 'plain') {
    const lines = Object.entries({ host, ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
    const { status, head } = await client.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`).response();
    const told = [...head.matchAll(/^access-control-([^:]+): (.*)\r$/gm)].map(([, name, value]) => [name, value]);
    return { status, isForwarded: head.includes('x-upstream: yes'), told: Object.fromEntries(told) };
  }

  const preflight = (path: string, origin: string, fields: Record<string, string> = {}, host = 'plain') =>
    ask(path, { origin, 'access-control-request-method': 'PUT', ...fields }, 'OPTIONS', host);

  const counted = () => ['valid', 'invalid'].map((kind) => proxy.stats.value(`http.main.cors.origin_${kind}`) ?? 0);

  it('answers preflights of origins that are allowed', async () => {
    const told = {
      'allow-origin': ALLOWED,
      'allow-credentials': 'true',
      'allow-methods': 'GET, PUT',
      'allow-headers': 'x-cart',
      'max-age': '600',
    };
    assert.deepEqual(await preflight('/full', ALLOWED), { status: 200, isForwarded: false, told });
    const network = { 'access-control-request-private-network': 'true' };
    const { told: withNetwork } = await preflight('/full', 'https://cart.shop.example', network);
    assert.deepEqual(withNetwork, {
      ...told,
      'allow-origin': 'https://cart.shop.example',
      'allow-private-network': 'true',
    });
  });

  it('says in the place of the upstream who may read its response', async () => {
    const { status, isForwarded, told } = await ask('/full', { origin: ALLOWED });
    assert.deepEqual({ status, isForwarded }, { status: 204, isForwarded: true });
    assert.deepEqual(told, { 'allow-origin': ALLOWED, 'allow-credentials': 'true', 'expose-headers': 'x-total' });
  });

  it('leaves alone what no policy, or no origin, is there for', async () => {
    const untouched = { status: 204, isForwarded: true, told: { 'allow-origin': '*' } };
    assert.deepEqual(await ask('/full', {}), untouched);
    assert.deepEqual(await ask('/full', { origin: '' }), untouched);
    assert.deepEqual(await ask('/', { origin: ALLOWED }), untouched);
    assert.deepEqual(await preflight('/asleep', ALLOWED), untouched);
    assert.deepEqual(await preflight('/off', ALLOWED, {}, 'levels'), untouched);
    // OPTIONS that ask for no method are no preflights.
    assert.equal((await ask('/full', { origin: ALLOWED }, 'OPTIONS')).isForwarded, true);
  });

  it('lets strangers through without a word, but for preflights that it keeps', async () => {
    const untouched = { status: 204, isForwarded: true, told: { 'allow-origin': '*' } };
    assert.deepEqual(await ask('/full', { origin: STRANGER }), untouched);
    assert.deepEqual(await preflight('/full', STRANGER), untouched);
    assert.deepEqual(await preflight('/strict', STRANGER), { status: 200, isForwarded: false, told: {} });
    assert.deepEqual(await ask('/strict', { origin: STRANGER }), untouched);
  });

  it('takes from the level around what the nearer one does not say', async () => {
    const { told } = await preflight('/narrow', STRANGER, {}, 'levels');
    assert.deepEqual(told, { 'allow-origin': STRANGER, 'allow-methods': 'PATCH' });
    const { told: ofHost } = await ask('/', { origin: STRANGER }, 'GET', 'levels');
    assert.deepEqual(ofHost, { 'allow-origin': STRANGER, 'expose-headers': 'x-of-host' });
    assert.equal((await preflight('/narrow', STRANGER)).isForwarded, true, 'nobody says which origins are allowed');
  });

  it('reads the field that routes had before', async () => {
    assert.deepEqual((await preflight('/older', ALLOWED)).told, { 'allow-origin': ALLOWED, 'allow-methods': 'GET' });
  });

  it('counts what it judges, also where it only looks', async () => {
    const [valid, invalid] = counted() as [number, number];
    await preflight('/full', ALLOWED);
    await ask('/full', { origin: STRANGER });
    assert.equal((await preflight('/shadow', ALLOWED)).isForwarded, true);
    await ask('/shadow', { origin: STRANGER });
    await ask('/asleep', { origin: ALLOWED });
    assert.deepEqual(counted(), [valid + 2, invalid + 2]);
  });
});
