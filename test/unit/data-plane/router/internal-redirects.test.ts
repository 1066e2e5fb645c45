// Which redirects of one request are followed, and the body that goes along.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { InternalRedirects } from '../../../../src/data-plane/router/internal-redirects.ts';
import type { InternalRedirectSettings, RedirectPredicate } from '../../../../src/snapshot/index.ts';

const POLICY: InternalRedirectSettings = {
  maxRedirects: 1,
  statuses: [302, 303],
  predicates: [],
  allowsCrossScheme: false,
  headersToCopy: [],
};

function added(redirects: InternalRedirects, text: string, start = 0, end = text.length): void {
  redirects.keep(Buffer.from(text), start, end);
}

describe('a response', () => {
  test('may lead elsewhere by its status, where the route has a policy', () => {
    const redirects = new InternalRedirects(10);
    assert.ok(!redirects.concerns(302));
    redirects.policy = POLICY;
    assert.deepEqual(
      [301, 302, 303, 304].map((status) => redirects.concerns(status)),
      [false, true, true, false],
    );
    assert.equal(redirects.count, 0);
  });
});

describe('the body of a request that may be redirected', () => {
  test('goes along, as far as it is within the limit', () => {
    const redirects = new InternalRedirects(6);
    assert.equal(redirects.body().length, 0);
    added(redirects, 'xabcx', 1, 4);
    added(redirects, 'def');
    assert.ok(redirects.isKept);
    assert.equal(redirects.body().toString(), 'abcdef');
    added(redirects, '!');
    assert.ok(!redirects.isKept);
    assert.equal(redirects.body().length, 0);
    added(redirects, 'g');
    assert.ok(!redirects.isKept);
  });

  test('ends with a redirect that wants none', () => {
    const redirects = new InternalRedirects(6);
    added(redirects, 'abc');
    redirects.dropBody();
    assert.ok(redirects.isKept);
    assert.equal(redirects.body().length, 0);
    added(redirects, '');
    assert.ok(redirects.isKept);
  });
});

describe('a redirect', () => {
  const accepts = (
    redirects: InternalRedirects,
    predicates: readonly RedirectPredicate[],
    { from = 'a', to = 'b', isHttps = false } = {},
  ): boolean => redirects.accepts(predicates, from, to, isHttps);
  const fresh = (): InternalRedirects => new InternalRedirects(0);

  test('is followed anywhere where nothing is said', () => {
    assert.ok(accepts(fresh(), [], { isHttps: true }));
  });

  test('leads to an allowed route', () => {
    const allowed: RedirectPredicate = { kind: 'allowed-routes', names: ['b', 'c'] };
    assert.ok(accepts(fresh(), [allowed], { to: 'c' }));
    assert.ok(!accepts(fresh(), [allowed], { to: 'a' }));
  });

  test('leads from a route to each other one once', () => {
    const redirects = fresh();
    const previous: RedirectPredicate = { kind: 'previous-routes' };
    const follow = (from: string, to: string): boolean => accepts(redirects, [previous], { from, to });
    assert.deepEqual(
      [follow('a', 'b'), follow('a', 'c'), follow('a', 'b'), follow('b', 'b'), follow('a', 'c'), follow('b', 'b')],
      [true, true, false, true, false, false],
    );
    assert.ok(accepts(fresh(), [previous]));
  });

  test('does not lead to another scheme where that is not safe', () => {
    const safe: RedirectPredicate = { kind: 'safe-cross-scheme' };
    assert.ok(accepts(fresh(), [safe]));
    assert.ok(!accepts(fresh(), [safe], { isHttps: true }));
  });

  test('is followed when all of them hold', () => {
    const safe: RedirectPredicate = { kind: 'safe-cross-scheme' };
    const allowed: RedirectPredicate = { kind: 'allowed-routes', names: ['b'] };
    assert.ok(accepts(fresh(), [safe, allowed]));
    assert.ok(!accepts(fresh(), [safe, allowed], { to: 'a' }));
    assert.ok(!accepts(fresh(), [allowed, safe], { isHttps: true }));
  });
});
