// The ratelimit filter through the whole proxy, with a service of gRPC: what it is told, what its answers do, and what becomes
// of requests when it fails.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, before, beforeEach, describe, it, type TestContext, test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { type Bench, bytesOf, close, counts, HTTP2, OK, REPLIES, request, valuesOf } from '../support/guarded-proxy.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { RateLimitService } from '../support/rate-limit-service.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'ratelimit.v3.RateLimit';
const NONE = { default_value: { numerator: 0 } };

const generic = (descriptor_value: string): JsonObject => ({ generic_key: { descriptor_value } });
const limits = (...values: readonly string[]): JsonObject[] => values.map((value) => ({ actions: [generic(value)] }));
const perRoute = (fields: JsonObject): JsonObject => typed('ratelimit.v3.RateLimitPerRoute', fields);

/** A route whose requests are called as its limits say. */
function limited(
  prefix: string,
  rate_limits: JsonObject[],
  { said, action = {}, more = {} }: { said?: JsonObject; action?: JsonObject; more?: JsonObject } = {},
): JsonObject {
  const fields = { route: { cluster: 'web', rate_limits, ...action }, ...more };
  return routeTo(prefix, said === undefined ? {} : { ratelimit: perRoute(said) }, fields);
}

async function limitedProxy(
  port: number,
  fields: JsonObject,
  {
    routes = [limited('/', limits('a'))],
    host = {},
    manager = {},
    filters = [],
    guard = HTTP2,
    bootstrap = {},
  }: {
    routes?: readonly JsonObject[];
    host?: JsonObject;
    manager?: JsonObject;
    filters?: readonly JsonObject[];
    guard?: JsonObject;
    bootstrap?: JsonObject;
  } = {},
): Promise<Bench> {
  const upstream = await WireUpstream.answering(OK);
  const settings = {
    domain: 'shop',
    timeout: '30s',
    rate_limit_service: {
      grpc_service: { envoy_grpc: { cluster_name: 'limits' }, initial_metadata: [{ key: 'X-Token', value: 't' }] },
      transport_api_version: 'V3',
    },
    ...fields,
  };
  const listener = filteredListener([...filters, filterOf(TYPE, settings)], routes, {
    manager: { ...REPLIES, use_remote_address: true, ...manager },
    host,
  });
  const clusters = [clusterAt('web', upstream.port), clusterAt('limits', port, guard)];
  const proxy = await createProxy(
    bootstrapOf([listener], clusters, { stats_flush_on_admin: true, node: { cluster: 'edge' }, ...bootstrap }),
  );
  return { proxy, client: new WireClient(proxy.listeners.get('main')!.port), upstream };
}

async function benchFor(t: TestContext, ...args: Parameters<typeof limitedProxy>): Promise<Bench> {
  const bench = await limitedProxy(...args);
  t.after(() => close(bench));
  return bench;
}

async function serviceFor(t: TestContext): Promise<RateLimitService> {
  const service = await RateLimitService.start();
  t.after(() => service[Symbol.asyncDispose]());
  return service;
}

/** Lists of entries that the service was asked about last, as `key=value`. */
function namesOf({ last }: RateLimitService): string[] {
  const descriptors = (last.descriptors ?? []) as { entries: { key: string; value: string }[] }[];
  return descriptors.map(({ entries }) => entries.map(({ key, value }) => `${key}=${value}`).join(' '));
}

const SCOPE = 'cluster.web.ratelimit.';

