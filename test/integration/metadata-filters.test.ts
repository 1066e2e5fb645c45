// The filters that write metadata of requests: header_to_metadata and set_metadata. What they have written stands in a header of
// the response, by %DYNAMIC_METADATA%.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const FROM_HEADERS = 'header_to_metadata.v3.Config';
const FIXED = 'set_metadata.v3.Config';
const rewrite = (regex: string, substitution: string): JsonObject => ({ pattern: { regex }, substitution });
/** A rule that writes under its own name. */
const rule = (header: string, present: JsonObject = {}, fields: JsonObject = {}): JsonObject => ({
  header,
  on_header_present: { key: header, metadata_namespace: 'm', ...present },
  ...fields,
});

const OWN = {
  request_rules: [
    rule('x-plain', {}, { remove: true }),
    rule(
      'X-Missing',
      { key: 'missing' },
      { on_header_missing: { metadata_namespace: 'm', key: 'missing', value: 'absent' } },
    ),
    rule('x-fixed', { value: 'constant' }),
    rule('x-part', { regex_value_rewrite: rewrite('^/(v\\d+)/.*$', '\\1') }),
    rule('x-number', { type: 'NUMBER' }),
    rule('x-coded', { encode: 'BASE64' }),
    rule(':path', { key: 'path' }),
    { cookie: 'tier', on_header_present: { metadata_namespace: 'm', key: 'tier' } },
    { header: 'x-default', on_header_present: { key: 'name' } },
  ],
  response_rules: [rule('x-answer', {}, { remove: true })],
};
const SETS = {
  metadata_namespace: 'old',
  value: { list: [1], deep: { a: 1, b: 2 }, text: 'x' },
  metadata: [
    { metadata_namespace: 'old', value: { text: 'refused' } },
    { metadata_namespace: 'old', allow_overwrite: true, value: { list: [2], deep: { b: 3 }, text: 'y' } },
    { metadata_namespace: 'new', value: { text: 'z' } },
  ],
};
const shown = (name: string): JsonObject => ({ header: { key: name, value: `%DYNAMIC_METADATA(${name})%` } });

describe('filters that write metadata', () => {
  let upstream: WireUpstream & { heads: string[] };
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;

  before(async () => {
    upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\nx-answer: 42\r\ncontent-length: 0\r\n\r\n');
    const ofRoute = {
      request_rules: [{ header: 'x-plain', on_header_present: { metadata_namespace: 'm', key: 'route' } }],
    };
    const routes = [routeTo('/route', { header_to_metadata: typed(FROM_HEADERS, ofRoute) }), routeTo('/')];
    // What shows metadata stands behind, for requests, and before, for responses.
    const show = {
      mutations: {
        response_mutations: ['m', 'old', 'new', 'envoy.filters.http.header_to_metadata'].map((name) => ({
          append: shown(name),
        })),
      },
    };
    const listener = filteredListener(
      [filterOf('header_mutation.v3.HeaderMutation', show), filterOf(FROM_HEADERS, OWN), filterOf(FIXED, SETS)],
      routes,
    );
    proxy = await createProxy(
      bootstrapOf([listener], [clusterAt('web', upstream.port)], { stats_flush_on_admin: true }),
    );
    client = new WireClient(proxy.listeners.get('main')!.port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    await upstream?.close();
  });

  /** What has been written, by namespace; a header of the answer that the client got. */
  async function written(fields: Record<string, string> = {}, path = '/') {
    const lines = Object.entries({ host: 'a', ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
    const { head } = await client.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`).response();
    const text = Buffer.from(head, 'latin1').toString();
    const of = (name: string): unknown => {
      const line = new RegExp(`^${name.replaceAll('.', '\\.')}: (.*)\\r$`, 'm').exec(text)?.[1];
      return line === undefined ? undefined : JSON.parse(line);
    };
    return { head, m: of('m'), old: of('old'), new: of('new'), own: of('envoy.filters.http.header_to_metadata') };
  }

  it('makes metadata of headers and cookies', async () => {
    const fields = {
      'x-plain': 'grün',
      'x-missing': 'here',
      'x-fixed': 'whatever',
      'x-part': '/v3/things',
      'x-number': '-1.5e3',
      'x-coded': Buffer.from('clear').toString('base64'),
      cookie: 'a=1; tier="gold"',
      'x-default': 'd',
    };
    const { m, own, head } = await written(fields, '/?q');
    assert.deepEqual(m, {
      'x-plain': 'grün',
      missing: 'here',
      'x-fixed': 'constant',
      'x-part': 'v3',
      'x-number': -1500,
      'x-coded': 'clear',
      path: '/?q',
      tier: 'gold',
      'x-answer': '42',
    });
    assert.deepEqual(own, { name: 'd' });
    assert.doesNotMatch(upstream.heads.at(-1)!, /^x-plain:/im);
    assert.match(upstream.heads.at(-1)!, /^x-missing: here\r$/im);
    assert.doesNotMatch(head, /^x-answer:/im);
  });

  it('says what is missing, and nothing of what makes no sense', async () => {
    const fields = {
      'x-plain': '',
      'x-number': '1x',
      'x-coded': '!',
      'x-part': '',
      'x-default': 'x'.repeat(8193),
    };
    const { m, own } = await written(fields);
    assert.deepEqual(m, { missing: 'absent', path: '/', 'x-answer': '42' });
    assert.equal(own, undefined);
    assert.deepEqual((await written({ 'x-default': 'x'.repeat(8192) })).own, { name: 'x'.repeat(8192) });
  });

  it('says what the nearest level of a route wants, and no more', async () => {
    const { m } = await written({ 'x-plain': 'p' }, '/route');
    assert.deepEqual(m, { route: 'p' });
    assert.match(upstream.heads.at(-1)!, /^x-plain: p\r$/im);
  });

  it('writes fixed metadata, and merges it where it may', async () => {
    const denied = (): number => proxy.stats.value('http.main.set_metadata.overwrite_denied') ?? 0;
    const before = denied();
    const { old, new: fresh } = await written();
    assert.deepEqual(old, { list: [1, 2], deep: { a: 1, b: 3 }, text: 'y' });
    assert.deepEqual(fresh, { text: 'z' });
    assert.equal(denied(), before + 1);
  });
});
