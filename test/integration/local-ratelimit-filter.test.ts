// The local_ratelimit filter through the whole proxy: which requests have tokens, and what becomes of the others. Buckets are
// filled once in an hour here, so that a test has all tokens that there are.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'local_ratelimit.v3.LocalRateLimit';
const ALL = { default_value: { numerator: 100 } };
const bucket = (max_tokens: number): JsonObject => ({ max_tokens, tokens_per_fill: 1, fill_interval: '3600s' });

function limit(prefix: string, fields: JsonObject, route: JsonObject = {}): JsonObject {
  const stat_prefix = prefix.slice(1);
  const settings = { stat_prefix, filter_enabled: ALL, filter_enforced: ALL, token_bucket: bucket(1), ...fields };
  return routeTo(prefix, { local_ratelimit: typed(TYPE, settings) }, route);
}

/** Buckets of one token for values of the key. */
const descriptors = (key: string, values: readonly string[]): JsonObject[] =>
  values.map((value) => ({ entries: [{ key, value }], token_bucket: bucket(1) }));

/** A route's limits. */
const described = (...actions: JsonObject[]): JsonObject => ({
  route: { cluster: 'web', rate_limits: [{ actions }] },
});

/** How one action names a request for which there is a bucket of one token, in a route that has ten for all. */
function byAction(prefix: string, key: string, value: string, action: JsonObject, fields: JsonObject = {}): JsonObject {
  const settings = { token_bucket: bucket(10), descriptors: descriptors(key, [value]) };
  return { ...limit(prefix, settings, described(action)), ...fields };
}