describe('the ratelimit filter', () => {
  const ROUTES = [
    limited('/several', [
      { actions: [generic('x'), { request_headers: { header_name: 'x-user', descriptor_key: 'user' } }] },
      {
        actions: [{ remote_address: {} }, { destination_cluster: {} }, { source_cluster: {} }],
        disable_key: 'addresses',
      },
    ]),
    limited('/hits', [
      { actions: [generic('ten')], hits_addend: { number: 10 } },
      { actions: [generic('none')], hits_addend: { number: 0 } },
      { actions: [generic('said')], hits_addend: { format: '%REQ(x-cost)%' } },
      {
        actions: [generic('own')],
        limit: { dynamic_metadata: { metadata_key: { key: 'limits', path: [{ key: 'tier' }] } } },
      },
    ]),
    limited('/staged', [{ stage: 1, actions: [generic('one')] }, { actions: [generic('zero')] }]),
    limited('/host', []),
    limited('/own', limits('route')),
    limited('/both', limits('route'), { action: { include_vh_rate_limits: true } }),
    limited('/included', limits('route'), { said: { vh_rate_limits: 'INCLUDE' } }),
    limited('/ignored', [], { said: { vh_rate_limits: 'IGNORE' } }),
    limited('/overridden', limits('route'), {
      said: { vh_rate_limits: 'IGNORE', override_option: 'INCLUDE_POLICY' },
    }),
    limited('/said', limits('route'), { said: { rate_limits: limits('level'), domain: 'other' } }),
    limited('/formatted', [
      {
        actions: [
          { generic_key: { descriptor_key: 'tier', descriptor_value: '%REQ(x-tier)%', default_value: 'none' } },
        ],
      },
      { actions: [generic('100%% of %REQ(x-tier)%%REQ(:method)%')] },
      { actions: [generic('%REQ(x-absent)%')] },
      {
        actions: [
          {
            header_value_match: {
              descriptor_value: '%REQ(x-tier)%',
              default_value: 'unnamed',
              headers: [{ name: 'x-kind', present_match: true }],
            },
          },
        ],
      },
      {
        actions: [
          {
            query_parameter_value_match: {
              descriptor_value: '%REQ(x-tier)%',
              query_parameters: [{ name: 'q', present_match: true }],
            },
          },
        ],
      },
    ]),
    limited('/nothing', [{ actions: [{ request_headers: { header_name: 'x-absent', descriptor_key: 'a' } }] }]),
    routeTo('/direct', {}, { direct_response: { status: 200, body: { inline_string: 'here' } } }),
    limited('/off', limits('route'), { more: { typed_per_filter_config: offFor() } }),
    limited('/meta', limits('route'), {
      more: {
        response_headers_to_add: [
          { header: { key: 'x-meta', value: '%DYNAMIC_METADATA(envoy.filters.http.ratelimit:left)%' } },
        ],
      },
    }),
  ].map((route) => ('direct_response' in route ? withoutAction(route) : route));
  let service: RateLimitService;
  let bench: Bench;

  function offFor(): JsonObject {
    const config = { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true };
    return { 'envoy.filters.http.ratelimit': config };
  }

  function withoutAction({ route: _, ...rest }: JsonObject): JsonObject {
    return rest;
  }

  const tier = { requests_per_unit: 7, unit: 'HOUR' };
  before(async () => {
    service = await RateLimitService.start();
    bench = await limitedProxy(
      service.port,
      { response_headers_to_add: [{ header: { key: 'x-was', value: '%RESPONSE_CODE% %REQ(:PATH)%' } }] },
      {
        routes: ROUTES,
        host: { rate_limits: limits('host') },
        filters: [
          filterOf('set_metadata.v3.Config', { metadata: [{ metadata_namespace: 'limits', value: { tier } }] }),
        ],
      },
    );
  });

  beforeEach(() => {
    service.answer = { overall_code: 1 };
  });

  after(async () => {
    if (bench !== undefined) await close(bench);
    await service?.[Symbol.asyncDispose]();
  });

  const get = (target: string, lines: readonly string[] = []) =>
    bench.client.write(bytesOf(request(lines, target))).response();

  it('tells the service what a request is called', async () => {
    assert.equal((await get('/several', ['x-user: j\xc3\xb6rg'])).status, 200);
    const { path, metadata } = service.asked.at(-1)!;
    assert.deepEqual(
      [path, metadata['x-token'], service.last.domain],
      ['/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit', 't', 'shop'],
    );
    assert.deepEqual(namesOf(service), [
      'generic_key=x user=jörg',
      'remote_address=127.0.0.1 destination_cluster=web source_cluster=edge',
    ]);
    assert.equal((await get('/several', ['x-user: \xff'])).status, 200);
    assert.equal(namesOf(service)[0], 'generic_key=x user=!');
  });

  it('fills in what a descriptor says, or takes what stands in for nothing', async () => {
    assert.equal((await get('/formatted?q=1', ['x-tier: gold', 'x-kind: a'])).status, 200);
    assert.deepEqual(namesOf(service), [
      'tier=gold',
      'generic_key=100% of goldGET',
      'header_match=gold',
      'query_match=gold',
    ]);
    assert.equal((await get('/formatted?q=1', ['x-kind: a'])).status, 200);
    assert.deepEqual(namesOf(service), ['tier=none', 'generic_key=100% of GET', 'header_match=unnamed']);
  });

  it('tells it for how much a request counts, and which limit it has', async () => {
    assert.equal((await get('/hits', ['x-cost: 3'])).status, 200);
    assert.deepEqual(JSON.parse(JSON.stringify(service.last.descriptors)), [
      { entries: [{ key: 'generic_key', value: 'ten' }], hits_addend: { value: 10 } },
      { entries: [{ key: 'generic_key', value: 'none' }], hits_addend: {} },
      { entries: [{ key: 'generic_key', value: 'said' }], hits_addend: { value: 3 } },
      { entries: [{ key: 'generic_key', value: 'own' }], limit: { requests_per_unit: 7, unit: 3 } },
    ]);
    for (const cost of ['', 'x-cost: ', 'x-cost: much', 'x-cost: -1', 'x-cost: 1000000001', 'x-cost: NaN']) {
      assert.equal((await get('/hits', cost === '' ? [] : [cost])).status, 200);
      assert.deepEqual(namesOf(service), ['generic_key=ten', 'generic_key=none', 'generic_key=own'], cost);
    }
  });

  for (const [target, names] of [
    ['/staged', ['zero']],
    ['/host', ['host']],
    ['/own', ['route']],
    ['/both', ['route', 'host']],
    ['/included', ['route', 'host']],
    ['/overridden', ['route', 'host']],
    ['/said', ['level']],
  ] as const) {
    it(`asks about the limits of ${target}`, async () => {
      assert.equal((await get(target)).status, 200);
      assert.deepEqual(
        namesOf(service),
        names.map((name) => `generic_key=${name}`),
      );
      assert.equal(service.last.domain, target === '/said' ? 'other' : 'shop');
    });
  }

  for (const target of ['/ignored', '/nothing', '/direct', '/off']) {
    it(`asks nothing about ${target}`, async () => {
      const asked = service.asked.length;
      assert.equal((await get(target)).status, 200);
      assert.equal(service.asked.length, asked);
    });
  }

  const header = (key: string, value: string): object => ({ key, value });

  it('lets a request go on with what the service adds', async () => {
    service.answer = {
      overall_code: 1,
      request_headers_to_add: [header('X-Left', '3'), header('x-user', 'b'), header('x-evil', 'a\r\nx-injected: 1')],
      response_headers_to_add: [header('X-Seen', '1'), header('content-length', '1'), header('x-from', 'limits')],
      raw_body: Buffer.from('never told'),
      dynamic_metadata: { fields: { left: { number_value: 3 } } },
    };
    const { status, head, body } = await get('/meta', ['x-user: a']);
    assert.deepEqual([status, body], [200, 'ok']);
    const sent = bench.upstream.heads.at(-1)!;
    assert.deepEqual([valuesOf(sent, 'x-left'), valuesOf(sent, 'x-user')], [['3'], ['a', 'b']]);
    assert.deepEqual([valuesOf(sent, 'x-evil'), valuesOf(sent, 'x-injected')], [[], []]);
    assert.deepEqual(
      [valuesOf(head, 'x-seen'), valuesOf(head, 'x-from'), valuesOf(head, 'content-length')],
      [['1'], ['web', 'limits'], ['2']],
    );
    assert.deepEqual(valuesOf(head, 'x-meta'), ['3']);
    assert.deepEqual([valuesOf(head, 'x-was'), valuesOf(head, 'x-proxy-ratelimited')], [[], []]);
  });

  it('refuses what goes beyond a limit', async () => {
    service.answer = { overall_code: 2 };
    const before = bench.upstream.heads.length;
    const { status, head, body } = await get('/own');
    assert.deepEqual([status, body], [429, '|RL|request_rate_limited']);
    assert.deepEqual(
      [valuesOf(head, 'x-proxy-ratelimited'), valuesOf(head, 'x-was'), valuesOf(head, 'x-ratelimit-limit')],
      [['true'], ['429 /own'], []],
    );
    service.answer = {
      overall_code: 2,
      response_headers_to_add: [header('content-type', 'application/json'), header('retry-after', '3')],
      raw_body: Buffer.from('{"wait":3}'),
    };
    const worded = await get('/own');
    assert.deepEqual([worded.status, worded.body], [429, '{"wait":3}|RL|request_rate_limited']);
    assert.deepEqual(
      [valuesOf(worded.head, 'content-type'), valuesOf(worded.head, 'retry-after')],
      [['application/json'], ['3']],
    );
    assert.equal(bench.upstream.heads.length, before);
  });

  it('keeps a body back until the service has answered', async () => {
    service.answer = 'silence';
    const asked = service.asked.length;
    const client = new WireClient(bench.proxy.listeners.get('main')!.port);
    client.write(request([], '/own', 'hello', 'POST'));
    await eventually(() => service.asked.length > asked, 'the service is asked');
    client.close();
    await eventually(() => service.over === service.asked.length, 'the call is ended');
    assert.equal((await bench.client.write(request([], '/ignored', 'hello', 'POST')).response()).status, 200);
    service.answer = { overall_code: 1 };
    assert.equal((await bench.client.write(request([], '/own', 'hello', 'POST')).response()).status, 200);
  });
});

