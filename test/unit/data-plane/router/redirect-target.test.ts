// The head with which a redirect is followed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ProxyHeaders } from '../../../../src/data-plane/http/proxy-headers.ts';
import { type RedirectedHeadOptions, redirectedHead } from '../../../../src/data-plane/router/redirect-target.ts';
import { responseHead } from '../../../support/heads.ts';

const NAMES = new ProxyHeaders();
const TARGET = { isHttps: false, authority: 'new:81', target: '/there?x=1' };

function head(startLine: string, ...lines: readonly string[]): string {
  return `${[`${startLine} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`;
}

function redirected(former: string, options: Partial<RedirectedHeadOptions> = {}): string[] {
  const { response = responseHead(302), ...more } = options;
  const text = redirectedHead(former, NAMES, {
    target: TARGET,
    becomesGet: false,
    headersToCopy: [],
    response,
    ...more,
  });
  assert.ok(text.endsWith('\r\n\r\n'));
  return text.split('\r\n').slice(0, -2);
}

describe('the head of the request that follows', () => {
  test('asks the new host for the new target, and says where it came from', () => {
    assert.deepEqual(redirected(head('POST /here?a=b', 'host: old', 'a: 1', 'content-length: 3')), [
      'POST /there?x=1 HTTP/1.1',
      'host: new:81',
      'a: 1',
      'content-length: 3',
      'x-proxy-original-url: http://old/here?a=b',
    ]);
  });

  test('does not repeat what the router has said of the former one', () => {
    const own = [
      'x-proxy-original-url: http://older/',
      'x-proxy-expected-rq-timeout-ms: 15000',
      'x-proxy-attempt-count: 2',
    ];
    assert.deepEqual(redirected(head('GET /', 'host: old', ...own)), [
      'GET /there?x=1 HTTP/1.1',
      'host: new:81',
      'x-proxy-original-url: http://old/',
    ]);
  });

  test('has no body where it becomes a GET', () => {
    const framing = ['content-length: 3', 'transfer-encoding: chunked', 'trailer: x', 'b: 1'];
    assert.deepEqual(redirected(head('POST /', 'host: old', ...framing), { becomesGet: true }), [
      'GET /there?x=1 HTTP/1.1',
      'host: new:81',
      'b: 1',
      'x-proxy-original-url: http://old/',
    ]);
    assert.deepEqual(redirected(head('POST /', 'host: old', ...framing)).slice(2, -1), framing);
  });

  test('has the headers of the response that are to be copied, in place of its own', () => {
    const former = head('GET /', 'host: old', 'a: mine', 'b: mine', 'c: mine');
    const response = responseHead(302, 'a: 1', 'x: 0', 'A: 2', 'd: 4', 'c: not');
    assert.deepEqual(redirected(former, { headersToCopy: ['a', 'b', 'd'], response }).slice(2, -1), [
      'c: mine',
      'a: 1',
      'a: 2',
      'd: 4',
    ]);
  });

  test('says nothing of a host that the former one did not name', () => {
    assert.equal(redirected(head('GET /p', 'a: 1')).at(-1), 'x-proxy-original-url: http:///p');
  });
});
