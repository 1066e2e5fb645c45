import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterAuthority, isAuthority } from '../../../src/base/authority.ts';

test('a host, and perhaps a port, can be named by a request', () => {
  for (const text of ['a', 'a_b.test:80', '127.0.0.1', '[::1]:443', 'a;b=c', 'A.TEST'])
    assert.ok(isAuthority(text), text);
  for (const text of ['', ' ', 'a b', 'a|b', 'a/b', 'a@b', 'a:b', ':80', '[::1', 'ä', 'a\r\nb', 'a:800000']) {
    assert.ok(!isAuthority(text), text);
  }
});

test('clusters are named as they are, as far as hosts may be', () => {
  assert.equal(clusterAuthority('auth_service.prod'), 'auth_service.prod');
  assert.equal(clusterAuthority('outbound|8080||reviews.default.svc'), 'outbound-8080-reviews.default.svc');
  assert.ok(isAuthority(clusterAuthority('a:b/c ü')));
});