describe('a rate limit', () => {
  test('counts in the scope of the cluster, behind its own prefix', async (t) => {
    const service = await serviceFor(t);
    const { client, proxy } = await benchFor(t, service.port, { stat_prefix: 'all' });
    for (const answer of [{ overall_code: 1 }, { overall_code: 0 }, { overall_code: 2 }, { fails: 14 }]) {
      service.answer = answer;
      await client.write(request()).response();
    }
    await untilEqual(1, async () => (await counts(proxy, `${SCOPE}all.`)).failure_mode_allowed, 'what goes on');
    assert.deepEqual(await counts(proxy, `${SCOPE}all.`), { ok: 2, over_limit: 1, error: 1, failure_mode_allowed: 1 });
    const { upstream_rq_429, upstream_rq_4xx, upstream_rq_completed } = await counts(proxy, 'cluster.web.');
    assert.deepEqual([upstream_rq_429, upstream_rq_4xx, upstream_rq_completed], [1, 1, 4]);
  });

  test('can be told in headers, of the limit that is nearest', async (t) => {
    const service = await serviceFor(t);
    const off = (value: string, x_ratelimit_option: string): JsonObject => ({
      actions: [generic(value)],
      x_ratelimit_option,
    });
    const routes = [limited('/silent', [off('a', 'OFF'), ...limits('b')]), limited('/', limits('a', 'b'))];
    const { client } = await benchFor(t, service.port, { enable_x_ratelimit_headers: 'DRAFT_VERSION_03' }, { routes });
    const status = (requests_per_unit: number, unit: number, name: string, left: number, seconds: number): object => ({
      code: 1,
      current_limit: { requests_per_unit, unit, name },
      limit_remaining: left,
      duration_until_reset: { seconds },
    });
    const told = async (target: string, statuses: object[], overall_code = 1): Promise<string[]> => {
      service.answer = { overall_code, statuses };
      const { head } = await client.write(request([], target)).response();
      return ['limit', 'remaining', 'reset'].flatMap((name) => valuesOf(head, `x-ratelimit-${name}`));
    };
    const both = [status(10, 2, 'fi"rst', 5, 30), status(4, 3, '', 2, 60)];
    assert.deepEqual(await told('/', both), ['4, 10;w=60;name="fi\\"rst", 4;w=3600', '2', '60']);
    assert.deepEqual(await told('/', both, 2), ['4, 10;w=60;name="fi\\"rst", 4;w=3600', '2', '60']);
    assert.deepEqual(await told('/', [both[0]!, { code: 1 }]), ['10, 10;w=60;name="fi\\"rst"', '5', '30']);
    assert.deepEqual(await told('/', [status(9, 0, 'a', 5, 1)]), ['9', '5', '1']);
    assert.deepEqual(await told('/', [{ code: 1 }]), []);
    assert.deepEqual(await told('/silent', [both[1]!, both[0]!]), ['10, 10;w=60;name="fi\\"rst"', '5', '30']);
  });

  test('is told in no header unless a limit says so', async (t) => {
    const service = await serviceFor(t);
    const routes = [
      limited('/', [{ actions: [generic('a')], x_ratelimit_option: 'DRAFT_VERSION_03' }, ...limits('b')]),
    ];
    const { client } = await benchFor(t, service.port, { disable_x_envoy_ratelimited_header: true }, { routes });
    const status = (left: number): object => ({
      current_limit: { requests_per_unit: 9, unit: 1 },
      limit_remaining: left,
    });
    service.answer = { overall_code: 2, statuses: [status(3), status(1)] };
    const { head } = await client.write(request()).response();
    assert.deepEqual([valuesOf(head, 'x-ratelimit-remaining'), valuesOf(head, 'x-proxy-ratelimited')], [['3'], []]);
  });

  test('can be counted and not enforced, or not asked about at all', async (t) => {
    const service = await serviceFor(t);
    service.answer = { overall_code: 2, request_headers_to_add: [{ key: 'x-beyond', value: 'yes' }] };
    const shadow = await benchFor(t, service.port, { filter_enforced: NONE });
    const { status, head } = await shadow.client.write(request()).response();
    assert.deepEqual([status, valuesOf(head, 'x-proxy-ratelimited')], [200, ['true']]);
    assert.deepEqual(valuesOf(shadow.upstream.heads.at(-1)!, 'x-beyond'), ['yes']);
    const asked = service.asked.length;
    const off = await benchFor(t, service.port, { filter_enabled: NONE });
    assert.equal((await off.client.write(request()).response()).status, 200);
    assert.equal(service.asked.length, asked);
  });

  test('is turned off by the runtime, as a whole or limit by limit', async (t) => {
    const service = await serviceFor(t);
    service.answer = { overall_code: 2 };
    const routes = [
      limited('/', [
        { actions: [generic('a')], disable_key: 'mine' },
        { actions: [generic('b')], disable_key: 'yours' },
      ]),
    ];
    const layer = (values: JsonObject): JsonObject => ({
      layered_runtime: { layers: [{ name: 'static', static_layer: values }] },
    });
    const answers = async (values: JsonObject) => {
      const { client } = await benchFor(t, service.port, {}, { routes, bootstrap: layer(values) });
      return (await client.write(request()).response()).status;
    };
    assert.equal(await answers({ 'ratelimit.mine.http_filter_enabled': 0 }), 429);
    assert.deepEqual(namesOf(service), ['generic_key=b']);
    const asked = service.asked.length;
    assert.equal(await answers({ 'ratelimit.http_filter_enabled': 0 }), 200);
    assert.equal(service.asked.length, asked);
    assert.equal(await answers({ 'ratelimit.http_filter_enforcing': 0 }), 200);
    assert.equal(service.asked.length, asked + 1);
  });

  test('is for requests from inside or from outside where that is said', async (t) => {
    const service = await serviceFor(t);
    const manager = { use_remote_address: false };
    for (const [request_type, fromInside, fromOutside] of [
      ['internal', 1, 0],
      ['external', 0, 1],
      ['both', 1, 1],
    ] as const) {
      const { client } = await benchFor(t, service.port, { request_type }, { manager });
      for (const [address, expected] of [
        ['10.0.0.1', fromInside],
        ['203.0.113.1', fromOutside],
      ] as const) {
        const asked = service.asked.length;
        // Who is told to believe others takes the address from them.
        assert.equal((await client.write(request([`x-forwarded-for: ${address}`])).response()).status, 200);
        assert.equal(service.asked.length - asked, expected, `${request_type} ${address}`);
      }
    }
  });

  test('may be the same for all routes', async (t) => {
    const service = await serviceFor(t);
    const routes = [limited('/said', limits('b'), { said: { rate_limits: limits('c') } }), limited('/', limits('b'))];
    const { client } = await benchFor(t, service.port, { rate_limits: limits('own') }, { routes });
    for (const [target, name] of [
      ['/', 'own'],
      ['/said', 'c'],
    ] as const) {
      await client.write(request([], target)).response();
      assert.deepEqual(namesOf(service), [`generic_key=${name}`]);
    }
  });

  test('may count when the request is over, by what has become of it', async (t) => {
    const service = await serviceFor(t);
    const atEnd = {
      actions: [generic('end'), { request_headers: { header_name: 'x-user', descriptor_key: 'user' } }],
      apply_on_stream_done: true,
      hits_addend: { format: '%BYTES_SENT%' },
    };
    const routes = [limited('/end', [atEnd]), limited('/', [...limits('a'), atEnd])];
    const { client, proxy } = await benchFor(t, service.port, {}, { routes });
    assert.equal((await client.write(request(['x-user: ann'], '/end')).response()).status, 200);
    await eventually(() => service.asked.length === 1, 'the service is told');
    const wanted = {
      entries: [
        { key: 'generic_key', value: 'end' },
        { key: 'user', value: 'ann' },
      ],
      hits_addend: { value: 2 },
    };
    assert.deepEqual(JSON.parse(JSON.stringify(service.last.descriptors)), [wanted]);
    service.answer = { overall_code: 2, raw_body: Buffer.from('12345') };
    assert.equal((await client.write(request(['x-user: bob'])).response()).status, 429);
    await eventually(() => service.asked.length === 3, 'the service is told of the refusal');
    assert.deepEqual(namesOf(service), ['generic_key=end user=bob']);
    service.answer = 'silence';
    const leaving = new WireClient(proxy.listeners.get('main')!.port);
    leaving.write(request(['x-user: eve']));
    await eventually(() => service.asked.length === 4, 'the service is asked');
    leaving.close();
    await eventually(() => service.over === service.asked.length, 'the call is ended');
    service.answer = { overall_code: 1 };
    assert.equal((await client.write(request(['x-user: ann'])).response()).status, 200);
    const [{ entries }] = service.asked[4]!.message.descriptors as [{ entries: unknown[] }];
    assert.deepEqual(entries, [{ key: 'generic_key', value: 'a' }]);
  });

  test('answers clients of gRPC in their own way', async (t) => {
    const service = await serviceFor(t);
    service.answer = { overall_code: 2 };
    for (const [rate_limited_as_resource_exhausted, grpcStatus] of [
      [true, '8'],
      [false, '14'],
    ] as const) {
      const { proxy } = await benchFor(t, service.port, { rate_limited_as_resource_exhausted });
      const client = new Http2Client(t, proxy.listeners.get('main')!.port);
      const answer = await client.fetch({ ':method': 'POST', ':path': '/', 'content-type': 'application/grpc' });
      assert.deepEqual([answer.status, answer.headers['grpc-status']], [200, grpcStatus]);
    }
  });

  test('has its own status, and none below 400', async (t) => {
    const service = await serviceFor(t);
    service.answer = { overall_code: 2 };
    for (const [code, expected] of [
      [503, 503],
      [201, 429],
    ] as const) {
      const { client } = await benchFor(t, service.port, { rate_limited_status: { code } });
      assert.equal((await client.write(request()).response()).status, expected);
    }
  });

  test('of v2 is asked for by its name, at the service of the bootstrap', async (t) => {
    const service = await serviceFor(t);
    const upstream = await WireUpstream.answering(OK);
    t.after(() => upstream.close());
    const settings = {
      '@type': 'type.googleapis.com/envoy.config.filter.http.rate_limit.v2.RateLimit',
      domain: 'old',
      timeout: '30s',
    };
    const filter = { name: 'envoy.rate_limit', typed_config: settings };
    const listener = filteredListener([filter], [limited('/', limits('a'))]);
    const clusters = [clusterAt('web', upstream.port), clusterAt('limits', service.port, HTTP2)];
    const rate_limit_service = { grpc_service: { envoy_grpc: { cluster_name: 'limits' } } };
    await using proxy = await createProxy(bootstrapOf([listener], clusters, { rate_limit_service } as JsonObject));
    const client = new WireClient(proxy.listeners.get('main')!.port);
    assert.equal((await client.write(request()).response()).status, 200);
    assert.deepEqual([service.last.domain, namesOf(service)], ['old', ['generic_key=a']]);
  });

  test('is asked for in v2 where that is said', async (t) => {
    const service = await serviceFor(t);
    const rate_limit_service = {
      grpc_service: { envoy_grpc: { cluster_name: 'limits' } },
      transport_api_version: 'V2',
    };
    const { client } = await benchFor(t, service.port, { rate_limit_service });
    assert.equal((await client.write(request()).response()).status, 200);
    assert.equal(service.asked[0]!.path, '/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit');
  });
});

