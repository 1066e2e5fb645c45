// The ip_tagging filter through the whole proxy.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { counts, OK, valuesOf } from '../support/guarded-proxy.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'ip_tagging.v3.IPTagging';
const TAGS: readonly JsonObject[] = [
  {
    ip_tag_name: 'office',
    ip_list: [
      { address_prefix: '10.1.0.0', prefix_len: 16 },
      { address_prefix: '203.0.113.0', prefix_len: 24 },
      { address_prefix: '2001:db8::', prefix_len: 32 },
    ],
  },
  { ip_tag_name: 'lab', ip_list: [{ address_prefix: '203.0.113.64', prefix_len: 26 }] },
  // The same block as one of another tag, written otherwise.
  { ip_tag_name: 'berlin', ip_list: [{ address_prefix: '203.0.113.9', prefix_len: 24 }] },
];

describe('the ip_tagging filter', () => {
  let upstream: WireUpstream & { heads: string[] };
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  before(async () => {
    upstream = await WireUpstream.answering(OK);
    const office = {
      match: { prefix: '/', headers: [{ name: 'x-envoy-ip-tags', string_match: { contains: 'lab' } }] },
    };
    const routes = [
      routeTo('/', {}, { ...office, request_headers_to_add: [{ header: { key: 'x-route', value: 'lab' } }] }),
      routeTo('/'),
    ];
    const listenerOf = (name: string, fields: JsonObject): JsonObject =>
      filteredListener([filterOf(TYPE, { ip_tags: TAGS, ...fields })], routes, {
        manager: { use_remote_address: false, stat_prefix: name },
        listener: { name },
      });
    const listeners = [
      listenerOf('main', {}),
      listenerOf('inside', { request_type: 'INTERNAL' }),
      listenerOf('outside', { request_type: 'EXTERNAL' }),
      listenerOf('own', { ip_tag_header: { header: 'X-Tags' } }),
      listenerOf('added', { ip_tag_header: { header: 'X-Tags', action: 'APPEND_IF_EXISTS_OR_ADD' } }),
    ];
    proxy = await createProxy(
      bootstrapOf(listeners, [clusterAt('web', upstream.port)], {
        header_prefix: 'x-envoy',
        stats_flush_on_admin: true,
      }),
    );
  });

  after(async () => {
    await proxy?.close();
    await upstream?.close();
  });

  /** @returns the head as the upstream gets it. */
  async function sent(client: string, listener = 'main', lines: readonly string[] = []): Promise<string> {
    const wire = new WireClient(proxy.listeners.get(listener)!.port);
    const text = ['GET / HTTP/1.1', 'host: a.test', `x-forwarded-for: ${client}`, ...lines, '', ''].join('\r\n');
    assert.equal((await wire.write(text).response()).status, 200);
    wire.close();
    return upstream.heads.at(-1)!;
  }

  const tagsOf = (head: string): string[] => valuesOf(head, 'x-envoy-ip-tags');

  it('tells which blocks a client is in, the largest first, and routes by it', async () => {
    assert.deepEqual(tagsOf(await sent('203.0.113.7')), ['office,berlin']);
    const lab = await sent('203.0.113.70');
    assert.deepEqual([tagsOf(lab), valuesOf(lab, 'x-route')], [['office,berlin,lab'], ['lab']]);
    assert.deepEqual(tagsOf(await sent('2001:db8::1')), ['office']);
    // Nobody else can say it.
    const forged = await sent('198.51.100.1', 'main', ['x-envoy-ip-tags: lab']);
    assert.deepEqual([tagsOf(forged), valuesOf(forged, 'x-route')], [[], []]);
    assert.deepEqual(await counts(proxy, 'http.main.ip_tagging.'), {
      'office.hit': 3,
      'berlin.hit': 2,
      'lab.hit': 1,
      no_hit: 1,
      total: 4,
    });
  });

  it('is for requests from inside, or from outside, where that is wanted', async () => {
    assert.deepEqual(tagsOf(await sent('10.1.2.3', 'inside')), ['office']);
    assert.deepEqual(tagsOf(await sent('203.0.113.7', 'inside')), []);
    assert.deepEqual(tagsOf(await sent('10.1.2.3', 'outside')), []);
    assert.deepEqual(tagsOf(await sent('203.0.113.7', 'outside')), ['office,berlin']);
    const { total, no_hit } = await counts(proxy, 'http.inside.ip_tagging.');
    assert.deepEqual([total, no_hit ?? 0], [1, 0]);
  });

  it('writes another header, in place of what clients say there or behind it', async () => {
    const said = ['x-tags: lie'];
    const tags = (head: string): string[] => valuesOf(head, 'x-tags');
    assert.deepEqual(tags(await sent('10.1.2.3', 'own', said)), ['office']);
    assert.deepEqual(tags(await sent('198.51.100.1', 'own', said)), []);
    assert.deepEqual(tags(await sent('10.1.2.3', 'added', said)), ['lie,office']);
    assert.deepEqual(tags(await sent('198.51.100.1', 'added', said)), ['lie']);
    assert.deepEqual(tags(await sent('10.1.2.3', 'added')), ['office']);
  });
});
