// Redirects that the router follows itself: when, where to, with what, and what is counted when it does not.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InternalRedirects } from '../../../../src/data-plane/router/internal-redirects.ts';
import { UpstreamAttempt } from '../../../../src/data-plane/router/upstream-attempt.ts';
import type { InternalRedirectSettings } from '../../../../src/snapshot/index.ts';
import type { HTTP_STATS } from '../../../../src/stats/index.ts';
import { RouterBench } from '../../../support/router-bench.ts';
import { directRoute, forwardTo, routeFor } from '../../../support/routes.ts';

const POLICY: InternalRedirectSettings = {
  maxRedirects: 1,
  statuses: [302, 303],
  predicates: [],
  allowsCrossScheme: false,
  headersToCopy: [],
};
const FAILURES: readonly (keyof typeof HTTP_STATS.index)[] = [
  'passthrough_internal_redirect_bad_location',
  'passthrough_internal_redirect_no_route',
  'passthrough_internal_redirect_predicate',
  'passthrough_internal_redirect_too_many_redirects',
  'passthrough_internal_redirect_unsafe_scheme',
];

class RedirectBench extends RouterBench {
  /** What the request has sent. */
  readonly head: string;

  constructor(policy: Partial<InternalRedirectSettings> = {}, startLine = 'GET /from') {
    const internalRedirects = { ...POLICY, ...policy };
    super([
      routeFor('/from', forwardTo('web', { internalRedirects, timeoutMs: 0 }), { name: 'from' }),
      routeFor('/to', forwardTo('web', { timeoutMs: 0 }), { name: 'to' }),
      routeFor('/again', forwardTo('web', { internalRedirects, timeoutMs: 0 }), { name: 'again' }),
      directRoute('/direct', 200, 'direct'),
    ]);
    this.head = this.routed(startLine, 'a: 1')!.head;
  }

  get redirects(): InternalRedirects {
    return this.stream.redirects!;
  }

  follow(location: string | null, status = 302, ...lines: readonly string[]) {
    this.answer(status, ...(location === null ? [] : [`location: ${location}`]), ...lines);
    return this.router.follow(this.stream.asStream, this.redirects, this.head);
  }

  /** Of the failures alone. */
  get failures(): string[] {
    return FAILURES.filter((name) => this.httpStat(name) > 0).map((name) => name.slice(30));
  }

  get counts(): number[] {
    const names = ['upstream_internal_redirect_succeeded_total', 'upstream_internal_redirect_failed_total'] as const;
    return names.map((name) => this.stat(name));
  }
}

describe('a redirect that the router follows', () => {
  test('leads to the route of its location, with a head of its own', () => {
    const bench = new RedirectBench();
    const { stream } = bench;
    const request = bench.follow('http://new/to?q')!;
    assert.ok(request instanceof UpstreamAttempt);
    assert.equal(
      request.head,
      'GET /to?q HTTP/1.1\r\nhost: new\r\na: 1\r\nedited: 1\r\nx-proxy-original-url: http://h/from\r\n\r\n',
    );
    assert.equal(stream.route?.name, 'to');
    assert.equal(bench.redirects.count, 1);
    assert.equal(bench.redirects.policy, null);
    assert.equal(stream.setCookies, null);
    assert.deepEqual(bench.counts, [1, 0]);
    assert.deepEqual(bench.failures, []);
    assert.equal(bench.httpStat('rq_total'), 2);
  });

  test('may lead to an answer of the proxy', () => {
    const bench = new RedirectBench();
    assert.equal(bench.follow('http://new/direct'), null);
    assert.deepEqual(
      bench.stream.replies.map(({ body }) => body),
      ['direct'],
    );
    assert.deepEqual(bench.counts, [1, 0]);
  });

  test('may lead to a further one, as often as the policy on the way allows', () => {
    const bench = new RedirectBench({ maxRedirects: 2 });
    const { redirects } = bench;
    assert.ok(bench.follow('http://new/again'));
    assert.equal(bench.redirects, redirects);
    assert.notEqual(redirects.policy, null);
    assert.ok(bench.follow('http://new/again'));
    assert.equal(bench.follow('http://new/again'), undefined);
    assert.deepEqual(bench.failures, ['too_many_redirects']);
    assert.equal(redirects.count, 2);
    assert.deepEqual(bench.counts, [2, 1]);
  });

  test('takes headers of the answer along, as they are', () => {
    const bench = new RedirectBench({ headersToCopy: ['b'] });
    assert.match(bench.follow('http://new/to', 302, 'b: 2\xe9')!.head, /\r\nb: 2\xe9\r\n/);
  });

  for (const [method, status, becomes] of [
    ['GET', 303, 'GET'],
    ['HEAD', 303, 'HEAD'],
    ['POST', 303, 'GET'],
    ['POST', 302, 'POST'],
    ['PUT', 303, 'GET'],
  ] as const) {
    test(`with ${status} makes ${becomes} of ${method}`, () => {
      const bench = new RedirectBench({}, `${method} /from`);
      bench.redirects.keep(Buffer.from('abc'), 0, 3);
      const { head } = bench.follow('http://new/to', status)!;
      assert.ok(head.startsWith(`${becomes} /to `));
      assert.equal(bench.redirects.body().length, becomes === method ? 3 : 0);
    });
  }

  test('keeps a body as long as its route allows', () => {
    const action = forwardTo('web', { internalRedirects: POLICY, replayLimitBytes: 3 });
    const bench = new RouterBench([routeFor('/', action)]);
    bench.routed();
    const redirects = bench.stream.redirects!;
    redirects.keep(Buffer.from('abc'), 0, 3);
    assert.ok(redirects.isKept);
    redirects.keep(Buffer.from('d'), 0, 1);
    assert.ok(!redirects.isKept);
  });

  test('is none of a tunnel, nor of a route without a policy', () => {
    const tunnel = new RouterBench([routeFor('/', forwardTo('web', { internalRedirects: POLICY }))]);
    tunnel.stream.awaitsTunnel = true;
    tunnel.routed();
    assert.equal(tunnel.stream.redirects, null);
    const plain = new RouterBench([routeFor('/', forwardTo('web'))]);
    plain.routed();
    assert.equal(plain.stream.redirects, null);
  });
});

