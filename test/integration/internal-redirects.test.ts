// Redirects that the proxy follows itself, by bytes on the wire: to which route, with which head and body, when it does not,
// and what the books say of it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InternalRedirectSettings, RouteSnapshot } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, forwardTo, loopback, retrySettings, routeFor } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, OK } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const FOLLOWS: InternalRedirectSettings = {
  maxRedirects: 1,
  statuses: [302],
  predicates: [],
  allowsCrossScheme: false,
  headersToCopy: [],
};

function redirect(location: string, status = 302, ...fields: readonly string[]): string {
  return `${[`HTTP/1.1 ${status} X`, `location: ${location}`, 'content-length: 4', ...fields].join('\r\n')}\r\n\r\ngone`;
}

interface BenchOptions {
  readonly policy?: Partial<InternalRedirectSettings>;
  readonly route?: Parameters<typeof forwardTo>[1];
  readonly routes?: readonly RouteSnapshot[];
  readonly clock?: ManualClock;
}

interface Upstream {
  readonly heads: string[];
  readonly bodies: string[];
}

/** Answers each request by its path; a body is as long as content-length says. */
async function answering(answers: Readonly<Record<string, string>>): Promise<WireUpstream & Upstream> {
  const heads: string[] = [];
  const bodies: string[] = [];
  const upstream = await WireUpstream.start((socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      for (;;) {
        const end = text.indexOf('\r\n\r\n') + 4;
        const length = Number(/content-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
        if (end === 3 || text.length < end + length) return;
        heads.push(text.slice(0, end));
        bodies.push(text.slice(end, end + length));
        text = text.slice(end + length);
        const answer = answers[heads.at(-1)!.split(' ')[1]!];
        if (answer !== undefined) socket.write(answer);
      }
    });
    socket.on('end', () => socket.end());
  });
  return Object.assign(upstream, { heads, bodies });
}

/** Two clusters behind one listener: `web` whose redirects are followed, and `other` under `/other`. */
async function benchOf(
  t: Parameters<NonNullable<Parameters<typeof test>[0]>>[0],
  web: WireUpstream,
  other: WireUpstream,
  { policy, route, routes = [], clock }: BenchOptions = {},
) {
  const proxy = new DataPlaneFixture(clock === undefined ? {} : { clock });
  proxy.cluster('web', [loopback(web.port)]);
  proxy.cluster('other', [loopback(other.port)]);
  const following = { internalRedirects: { ...FOLLOWS, ...policy }, ...route };
  const port = await proxy.http([
    ...routes,
    routeFor('/other', forwardTo('other', { timeoutMs: 1000 }), { name: 'other' }),
    directRoute('/direct', 200, 'direct'),
    routeFor('/web', forwardTo('web', following), { name: 'web' }),
  ]);
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    const closed = proxy.close();
    clock?.turn(1000);
    await closed;
    await Promise.all([web.close(), other.close()]);
  });
  const client = (): WireClient => {
    const wire = new WireClient(port);
    clients.push(wire);
    return wire;
  };
  const counts = (): readonly [succeeded: number, failed: number] => [
    proxy.clusterStat('web', 'upstream_internal_redirect_succeeded_total'),
    proxy.clusterStat('web', 'upstream_internal_redirect_failed_total'),
  ];
  return { proxy, client, counts };
}

function get(path: string): string {
  return GET.replace('GET /', `GET ${path}`);
}

