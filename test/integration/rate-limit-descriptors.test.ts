// What a service is told of requests by each action of rate limits, from the wire to the wire. A row for each: the actions, the
// request, and the descriptor, or none.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { HTTP2, OK, request } from '../support/guarded-proxy.ts';
import { RateLimitService } from '../support/rate-limit-service.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

type Row = readonly [
  name: string,
  actions: readonly JsonObject[],
  asked: { readonly query?: string; readonly lines?: readonly string[] },
  descriptor: string | null,
];

const KEY: JsonObject = { generic_key: { descriptor_value: 'k' } };
const header = (name: string, more: JsonObject = {}): JsonObject => ({
  request_headers: { header_name: name, descriptor_key: 'h', ...more },
});
const query = (name: string, more: JsonObject = {}): JsonObject => ({
  query_parameters: { query_parameter_name: name, descriptor_key: 'q', ...more },
});
const matchesHeader = (fields: JsonObject, more: JsonObject = {}): JsonObject => ({
  header_value_match: { descriptor_value: 'v', headers: [{ name: 'x-a', ...fields }], ...more },
});
const matchesQuery = (fields: JsonObject, more: JsonObject = {}): JsonObject => ({
  query_parameter_value_match: { descriptor_value: 'v', query_parameters: [{ name: 'a', ...fields }], ...more },
});
const metadata = (key: string, more: JsonObject = {}): JsonObject => ({
  metadata: { descriptor_key: 'm', metadata_key: { key: 'said', path: [{ key }] }, ...more },
});
const SKIPPED = { skip_if_absent: true };
const FROM = ['x-forwarded-for: 203.0.113.77'];
const FROM_6 = ['x-forwarded-for: 2001:db8:1:2:3::4'];

const ROWS: readonly Row[] = [
  ['a fixed value', [KEY], {}, 'generic_key=k'],
  ['a fixed value under a key', [{ generic_key: { descriptor_key: 'own', descriptor_value: 'k' } }], {}, 'own=k'],
  ['the first of several headers', [header('x-a')], { lines: ['x-a: 1', 'x-a: 2'] }, 'h=1'],
  ['a header that is not there', [KEY, header('x-a')], {}, null],
  ['a header that may be missing', [KEY, header('x-a', SKIPPED)], {}, 'generic_key=k'],
  ['nothing but a header that may be missing', [header('x-a', SKIPPED)], {}, null],
  ['the method', [header(':method')], {}, 'h=GET'],
  ['the path with its query', [header(':path')], { query: '?a=1' }, 'h=PATH?a=1'],
  ['the host', [header(':authority')], {}, 'h=shop.test'],
  ['a parameter of the query', [query('a')], { query: '?b=0&a=1&a=2' }, 'q=1'],
  ['a parameter that is not there', [KEY, query('a')], { query: '?b=0' }, null],
  ['a parameter that may be missing', [KEY, query('a', SKIPPED)], {}, 'generic_key=k'],
  ['the client', [{ remote_address: {} }], { lines: FROM }, 'remote_address=203.0.113.77'],
  [
    'the network of a client',
    [{ masked_remote_address: { v4_prefix_mask_len: 24 } }],
    { lines: FROM },
    'masked_remote_address=203.0.113.0/24',
  ],
  [
    'a client that is a network of its own',
    [{ masked_remote_address: {} }],
    { lines: FROM },
    'masked_remote_address=203.0.113.77/32',
  ],
  [
    'the network of a client of IPv6',
    [{ masked_remote_address: { v6_prefix_mask_len: 64 } }],
    { lines: FROM_6 },
    'masked_remote_address=2001:db8:1:2::/64',
  ],
  [
    'where it comes from and goes to',
    [{ source_cluster: {} }, { destination_cluster: {} }],
    {},
    'source_cluster=edge destination_cluster=web',
  ],
  [
    'a header that matches',
    [matchesHeader({ string_match: { prefix: 'go' } })],
    { lines: ['x-a: gold'] },
    'header_match=v',
  ],
  ['a header that does not match', [matchesHeader({ string_match: { prefix: 'go' } })], { lines: ['x-a: tin'] }, null],
  [
    'a header that is not to match',
    [matchesHeader({ present_match: true }, { expect_match: false })],
    {},
    'header_match=v',
  ],
  [
    'a header that is not to match, and does',
    [matchesHeader({ present_match: true }, { expect_match: false })],
    { lines: ['x-a: 1'] },
    null,
  ],
  [
    'a header that matches under a key',
    [matchesHeader({ present_match: true }, { descriptor_key: 'own' })],
    { lines: ['x-a: 1'] },
    'own=v',
  ],
  ['a parameter that matches', [matchesQuery({ string_match: { exact: '1' } })], { query: '?a=1' }, 'query_match=v'],
  ['a parameter that does not match', [matchesQuery({ string_match: { exact: '1' } })], { query: '?a=2' }, null],
  [
    'a parameter that is not to match',
    [matchesQuery({ present_match: true }, { expect_match: false })],
    { query: '?b=2' },
    'query_match=v',
  ],
  ['what filters have said', [metadata('tier')], {}, 'm=gold'],
  ['what filters have not said', [KEY, metadata('other')], {}, null],
  [
    'what filters have not said, with something in its place',
    [metadata('other', { default_value: 'none' })],
    {},
    'm=none',
  ],
  ['what filters need not have said', [KEY, metadata('other', SKIPPED)], {}, 'generic_key=k'],
  ['what filters have said that is no text', [metadata('number', { default_value: 'none' })], {}, 'm=none'],
  [
    'what the older action finds',
    [{ dynamic_metadata: { descriptor_key: 'm', metadata_key: { key: 'said', path: [{ key: 'tier' }] } } }],
    {},
    'm=gold',
  ],
  ['what the route says', [metadata('of-route', { source: 'ROUTE_ENTRY' })], {}, 'm=here'],
  [
    'several of them, in their order',
    [KEY, header('x-a'), query('a')],
    { query: '?a=2', lines: ['x-a: 1'] },
    'generic_key=k h=1 q=2',
  ],
];