/** Says nothing without its header. */
const GOLD = { request_headers: { header_name: 'x-tier', descriptor_key: 'tier', skip_if_absent: true } };
const KEY = { key: 'facts', path: [{ key: 'tier' }] };
const ROUTES = [
  limit('/two', { token_bucket: bucket(2), enable_x_ratelimit_headers: 'DRAFT_VERSION_03' }),
  limit('/worded', {
    status: { code: 503 },
    response_headers_to_add: [{ header: { key: 'x-was', value: '%RESPONSE_CODE% %REQ(:PATH)%' } }],
  }),
  limit('/low', { status: { code: 201 } }),
  limit(
    '/shadow',
    {
      filter_enforced: { default_value: { numerator: 0 } },
      request_headers_to_add_when_not_enforced: [{ header: { key: 'x-beyond', value: 'yes' } }],
    },
    { request_headers_to_add: [{ header: { key: 'x-seen', value: '%REQ(X-BEYOND)%' } }] },
  ),
  limit('/off', { filter_enabled: { default_value: { numerator: 0 }, runtime_key: 'my.off' } }),
  limit('/runtime', { filter_enabled: { default_value: { numerator: 0 }, runtime_key: 'my.limit' } }),
  limit('/each', { local_rate_limit_per_downstream_connection: true }),
  limit('/exhausted', { rate_limited_as_resource_exhausted: true }),
  limit('/unavailable', {}),
  limit(
    '/first',
    { token_bucket: bucket(3), descriptors: descriptors('generic_key', ['a']) },
    described({ generic_key: { descriptor_value: 'a' } }),
  ),
  limit(
    '/only',
    {
      token_bucket: bucket(1),
      always_consume_default_token_bucket: false,
      descriptors: [{ entries: [{ key: 'generic_key', value: 'a' }], token_bucket: bucket(2) }],
    },
    described({ generic_key: { descriptor_value: 'a' } }),
  ),
  limit(
    '/several',
    {
      token_bucket: bucket(10),
      descriptors: [
        {
          entries: [
            { key: 'generic_key', value: 'x' },
            { key: 'header', value: 'b' },
          ],
          token_bucket: bucket(1),
        },
      ],
    },
    described(
      { generic_key: { descriptor_value: 'x' } },
      { request_headers: { header_name: 'X-H', descriptor_key: 'header' } },
    ),
  ),
  limit(
    '/skipping',
    { token_bucket: bucket(10), descriptors: descriptors('generic_key', ['x']) },
    described(
      { generic_key: { descriptor_value: 'x' } },
      { request_headers: { header_name: 'x-h', descriptor_key: 'header', skip_if_absent: true } },
    ),
  ),
  limit(
    '/hits',
    {
      token_bucket: bucket(10),
      descriptors: [{ entries: [{ key: 'generic_key', value: 'x' }], token_bucket: bucket(5) }],
    },
    {
      route: {
        cluster: 'web',
        rate_limits: [{ hits_addend: { number: 3 }, actions: [{ generic_key: { descriptor_value: 'x' } }] }],
      },
    },
  ),
  limit(
    '/staged',
    { token_bucket: bucket(10), stage: 2, descriptors: descriptors('generic_key', ['x', 'y']) },
    {
      route: {
        cluster: 'web',
        rate_limits: [
          { actions: [{ generic_key: { descriptor_value: 'x' } }] },
          { stage: 2, actions: [{ generic_key: { descriptor_value: 'y', descriptor_key: 'k' } }] },
        ],
      },
    },
  ),
  limit(
    '/own',
    {
      token_bucket: bucket(10),
      descriptors: descriptors('generic_key', ['own']),
      rate_limits: [{ actions: [{ generic_key: { descriptor_value: 'own' } }] }],
    },
    described({ generic_key: { descriptor_value: 'a' } }),
  ),
  // Limits of the virtual host describe by x-host.
  limit(
    '/open',
    {
      token_bucket: bucket(1000),
      max_dynamic_descriptors: 2,
      descriptors: [
        ...descriptors('who', ['']),
        { entries: [{ key: 'who', value: 'ann' }], token_bucket: bucket(2) },
        {
          entries: [
            { key: 'who', value: '' },
            { key: 'tier', value: 'gold' },
          ],
          token_bucket: bucket(1),
        },
      ],
    },
    described({ request_headers: { header_name: 'x-h', descriptor_key: 'who' } }, GOLD),
  ),
  limit(
    '/watched',
    { token_bucket: bucket(3), descriptors: [{ ...descriptors('generic_key', ['w'])[0]!, shadow_mode: true }] },
    described({ generic_key: { descriptor_value: 'w' } }),
  ),
  limit('/host-default', { token_bucket: bucket(10), descriptors: descriptors('host', ['h']) }),
  limit(
    '/host-replaced',
    { token_bucket: bucket(10), descriptors: descriptors('host', ['h']) },
    described({ remote_address: {} }),
  ),
  limit(
    '/host-included',
    { token_bucket: bucket(10), vh_rate_limits: 'INCLUDE', descriptors: descriptors('host', ['h']) },
    described({ remote_address: {} }),
  ),
  limit(
    '/host-asked',
    { token_bucket: bucket(10), descriptors: descriptors('host', ['h']) },
    { route: { cluster: 'web', include_vh_rate_limits: true, rate_limits: [{ actions: [{ remote_address: {} }] }] } },
  ),
  limit('/host-ignored', {
    token_bucket: bucket(10),
    vh_rate_limits: 'IGNORE',
    descriptors: descriptors('host', ['h']),
  }),
  limit(
    '/ending',
    { token_bucket: bucket(10), descriptors: descriptors('generic_key', ['x']) },
    described(
      { generic_key: { descriptor_value: 'x' } },
      { request_headers: { header_name: 'x-h', descriptor_key: 'header' } },
    ),
  ),
  limit(
    '/scarcest',
    {
      token_bucket: bucket(30),
      enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
      descriptors: [
        {
          entries: [{ key: 'generic_key', value: 'x' }],
          token_bucket: { max_tokens: 20, tokens_per_fill: 20, fill_interval: '3600s' },
        },
        ...descriptors('generic_key', ['y']),
      ],
    },
    {
      route: {
        cluster: 'web',
        rate_limits: ['x', 'y'].map((descriptor_value) => ({ actions: [{ generic_key: { descriptor_value } }] })),
      },
    },
  ),
  byAction('/by-source', 'source_cluster', 'edge', { source_cluster: {} }),
  byAction('/by-destination', 'destination_cluster', 'web', { destination_cluster: {} }),
  byAction('/by-address', 'remote_address', '203.0.113.7', { remote_address: {} }),
  byAction('/by-network', 'masked_remote_address', '203.0.112.0/23', {
    masked_remote_address: { v4_prefix_mask_len: 23 },
  }),
  byAction('/by-header', 'h', 'one', { request_headers: { header_name: 'x-h', descriptor_key: 'h' } }),
  byAction('/by-path', 'h', '/by-path?a=1', { request_headers: { header_name: ':path', descriptor_key: 'h' } }),
  byAction('/by-method', 'h', 'GET', { request_headers: { header_name: ':method', descriptor_key: 'h' } }),
  byAction('/by-authority', 'h', 'a', { request_headers: { header_name: ':authority', descriptor_key: 'h' } }),
  byAction('/by-query', 'q', '1', { query_parameters: { query_parameter_name: 'a', descriptor_key: 'q' } }),
  byAction('/by-value', 'header_match', 'big', {
    header_value_match: { descriptor_value: 'big', headers: [{ name: 'x-h', string_match: { prefix: 'o' } }] },
  }),
  byAction('/by-no-value', 'v', 'none', {
    header_value_match: {
      descriptor_key: 'v',
      descriptor_value: 'none',
      expect_match: false,
      headers: [{ name: 'x-h' }],
    },
  }),
  byAction('/by-parameter', 'query_match', 'deep', {
    query_parameter_value_match: {
      descriptor_value: 'deep',
      query_parameters: [{ name: 'a', string_match: { exact: '1' } }],
    },
  }),
  byAction(
    '/by-metadata',
    'tier',
    'gold',
    { metadata: { descriptor_key: 'tier', metadata_key: KEY, source: 'ROUTE_ENTRY' } },
    { metadata: { filter_metadata: { facts: { tier: 'gold' } } } },
  ),
  byAction('/by-default', 'tier', 'none', {
    dynamic_metadata: { descriptor_key: 'tier', metadata_key: KEY, default_value: 'none' },
  }),
  routeTo('/'),
];

