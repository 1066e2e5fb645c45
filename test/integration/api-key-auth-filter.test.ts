// The api_key_auth filter through the whole proxy.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { counts, OK, REPLIES, valuesOf } from '../support/guarded-proxy.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'api_key_auth.v3.ApiKeyAuth';
const SCOPE = 'http.main.api_key_auth.';
const perRoute = (fields: JsonObject): Record<string, JsonObject> => ({
  api_key_auth: typed('api_key_auth.v3.ApiKeyAuthPerRoute', fields),
});

describe('the api_key_auth filter', () => {
  let upstream: WireUpstream & { heads: string[] };
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  before(async () => {
    upstream = await WireUpstream.answering(OK);
    const own = {
      credentials: [
        { key: 'tulip', client: 'ann' },
        { key: 'rosé', client: 'jörg' },
      ],
      key_sources: [{ header: 'X-Key' }, { query: 'key' }, { cookie: 'key' }],
    };
    const routes = [
      routeTo('/ann', perRoute({ allowed_clients: ['ann'] })),
      routeTo('/own', perRoute({ credentials: [{ key: 'oak', client: 'eve' }] })),
      routeTo('/places', perRoute({ key_sources: [{ header: 'authorization' }] })),
      routeTo('/told', perRoute({ forwarding: { header: 'X-Client', hide_credentials: true } })),
      routeTo('/open', {
        api_key_auth: { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true },
      }),
      routeTo('/'),
    ];
    const listeners = [
      filteredListener([filterOf(TYPE, own)], routes, { manager: REPLIES }),
      filteredListener(
        [filterOf(TYPE)],
        [routeTo('/places', perRoute({ key_sources: own.key_sources })), routeTo('/')],
        {
          manager: { ...REPLIES, stat_prefix: 'bare' },
          listener: { name: 'bare' },
        },
      ),
    ];
    proxy = await createProxy(
      bootstrapOf(listeners, [clusterAt('web', upstream.port)], { stats_flush_on_admin: true }),
    );
  });

  after(async () => {
    await proxy?.close();
    await upstream?.close();
  });

  async function ask(target: string, lines: readonly string[] = [], listener = 'main') {
    const client = new WireClient(proxy.listeners.get(listener)!.port);
    const text = [`GET ${target} HTTP/1.1`, 'host: a.test', ...lines, '', ''].join('\r\n');
    const { status, body } = await client.write(text).response();
    client.close();
    return { status, what: body.split('|') };
  }

  const bytes = (text: string): string => Buffer.from(text).toString('latin1');

  it('lets clients in by keys, wherever they stand', async () => {
    const before = await counts(proxy, SCOPE);
    for (const [target, lines] of [
      ['/', ['x-key: tulip']],
      ['/', ['x-key: Bearer tulip']],
      ['/?a=1&key=tulip', []],
      ['/?key=ros%C3%A9', []],
      ['/', ['cookie: a=b; key="tulip"']],
      ['/?key=tulip', ['x-key: ']],
    ] as const) {
      assert.equal((await ask(target, lines)).status, 200, `${target} ${lines}`);
    }
    const { allowed = 0 } = await counts(proxy, SCOPE);
    assert.equal(allowed - (before.allowed ?? 0), 6);
  });

  it('turns others away, and says why', async () => {
    const before = await counts(proxy, SCOPE);
    const unauthorized = (details: string): string[] => ['Client authentication failed.', '-', details];
    assert.deepEqual(await ask('/'), { status: 401, what: unauthorized('missing_api_key') });
    assert.deepEqual(await ask('/', ['x-key: Tulip']), { status: 401, what: unauthorized('unknown_api_key') });
    // The first that there is counts.
    assert.deepEqual(await ask('/?key=tulip', ['x-key: x']), { status: 401, what: unauthorized('unknown_api_key') });
    assert.deepEqual(await ask('/ann?key=ros%C3%A9'), {
      status: 403,
      what: ['Client is forbidden.', '-', 'client_not_allowed'],
    });
    const now = await counts(proxy, SCOPE);
    assert.deepEqual(
      [(now.unauthorized ?? 0) - (before.unauthorized ?? 0), (now.forbidden ?? 0) - (before.forbidden ?? 0)],
      [3, 1],
    );
    assert.deepEqual(await ask('/', [], 'bare'), { status: 401, what: unauthorized('missing_key_sources') });
    assert.deepEqual(await ask('/places?key=a', [], 'bare'), {
      status: 401,
      what: unauthorized('missing_credentials'),
    });
  });

  it('goes by what the route says, list by list', async () => {
    assert.equal((await ask('/ann?key=tulip')).status, 200);
    assert.equal((await ask('/own?key=oak')).status, 200);
    assert.equal((await ask('/own?key=tulip')).status, 401);
    assert.equal((await ask('/places?key=tulip')).status, 401);
    assert.equal((await ask('/places', ['authorization: Bearer tulip'])).status, 200);
    assert.equal((await ask('/open')).status, 200);
  });

  it('tells the upstream the client, and keeps keys to itself, where that is wanted', async () => {
    await ask('/?key=tulip', ['x-key: tulip', 'x-client: root']);
    const kept = upstream.heads.at(-1)!;
    assert.deepEqual([valuesOf(kept, 'x-key'), valuesOf(kept, 'x-client')], [['tulip'], ['root']]);
    await ask('/told?a=1&key=ros%C3%A9&b=2', ['x-client: root', 'cookie: a=b; key=1; c=d', 'cookie: key=2']);
    const told = upstream.heads.at(-1)!;
    assert.match(told, /^GET \/told\?a=1&b=2 HTTP/);
    assert.deepEqual(
      ['x-key', 'x-client', 'cookie'].map((name) => valuesOf(told, name)),
      [[], [bytes('jörg')], ['a=b; c=d']],
    );
    await ask('/told', ['x-key: tulip', 'cookie: key=1']);
    const hidden = upstream.heads.at(-1)!;
    assert.match(hidden, /^GET \/told HTTP/);
    assert.deepEqual(
      ['x-key', 'x-client', 'cookie'].map((name) => valuesOf(hidden, name)),
      [[], ['ann'], []],
    );
  });
});