describe('a service of rate limits is told', () => {
  let service: RateLimitService;
  let upstream: Awaited<ReturnType<typeof WireUpstream.answering>>;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;

  before(async () => {
    service = await RateLimitService.start();
    service.answer = { overall_code: 1 };
    upstream = await WireUpstream.answering(OK);
    const routes = ROWS.map(([, actions], index) =>
      routeTo(
        `/${index}/`,
        {},
        {
          route: { cluster: 'web', rate_limits: [{ actions }] },
          metadata: { filter_metadata: { said: { 'of-route': 'here' } } },
        },
      ),
    );
    const said = filterOf('set_metadata.v3.Config', {
      metadata: [{ metadata_namespace: 'said', value: { tier: 'gold', number: 4 } }],
    });
    const limits = filterOf('ratelimit.v3.RateLimit', {
      domain: 'shop',
      timeout: '30s',
      rate_limit_service: { grpc_service: { envoy_grpc: { cluster_name: 'limits' } }, transport_api_version: 'V3' },
    });
    const manager = { use_remote_address: true, xff_num_trusted_hops: 1 };
    proxy = await createProxy(
      bootstrapOf(
        [filteredListener([said, limits], routes, { manager })],
        [clusterAt('web', upstream.port), clusterAt('limits', service.port, HTTP2)],
        { node: { cluster: 'edge' } },
      ),
    );
    client = new WireClient(proxy.listeners.get('main')!.port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    await upstream?.close();
    await service?.[Symbol.asyncDispose]();
  });

  for (const [index, [name, , { query: asked = '', lines = [] }, expected]] of ROWS.entries()) {
    it(`${name}: ${expected ?? 'nothing'}`, async () => {
      const before = service.asked.length;
      const path = `/${index}/`;
      assert.equal((await client.write(request(lines, path + asked)).response()).status, 200);
      if (expected === null) {
        assert.equal(service.asked.length, before);
        return;
      }
      const [descriptor, ...others] = service.last.descriptors as { entries: { key: string; value: string }[] }[];
      const told = descriptor!.entries.map(({ key, value }) => `${key}=${value}`).join(' ');
      assert.deepEqual([told.replace(path, 'PATH'), others], [expected, []]);
    });
  }
});
