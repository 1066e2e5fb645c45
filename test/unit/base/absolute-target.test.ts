// Where absolute URLs lead.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { absoluteTarget } from '../../../src/base/absolute-target.ts';

describe('an absolute URL', () => {
  for (const [location, isHttps, authority, target] of [
    ['http://a/', false, 'a', '/'],
    ['https://a/', true, 'a', '/'],
    ['HTTP://A:8080/p/q?x=/?#f', false, 'A:8080', '/p/q?x=/?'],
    ['HTTPS://a', true, 'a', '/'],
    ['http://a?q', false, 'a', '/?q'],
    ['http://a#f', false, 'a', '/'],
    ['http://a?q#f#g /', false, 'a', '/?q'],
    ['http://[::1]:80/', false, '[::1]:80', '/'],
  ] as const) {
    test(`${location} leads to ${authority} and asks for ${target}`, () => {
      assert.deepEqual(absoluteTarget(location), { isHttps, authority, target });
    });
  }

  for (const location of [
    '',
    '/p',
    '//a/p',
    'a/p',
    'http:/a',
    'http:///p',
    'http://',
    'ftp://a/',
    'httpx://a/',
    ' http://a/',
    'xhttp://a/',
    'http://u@a/',
    'http://a b/',
    'http://a/ b',
    'http://a\\b c',
  ]) {
    test(`${JSON.stringify(location)} leads nowhere`, () => {
      assert.equal(absoluteTarget(location), undefined);
    });
  }
});