describe('a rate limit service', () => {
  test('that fails lets requests go on, or stops them as is said', async (t) => {
    const service = await serviceFor(t);
    const open = await benchFor(t, service.port, {});
    const shut = await benchFor(t, service.port, { failure_mode_deny: true, failure_mode_deny_percent: NONE });
    const worded = await benchFor(t, service.port, { failure_mode_deny: true, status_on_error: { code: 503 } });
    const plain = await benchFor(t, service.port, { failure_mode_deny: true, status_on_error: { code: 302 } });
    for (const [what, answer] of [
      ['a status that is none of its own', { fails: 14 }],
      ['bytes that are no message', Buffer.from([0x12, 0x7f])],
      ['a message that is cut', Buffer.from([0x12, 0x05, 0x12])],
      ['a field that has no number', Buffer.alloc(2)],
      ['more than the buffer holds', { overall_code: 1, raw_body: Buffer.alloc(1_500_000) }],
    ] as const) {
      service.answer = answer;
      const statuses = [];
      for (const { client } of [open, shut, worded]) statuses.push((await client.write(request()).response()).status);
      assert.deepEqual(statuses, [200, 200, 503], what);
      const { status, body } = await plain.client.write(request()).response();
      assert.deepEqual([status, body], [500, '|RLSE|rate_limiter_error'], what);
    }
  });

  test('that hangs is not waited for longer than its time', async (t) => {
    const service = await serviceFor(t);
    service.answer = 'silence';
    const { client, proxy } = await benchFor(t, service.port, { timeout: '0.05s' });
    assert.equal((await client.write(request()).response()).status, 200);
    await untilAllowed(proxy);
  });

  test('that is away, or breaks off, stops nobody', async (t) => {
    const server = createServer((socket) => socket.destroy());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const broken = await benchFor(t, port, {});
    assert.equal((await broken.client.write(request()).response()).status, 200);
    await untilAllowed(broken.proxy);
    const nobody = await benchFor(t, 1, { failure_mode_deny: true });
    assert.equal((await nobody.client.write(request()).response()).status, 500);
  });
});

/** What a worker counts for the first time takes a moment to get its name. */
async function untilAllowed(proxy: Bench['proxy']): Promise<void> {
  await untilEqual(1, async () => (await counts(proxy, SCOPE)).failure_mode_allowed, 'what goes on');
  assert.deepEqual(await counts(proxy, SCOPE), { error: 1, failure_mode_allowed: 1 });
}
