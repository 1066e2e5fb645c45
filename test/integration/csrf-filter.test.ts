// The csrf filter through the whole proxy: which requests it lets through, and what it counts.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'csrf.v3.CsrfPolicy';
const share = (numerator: number, runtime_key = ''): JsonObject => ({ default_value: { numerator }, runtime_key });
const policy = (prefix: string, fields: JsonObject): JsonObject =>
  routeTo(prefix, { csrf: typed(TYPE, { filter_enabled: share(100), ...fields }) });

const ROUTES = [
  policy('/allowed', { additional_origins: [{ exact: 'shop.test' }, { suffix: '.friends.test:8443' }] }),
  policy('/shadow', { filter_enabled: share(0), shadow_enabled: share(100) }),
  policy('/off', { filter_enabled: share(0) }),
  policy('/runtime', { filter_enabled: share(0, 'my.csrf') }),
  policy('/quiet', { filter_enabled: share(0), shadow_enabled: share(0, 'my.csrf') }),
  routeTo('/'),
];

describe('the csrf filter', () => {
  let upstream: WireUpstream;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;

  before(async () => {
    upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    const listener = filteredListener([filterOf(TYPE, { filter_enabled: share(100) })], ROUTES, {
      manager: {
        local_reply_config: { body_format: { text_format: '%LOCAL_REPLY_BODY%|%RESPONSE_CODE_DETAILS%' } },
      },
    });
    const fields = {
      stats_flush_on_admin: true,
      layered_runtime: { layers: [{ name: 'own', static_layer: { my: { csrf: 100 } } }] },
    };
    proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', upstream.port)], fields));
    client = new WireClient(proxy.listeners.get('main')!.port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    await upstream?.close();
  });

  interface Asked {
    readonly method?: string;
    readonly path?: string;
    readonly host?: string;
  }

  async function ask(lines: readonly string[], { method = 'POST', path = '/', host = 'shop.test:8080' }: Asked = {}) {
    const head = [`${method} ${path} HTTP/1.1`, `host: ${host}`, 'content-length: 0', ...lines, '', ''];
    return await client.write(head.join('\r\n')).response();
  }

  const counts = (): number[] =>
    ['missing_source_origin', 'request_invalid', 'request_valid'].map(
      (name) => proxy.stats.value(`http.main.csrf.${name}`) ?? 0,
    );

  /** Status of an answer, and what has been counted with it. */
  async function outcome(lines: readonly string[], asked: Asked = {}): Promise<string> {
    const before = counts();
    const { status } = await ask(lines, asked);
    const [missing, invalid, valid] = counts().map((count, index) => count - before[index]!);
    return `${status} ${missing}${invalid}${valid}`;
  }

  const SAME = 'origin: https://shop.test:8080';
  const OTHER = 'origin: https://evil.test';

  it('lets through what comes from a page of the same host', async () => {
    assert.equal(await outcome([SAME]), '200 001');
    assert.equal(await outcome(['origin: HTTP://Shop.test:8080']), '200 001');
    assert.equal(await outcome(['referer: http://shop.test:8080/page?x=/y']), '200 001');
    assert.equal(await outcome(['referer: http://user@shop.test:8080']), '200 001');
  });

  it('answers what comes from elsewhere, or does not say where from', async () => {
    const { status, body } = await ask([OTHER]);
    assert.deepEqual([status, body], [403, 'Invalid origin|csrf_origin_mismatch']);
    assert.equal(await outcome([OTHER]), '403 010');
    assert.equal(await outcome([]), '403 100');
    assert.equal(await outcome(['origin: null']), '403 010');
    assert.equal(await outcome([OTHER, 'referer: http://shop.test:8080/']), '403 010');
    assert.equal(await outcome(['origin: https://shop.test']), '403 010', 'another port is another origin');
    assert.equal(await outcome(['referer: http://shop.test:8080@evil.test/']), '403 010');
    assert.equal(await outcome(['origin: http://evil.test#://shop.test:8080']), '403 010');
  });

  it('takes the port of a scheme for granted', async () => {
    assert.equal(await outcome(['origin: https://shop.test'], { host: 'shop.test:443' }), '200 001');
    assert.equal(await outcome(['origin: https://shop.test:443'], { host: 'shop.test' }), '200 001');
    assert.equal(await outcome(['origin: http://shop.test:80'], { host: 'SHOP.test' }), '200 001');
    assert.equal(await outcome(['origin: https://shop.test:80'], { host: 'shop.test' }), '403 010');
  });

  it('judges only what changes something', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      assert.equal(await outcome([OTHER], { method }), '403 010', method);
    }
    for (const method of ['GET', 'OPTIONS']) assert.equal(await outcome([OTHER], { method }), '200 000', method);
  });

  it('lets further origins through where a route says so', async () => {
    const path = '/allowed';
    assert.equal(await outcome(['origin: https://shop.test'], { path }), '200 001');
    assert.equal(await outcome(['origin: https://my.friends.test:8443'], { path }), '200 001');
    assert.equal(await outcome(['origin: https://my.friends.test'], { path }), '403 010');
  });

  it('only counts where it is a shadow, and nothing where it is off', async () => {
    assert.equal(await outcome([OTHER], { path: '/shadow' }), '200 010');
    assert.equal(await outcome([], { path: '/shadow' }), '200 100');
    assert.equal(await outcome([OTHER], { path: '/off' }), '200 000');
    assert.equal(await outcome([OTHER], { path: '/runtime' }), '403 010');
    assert.equal(await outcome([OTHER], { path: '/quiet' }), '200 010');
  });
});