function field(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\\r$`, 'im').exec(head)?.[1];
}

describe('a redirect that the route follows', () => {
  test('is answered by where it leads, with another host and path, and tells where the request came from', async (t) => {
    const web = await answering({ '/web/a?b=c': redirect('http://other.test:81/other/d?e=f#g') });
    const other = await answering({ '/other/d?e=f': OK });
    const { proxy, client, counts } = await benchOf(t, web, other);
    const wire = client().write(get('/web/a?b=c'));
    const reply = await wire.response();
    assert.deepEqual([reply.status, reply.body], [200, 'ok']);
    const [head] = other.heads as [string];
    assert.match(head, /^GET \/other\/d\?e=f HTTP\/1\.1\r\nhost: other\.test:81\r\n/i);
    assert.equal(field(head, 'x-proxy-original-url'), 'http://x/web/a?b=c');
    assert.equal(field(head, 'x-proxy-expected-rq-timeout-ms'), '1000', 'the time of the new route');
    assert.equal(head.match(/x-request-id/gi)?.length ?? 0, web.heads[0]!.match(/x-request-id/gi)?.length ?? 0);
    assert.deepEqual(counts(), [1, 0]);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 0, 'nobody has got its answer');
    assert.equal(proxy.hostStat('web', 0, 'rq_error'), 0);
    assert.equal(proxy.clusterStat('other', 'upstream_rq_completed'), 1);
    assert.equal(proxy.httpStat('downstream_rq_total'), 1);
    wire.write(get('/other/d?e=f'));
    assert.equal((await wire.response()).status, 200, 'the connection goes on');
    assertBalanced(proxy);
  });

  test('keeps the body, and its method', async (t) => {
    const web = await answering({ '/web': redirect('http://x/other', 307) });
    const other = await answering({ '/other': OK });
    const { client } = await benchOf(t, web, other, { policy: { statuses: [307] } });
    const wire = client().write('POST /web HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc');
    await eventually(() => web.sockets.length === 1, 'the head goes on its way');
    wire.write('def');
    assert.equal((await wire.response()).status, 200);
    assert.match(other.heads[0]!, /^POST /);
    assert.deepEqual(other.bodies, ['abcdef']);
  });

  test('by 303 becomes a GET without a body, and a HEAD stays one', async (t) => {
    const web = await answering({ '/web': redirect('http://x/other', 303) });
    const other = await answering({ '/other': 'HTTP/1.1 204 X\r\n\r\n' });
    const { client } = await benchOf(t, web, other, { policy: { statuses: [303] } });
    const chunked = 'POST /web HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc';
    assert.equal((await client().write(chunked).response()).status, 204);
    assert.match(other.heads[0]!, /^GET /);
    assert.equal(field(other.heads[0]!, 'content-length'), undefined);
    assert.deepEqual(other.bodies, ['']);
  });

  test('takes headers of the response along in place of its own', async (t) => {
    const web = await answering({ '/web': redirect('http://x/other', 302, 'x-token: new', 'x-token: two') });
    const other = await answering({ '/other': OK });
    const { client } = await benchOf(t, web, other, { policy: { headersToCopy: ['x-token', 'x-gone'] } });
    await client().write('GET /web HTTP/1.1\r\nhost: x\r\nx-token: old\r\nX-Gone: old\r\n\r\n').response();
    const [head] = other.heads as [string];
    assert.deepEqual(
      head.split('\r\n').filter((line) => line.startsWith('x-token')),
      ['x-token: new', 'x-token: two'],
    );
    assert.equal(field(head, 'x-gone'), undefined);
  });

  test('may lead to an answer of the proxy itself', async (t) => {
    const web = await answering({ '/web': redirect('http://x/direct') });
    const { proxy, client, counts } = await benchOf(t, web, await answering({}));
    const wire = client().write(get('/web'));
    assert.equal((await wire.response()).body, 'direct');
    assert.deepEqual(counts(), [1, 0]);
    assert.equal((await wire.write(get('/direct')).response()).body, 'direct');
    assertBalanced(proxy);
  });

  test('is followed as often as the policies on the way allow', async (t) => {
    const web = await answering({
      '/web/0': redirect('http://x/web/1'),
      '/web/1': redirect('http://x/web/2'),
      '/web/2': redirect('http://x/web/3'),
    });
    const { proxy, client, counts } = await benchOf(t, web, await answering({}), { policy: { maxRedirects: 2 } });
    const reply = await client().write(get('/web/0')).response();
    assert.deepEqual([reply.status, field(reply.head, 'location')], [302, 'http://x/web/3']);
    assert.deepEqual(counts(), [2, 1]);
    assert.equal(proxy.httpStat('passthrough_internal_redirect_too_many_redirects'), 1);
    assert.equal(field(web.heads[2]!, 'x-proxy-original-url'), 'http://x/web/1');
    assert.equal(web.heads[2]!.match(/original-url/g)!.length, 1);
    assertBalanced(proxy);
  });

  test('is followed after a retry, and its target is tried again by its own route', async (t) => {
    const web = await answering({ '/web': redirect('http://x/other') });
    const other = await answering({ '/other': 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n' });
    const retrying = routeFor('/other', forwardTo('other', { retry: retrySettings() }));
    const { proxy, client } = await benchOf(t, web, other, {
      routes: [retrying],
      route: { retry: retrySettings({ perTryTimeoutMs: 5000 }) },
    });
    assert.equal((await client().write(get('/web')).response()).status, 503);
    assert.equal(other.heads.length, 2);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    assert.equal(proxy.clusterStat('other', 'upstream_rq_retry'), 1);
    assertBalanced(proxy);
  });

  test('gives its target all of the time of its route', async (t) => {
    const clock = new ManualClock();
    const web = await answering({});
    const other = await answering({});
    const { client } = await benchOf(t, web, other, { clock, route: { timeoutMs: 800 } });
    const wire = client().write(get('/web'));
    await eventually(() => web.heads.length === 1, 'the request arrives');
    clock.turn(700);
    web.sockets[0]!.write(redirect('http://x/other'));
    await eventually(() => other.heads.length === 1, 'it goes on');
    clock.turn(900);
    assert.equal(wire.isEnded, false);
    clock.turn(200);
    assert.equal((await wire.response()).status, 504);
  });
});

describe('a redirect goes to the client', () => {
  interface Case {
    readonly name: string;
    readonly answer: string;
    readonly policy?: Partial<InternalRedirectSettings>;
    /** Where the router counts it. */
    readonly stat?: `passthrough_internal_redirect_${string}`;
    /** It is none of the policy's business. */
    readonly isUncounted?: true;
  }
  const cases: readonly Case[] = [
    { name: 'of another status', answer: redirect('http://x/other', 301), isUncounted: true },
    { name: 'without a location', answer: 'HTTP/1.1 302 X\r\ncontent-length: 0\r\n\r\n' },
    { name: 'to a path alone', answer: redirect('/other'), stat: 'passthrough_internal_redirect_bad_location' },
    { name: 'to nowhere', answer: redirect('http:///other'), stat: 'passthrough_internal_redirect_bad_location' },
    { name: 'for a user', answer: redirect('http://u@x/other'), stat: 'passthrough_internal_redirect_bad_location' },
    {
      name: 'of another protocol',
      answer: redirect('ftp://x/other'),
      stat: 'passthrough_internal_redirect_bad_location',
    },
    { name: 'to https', answer: redirect('https://x/other'), stat: 'passthrough_internal_redirect_unsafe_scheme' },
    {
      name: 'to https that a predicate holds to be unsafe',
      answer: redirect('https://x/other'),
      policy: { allowsCrossScheme: true, predicates: [{ kind: 'safe-cross-scheme' }] },
      stat: 'passthrough_internal_redirect_predicate',
    },
    { name: 'to where no route is', answer: redirect('http://x/no'), stat: 'passthrough_internal_redirect_no_route' },
    {
      name: 'to a route that is not allowed',
      answer: redirect('http://x/other'),
      policy: { predicates: [{ kind: 'allowed-routes', names: ['web'] }] },
      stat: 'passthrough_internal_redirect_predicate',
    },
    {
      name: 'where none may be followed',
      answer: redirect('http://x/other'),
      policy: { maxRedirects: 0 },
      stat: 'passthrough_internal_redirect_too_many_redirects',
    },
  ];
  for (const { name, answer, policy, stat, isUncounted } of cases) {
    test(name, async (t) => {
      const web = await answering({ '/web': answer });
      const other = await answering({ '/other': OK });
      const { proxy, client, counts } = await benchOf(t, web, other, policy === undefined ? {} : { policy });
      const reply = await client().write(get('/web')).response();
      assert.equal(reply.status, Number(answer.split(' ')[1]));
      assert.deepEqual(counts(), isUncounted ? [0, 0] : [0, 1]);
      if (stat !== undefined) assert.equal(proxy.httpStat(stat as Parameters<typeof proxy.httpStat>[0]), 1);
      assert.deepEqual(other.heads, []);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 1);
      assertBalanced(proxy);
    });
  }

  test('while the request has not come in full, and where its body was too much to be kept', async (t) => {
    const web = await WireUpstream.answering(redirect('http://x/other'));
    const { client, counts } = await benchOf(t, web, await answering({}), {
      route: { replayLimitBytes: 4 },
    });
    const early = client().write('POST /web HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc');
    assert.equal((await early.response()).status, 302);
    const large = client().write('POST /web HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabcdef');
    assert.equal((await large.response()).status, 302);
    assert.deepEqual(counts(), [0, 2]);
  });

  test('that leads to a route which it led to before from here', async (t) => {
    const web = await answering({ '/web/0': redirect('http://x/web/1'), '/web/1': redirect('http://x/web/2') });
    const { proxy, client, counts } = await benchOf(t, web, await answering({}), {
      policy: { maxRedirects: 9, predicates: [{ kind: 'previous-routes' }] },
    });
    const reply = await client().write(get('/web/0')).response();
    assert.deepEqual([reply.status, field(reply.head, 'location')], [302, 'http://x/web/2']);
    assert.deepEqual(counts(), [1, 1]);
    assert.equal(proxy.httpStat('passthrough_internal_redirect_predicate'), 1);
  });
});

test('a redirect to https is followed where that is allowed', async (t) => {
  const web = await answering({ '/web': redirect('https://x/other') });
  const other = await answering({ '/other': OK });
  const { client } = await benchOf(t, web, other, { policy: { allowsCrossScheme: true } });
  assert.equal((await client().write(get('/web')).response()).status, 200);
});