describe('a redirect that goes to the client', () => {
  for (const [what, location, failure] of [
    ['without a location', null, null],
    ['that leads nowhere', '/to', 'bad_location'],
    ['whose target is none', 'http://new/to\xe9', 'bad_location'],
    ['to another scheme', 'https://new/to', 'unsafe_scheme'],
    ['without a route', 'http://new/unknown', 'no_route'],
  ] as const) {
    test(`is one ${what}`, () => {
      const bench = new RedirectBench();
      const { route } = bench.stream;
      assert.equal(bench.follow(location), undefined);
      assert.deepEqual(bench.failures, failure === null ? [] : [failure]);
      assert.deepEqual(bench.counts, [0, 1]);
      assert.equal(bench.redirects.count, 0);
      assert.notEqual(bench.redirects.policy, null);
      assert.equal(bench.stream.route, route);
      assert.deepEqual(bench.stream.setCookies, ['a=b']);
    });
  }

  test('is one of a request that has not come in full, or whose body is too long', () => {
    const early = new RedirectBench();
    early.stream.isRequestComplete = false;
    assert.equal(early.follow('http://new/to'), undefined);
    const long = new RedirectBench();
    long.redirects.keep(Buffer.alloc(2 * 1024 * 1024), 0, 2 * 1024 * 1024);
    assert.equal(long.follow('http://new/to'), undefined);
    for (const bench of [early, long]) {
      assert.deepEqual(bench.failures, []);
      assert.deepEqual(bench.counts, [0, 1]);
    }
  });

  test('is one that a predicate turns down, by the names of both routes', () => {
    const allowed = (names: readonly string[]) => [{ kind: 'allowed-routes', names }] as const;
    const bench = new RedirectBench({ predicates: allowed(['from']) });
    assert.equal(bench.follow('http://new/to'), undefined);
    assert.deepEqual(bench.failures, ['predicate']);
    assert.ok(new RedirectBench({ predicates: allowed(['to']) }).follow('http://new/to'));
    const safe = new RedirectBench({ predicates: [{ kind: 'safe-cross-scheme' }], allowsCrossScheme: true });
    assert.equal(safe.follow('https://new/to'), undefined);
    assert.ok(new RedirectBench({ allowsCrossScheme: true }).follow('https://new/to'));
  });

  test('keeps its body where it would have lost it', () => {
    const bench = new RedirectBench({ predicates: [{ kind: 'allowed-routes', names: [] }] }, 'POST /from');
    bench.redirects.keep(Buffer.from('abc'), 0, 3);
    assert.equal(bench.follow('http://new/to', 303), undefined);
    assert.equal(bench.redirects.body().length, 3);
  });
});
