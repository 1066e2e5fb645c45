import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { NEED_MORE } from '../../../../src/data-plane/listener/listener-filter/filter.ts';
import {
  HTTP_1_0,
  HTTP_1_1,
  HTTP_2,
  httpVersionOf,
  NOT_HTTP,
} from '../../../../src/data-plane/listener/listener-filter/http-preface.ts';

function versionOf(text: string): number {
  const bytes = Buffer.from(`xx${text}`, 'latin1');
  return httpVersionOf(bytes, 2, bytes.length);
}

describe('the beginning of an HTTP connection', () => {
  const KNOWN: readonly (readonly [string, number])[] = [
    ['GET / HTTP/1.1\r\n', HTTP_1_1],
    ['GET / HTTP/1.0\r\n', HTTP_1_0],
    ['\r\nPOST http://a.test/b HTTP/1.1\n', HTTP_1_1],
    ['CONNECT a.test:443 HTTP/1.1\r\n', HTTP_1_1],
    ['PRI * HTTP/1.1\r\n', HTTP_1_1],
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', HTTP_2],
  ];
  for (const [text, version] of KNOWN) {
    it(`shows the version, and not before its end: ${JSON.stringify(text)}`, () => {
      assert.equal(versionOf(text), version);
      assert.equal(versionOf(`${text}more`), version);
      for (let end = 0; end < text.length; end += 1) assert.equal(versionOf(text.slice(0, end)), NEED_MORE);
    });
  }

  it('is none of other protocols, as early as that shows', () => {
    for (const text of ['\x16\x03', ' GET', 'GET\r', '*1\r', 'HELO a\r\n', '{"', 'EHLO\n', 'GET /\x01', 'GET \x7f']) {
      assert.equal(versionOf(text), NOT_HTTP, JSON.stringify(text));
    }
    for (const text of [
      'GET /\r\n',
      'GET / HTTP/1.2\r\n',
      'GET / HTTP/2.0\r\n',
      'GET HTTP/1.1\r\n',
      'GET / http/1.1\n',
    ]) {
      assert.equal(versionOf(text), NOT_HTTP, JSON.stringify(text));
    }
    assert.equal(versionOf('PRI * HTTP/2.0\r\n\r\nXX'), NOT_HTTP);
  });

  it('is looked for in the first 8 KiB', () => {
    const line = (length: number): string => `GET /${'a'.repeat(length - 16)} HTTP/1.1\r\n`;
    assert.equal(versionOf(line(8192)), HTTP_1_1);
    assert.equal(versionOf(line(8193)), NOT_HTTP);
    assert.equal(versionOf('a'.repeat(8191)), NEED_MORE);
    assert.equal(versionOf('a'.repeat(8192)), NOT_HTTP);
  });

  it('once decided stays so, whatever follows', () => {
    const piece = fc.constantFrom(
      'GET ',
      'PRI * HTTP/2.0\r\n',
      '/',
      ' HTTP/1.1',
      '\r',
      '\n',
      '\0',
      'é',
      ' ',
      'SM',
      'a',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        const whole = versionOf(text);
        for (let end = 0; end < text.length; end += 1) {
          const early = versionOf(text.slice(0, end));
          if (early !== NEED_MORE) assert.equal(early, whole);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