describe('the local_ratelimit filter', () => {
  let upstream: WireUpstream & { heads: string[] };
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;
  let port = 0;

  before(async () => {
    upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    const listener = filteredListener([filterOf(TYPE, { stat_prefix: 'own' })], ROUTES, {
      host: { rate_limits: [{ actions: [{ request_headers: { header_name: 'x-host', descriptor_key: 'host' } }] }] },
      manager: {
        use_remote_address: true,
        xff_num_trusted_hops: 1,
        local_reply_config: {
          body_format: { text_format: '%LOCAL_REPLY_BODY%|%RESPONSE_FLAGS%|%RESPONSE_CODE_DETAILS%' },
        },
      },
    });
    const fields = {
      node: { cluster: 'edge' },
      stats_flush_on_admin: true,
      layered_runtime: { layers: [{ name: 'own', static_layer: { my: { limit: 100 } } }] },
    };
    proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', upstream.port)], fields));
    port = proxy.listeners.get('main')!.port;
    client = new WireClient(port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    await upstream?.close();
  });

  async function ask(path: string, fields: Record<string, string> = {}, by = client) {
    const lines = Object.entries({ host: 'a', ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
    return await by.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`).response();
  }

  const statuses = async (path: string, times: number, fields: Record<string, string> = {}): Promise<number[]> => {
    const all: number[] = [];
    for (let time = 0; time < times; time += 1) all.push((await ask(path, fields)).status);
    return all;
  };
  const counts = (prefix: string): (number | undefined)[] =>
    ['enabled', 'ok', 'rate_limited', 'enforced'].map((name) =>
      proxy.stats.value(`${prefix}.http_local_rate_limit.${name}`),
    );
  const value = (head: string, name: string): string | undefined =>
    new RegExp(`^${name}: (.*)\\r$`, 'im').exec(head)?.[1];

  it('lets as many through as there are tokens, and says so', async () => {
    const tokens: unknown[] = [];
    for (let time = 0; time < 3; time += 1) {
      const { status, head } = await ask('/two');
      tokens.push([status, value(head, 'x-ratelimit-limit'), value(head, 'x-ratelimit-remaining')]);
      const resetS = Number(value(head, 'x-ratelimit-reset'));
      assert.ok(resetS > 3500 && resetS <= 3600, String(resetS));
    }
    assert.deepEqual(tokens, [
      [200, '2', '1'],
      [200, '2', '0'],
      [429, '2', '0'],
    ]);
    assert.deepEqual(counts('two'), [3, 2, 1, 1]);
    assert.deepEqual(counts('own'), [0, 0, 0, 0]);
  });

  it('answers as it is told to', async () => {
    const [first, second] = [await ask('/worded'), await ask('/worded')];
    assert.deepEqual([first.status, value(first.head, 'x-was')], [200, undefined]);
    assert.equal(value(first.head, 'x-proxy-ratelimited'), undefined);
    assert.deepEqual([second.status, value(second.head, 'x-was')], [503, '503 /worded']);
    assert.equal(value(second.head, 'x-proxy-ratelimited'), 'true');
    assert.equal(second.body, 'local_rate_limited|RL|local_rate_limited');
    assert.equal(value(second.head, 'x-ratelimit-limit'), undefined);
    assert.deepEqual(await statuses('/low', 2), [200, 429]);
  });

  it('only counts and marks what it is not to enforce', async () => {
    assert.deepEqual(await statuses('/shadow', 2), [200, 200]);
    const marks = upstream.heads.slice(-2).map((head) => [value(head, 'x-beyond'), value(head, 'x-seen')]);
    assert.deepEqual(marks, [
      [undefined, undefined],
      ['yes', 'yes'],
    ]);
    assert.deepEqual(counts('shadow'), [2, 1, 1, 0]);
  });

  it('leaves alone what no share falls on, by configuration or runtime', async () => {
    assert.deepEqual(await statuses('/off', 2), [200, 200]);
    assert.deepEqual(counts('off'), [0, 0, 0, 0]);
    assert.deepEqual(await statuses('/runtime', 2), [200, 429]);
    assert.deepEqual(await statuses('/', 2), [200, 200]);
  });

  it('gives each connection tokens of its own where it is told to', async () => {
    const other = new WireClient(port);
    assert.deepEqual(await statuses('/each', 2), [200, 429]);
    assert.equal((await ask('/each', {}, other)).status, 200);
    assert.equal((await ask('/each', {}, other)).status, 429);
    other.close();
  });

  it('tells gRPC which way it is short', async () => {
    const grpc = { 'content-type': 'application/grpc' };
    const statusOf = async (path: string): Promise<string | undefined> => {
      await ask(path, grpc);
      return value((await ask(path, grpc)).head, 'grpc-status');
    };
    assert.deepEqual([await statusOf('/exhausted'), await statusOf('/unavailable')], ['8', '14']);
  });

  it('has buckets of their own for some requests, beside that of all', async () => {
    assert.deepEqual(await statuses('/first', 2), [200, 429]);
    assert.deepEqual(await statuses('/only', 3), [200, 200, 429]);
    const by = async (header: string): Promise<number> => (await ask('/several', { 'x-h': header })).status;
    assert.deepEqual([await by('b'), await by('c'), await by('b'), await by('c')], [200, 200, 429, 200]);
    assert.deepEqual(await statuses('/several', 2), [200, 200], 'without the header there is no descriptor');
    assert.deepEqual(await statuses('/skipping', 2), [200, 429]);
    assert.deepEqual(await statuses('/skipping', 2, { 'x-h': '1' }), [200, 200]);
    assert.deepEqual(await statuses('/ending', 2), [200, 200]);
    const told = [await ask('/scarcest'), await ask('/scarcest')].map(({ status, head }) => [
      status,
      value(head, 'x-ratelimit-limit'),
    ]);
    assert.deepEqual(told, [
      [200, '1'],
      [429, '1'],
    ]);
    assert.deepEqual(await statuses('/hits', 2), [200, 429]);
    assert.deepEqual(await statuses('/staged', 3), [200, 200, 200]);
    assert.deepEqual(await statuses('/own', 2), [200, 429]);
  });

  it('has a bucket for each value that a descriptor leaves open, as many as may be', async () => {
    const who = (name: string, more: Record<string, string> = {}) => statuses('/open', 2, { 'x-h': name, ...more });
    assert.deepEqual(await who('ann'), [200, 200], 'who is named has a bucket of her own');
    assert.deepEqual(await who('bob'), [200, 429]);
    assert.deepEqual(await who('eve'), [200, 429]);
    assert.deepEqual(await who('bob'), [429, 429]);
    assert.deepEqual(await who('joe'), [200, 429], 'in the place of eve, who has not come for longest');
    assert.deepEqual(await who('bob'), [429, 429]);
    assert.deepEqual(await who('eve'), [200, 429]);
    assert.deepEqual(await who('bob', { 'x-tier': 'gold' }), [200, 429]);
    assert.deepEqual(await who('bob', { 'x-tier': 'iron' }), [200, 200], 'no descriptor is like this');
  });

  it('only counts what is beyond a descriptor in shadow mode', async () => {
    assert.deepEqual(await statuses('/watched', 4), [200, 200, 200, 429]);
    const counters = await proxy.stats.counters('watched.http_local_rate_limit.');
    const of = (name: string) => counters[`watched.http_local_rate_limit.${name}`];
    assert.deepEqual([of('enabled'), of('ok'), of('rate_limited'), of('enforced')], [4, 1, 3, 1]);
  });

  it('reads limits of the virtual host where it should', async () => {
    const host = { 'x-host': 'h' };
    assert.deepEqual(await statuses('/host-default', 2, host), [200, 429]);
    assert.deepEqual(await statuses('/host-replaced', 2, host), [200, 200]);
    assert.deepEqual(await statuses('/host-included', 2, host), [200, 429]);
    assert.deepEqual(await statuses('/host-asked', 2, host), [200, 429]);
    assert.deepEqual(await statuses('/host-ignored', 2, host), [200, 200]);
  });

  it('names requests in every way', async () => {
    const cases: [path: string, fields: Record<string, string>, other: [string, Record<string, string>] | null][] = [
      ['/by-source', {}, null],
      ['/by-destination', {}, null],
      ['/by-address', { 'x-forwarded-for': '203.0.113.7' }, ['/by-address', { 'x-forwarded-for': '203.0.113.8' }]],
      ['/by-network', { 'x-forwarded-for': '203.0.113.9' }, ['/by-network', { 'x-forwarded-for': '203.0.114.7' }]],
      ['/by-header', { 'x-h': 'one' }, ['/by-header', { 'x-h': 'two' }]],
      ['/by-path?a=1', {}, ['/by-path?a=2', {}]],
      ['/by-method', {}, null],
      ['/by-authority', {}, ['/by-authority', { host: 'b' }]],
      ['/by-query?a=1', {}, ['/by-query?a=2', {}]],
      ['/by-value', { 'x-h': 'one' }, ['/by-value', { 'x-h': 'two' }]],
      ['/by-no-value', {}, ['/by-no-value', { 'x-h': 'two' }]],
      ['/by-parameter?b&a=1', {}, ['/by-parameter?b', {}]],
      ['/by-metadata', {}, null],
      ['/by-default', {}, null],
    ];
    for (const [path, fields, other] of cases) {
      assert.deepEqual(await statuses(path, 2, fields), [200, 429], path);
      if (other !== null) assert.deepEqual(await statuses(other[0], 1, other[1]), [200], other[0]);
    }
  });

  it('shares its tokens among all workers, and keeps them while others are configured', async (t) => {
    const bootstrap = (tokens: number, others: readonly JsonObject[] = []) =>
      bootstrapOf(
        [
          filteredListener(
            [filterOf(TYPE, { stat_prefix: 'own' })],
            [limit('/many', { token_bucket: bucket(tokens) })],
          ),
          ...others,
        ],
        [clusterAt('web', upstream.port)],
      );
    const several = await createProxy(bootstrap(40), { concurrency: 3 });
    t.after(() => several.close());
    const load = async (): Promise<number> => {
      const clients = Array.from({ length: 12 }, () => new WireClient(several.listeners.get('main')!.port));
      const each = clients.map(async (one) => {
        let passed = 0;
        for (let time = 0; time < 5; time += 1) if ((await ask('/many', {}, one)).status === 200) passed += 1;
        return passed;
      });
      const passed = await Promise.all(each);
      for (const one of clients) one.close();
      return passed.reduce((sum, count) => sum + count, 0);
    };
    assert.equal(await load(), 40);
    await several.applyBootstrap(
      bootstrap(40, [filteredListener([], [routeTo('/')], { listener: { name: 'second' } })]),
    );
    assert.equal(await load(), 0, 'the same listener has the same tokens');
    await several.applyBootstrap(bootstrap(41));
    assert.equal(await load(), 41, 'another one has its own');
  });

  it('does the same over HTTP/2', async (t) => {
    const http2 = new Http2Client(t, port);
    assert.equal((await http2.get('/two')).status, 429);
  });
});
