// The basic_auth filter through the whole proxy.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'basic_auth.v3.BasicAuth';
const line = (name: string, password: string): string =>
  `${name}:{SHA}${createHash('sha1').update(password).digest('base64')}`;
const users = (...lines: string[]): JsonObject => ({ users: { inline_string: lines.join('\n') } });
const basic = (credentials: string): string => `Basic ${Buffer.from(credentials).toString('base64')}`;

describe('the basic_auth filter', () => {
  let upstream: WireUpstream & { heads: string[] };
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  before(async () => {
    upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    const own = users('# people', line('ada', 'count:ess'), '', line('jörg', 'grün'));
    const routes = [
      routeTo('/private', { basic_auth: typed('basic_auth.v3.BasicAuthPerRoute', users(line('eve', 'x'))) }),
      routeTo('/open', {
        basic_auth: { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true },
      }),
      routeTo('/', {}, { request_headers_to_add: [{ header: { key: 'x-seen', value: '%REQ(x-user)%' } }] }),
    ];
    const manager = {
      local_reply_config: { body_format: { text_format: '%LOCAL_REPLY_BODY%|%RESPONSE_CODE_DETAILS%' } },
    };
    const listeners = [
      filteredListener([filterOf(TYPE, { ...own, forward_username_header: 'X-User' })], routes, { manager }),
      filteredListener([filterOf(TYPE, { ...own, authentication_header: 'X-Auth' })], routes, {
        listener: { name: 'other' },
      }),
    ];
    proxy = await createProxy(
      bootstrapOf(listeners, [clusterAt('web', upstream.port)], { stats_flush_on_admin: true }),
    );
  });

  after(async () => {
    await proxy?.close();
    await upstream?.close();
  });

  async function ask(fields: Record<string, string>, path = '/', listener = 'main') {
    const client = new WireClient(proxy.listeners.get(listener)!.port);
    const lines = Object.entries({ host: 'a.test', ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
    const answer = await client.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`).response();
    client.close();
    return answer;
  }

  const counts = (): number[] =>
    ['allowed', 'denied'].map((name) => proxy.stats.value(`http.main.basic_auth.${name}`) ?? 0);

  it('lets users in, and tells the upstream who they are', async () => {
    const before = counts();
    assert.equal((await ask({ authorization: basic('ada:count:ess'), 'x-user': 'root' })).status, 200);
    const head = upstream.heads.at(-1)!;
    assert.deepEqual(head.match(/^x-user: .*$/gim), ['x-user: ada']);
    assert.match(head, /^x-seen: ada\r$/im);
    assert.equal((await ask({ authorization: basic('jörg:grün').replace('Basic', 'bASIC ') })).status, 200);
    assert.deepEqual(
      counts().map((count, index) => count - before[index]!),
      [2, 0],
    );
  });

  it('asks everybody else who they are', async () => {
    const before = counts();
    const cases: [Record<string, string>, string][] = [
      [{}, 'Missing username and password.|no_credential_for_basic_auth'],
      [{ authorization: 'Bearer x' }, "Expected 'Basic' authentication scheme.|invalid_scheme_for_basic_auth"],
      [
        { authorization: basic('ada') },
        'Invalid basic credential, expected username:password.|invalid_format_for_basic_auth',
      ],
      [{ authorization: basic('ada:') }, 'Invalid username/password combination.|invalid_credential_for_basic_auth'],
      [
        { authorization: basic('bob:count:ess') },
        'Invalid username/password combination.|invalid_credential_for_basic_auth',
      ],
    ];
    for (const [fields, body] of cases) {
      const answer = await ask(fields, '/a"b?secret');
      assert.deepEqual([answer.status, answer.body], [401, `User authentication failed. ${body}`]);
      assert.match(answer.head, /^www-authenticate: Basic realm="http:\/\/a\.test\/a\\"b"\r$/m);
    }
    assert.deepEqual(
      counts().map((count, index) => count - before[index]!),
      [0, 5],
    );
  });

  it('has other users for a route, or none at all', async () => {
    assert.equal((await ask({ authorization: basic('ada:count:ess') }, '/private')).status, 401);
    assert.equal((await ask({ authorization: basic('eve:x') }, '/private')).status, 200);
    assert.equal((await ask({}, '/open')).status, 200);
  });

  it('finds credentials in another header', async () => {
    assert.equal((await ask({ authorization: basic('ada:count:ess') }, '/', 'other')).status, 401);
    assert.equal((await ask({ 'x-auth': basic('ada:count:ess') }, '/', 'other')).status, 200);
    assert.doesNotMatch(upstream.heads.at(-1)!, /^x-user/im);
  });
});
