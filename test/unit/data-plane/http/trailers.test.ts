// Trailers as an object: what is read from their lines, what edits make of them, and what may never be one.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../../../../src/base/errors.ts';
import { insertTrailers, Trailers } from '../../../../src/data-plane/http/trailers.ts';

describe('trailers', () => {
  it('are found by name in lower case, and written as they came', () => {
    const trailers = Trailers.parse('X-Sum: 1\r\nx-sum:\t2 \r\nETag:"a: b"\r\n\r\n');
    assert.equal(trailers.size, 3);
    assert.equal(trailers.get('x-sum'), '1, 2');
    assert.equal(trailers.get('etag'), '"a: b"');
    assert.equal(trailers.get('X-Sum'), undefined);
    assert.equal(trailers.text(), 'X-Sum: 1\r\nx-sum: 2\r\nETag: "a: b"\r\n');
  });

  it('are added to, replaced and taken out by name', () => {
    const trailers = Trailers.parse('X-A: 1\r\nX-B: 2\r\nx-a: 3\r\n');
    trailers.set('X-a', '4');
    trailers.append('x-c', '5');
    trailers.remove('x-b');
    assert.deepEqual(trailers.entries(), [
      ['x-a', '4'],
      ['x-c', '5'],
    ]);
  });

  it('are never what would break a line, or frame, route or identify a message', () => {
    const trailers = new Trailers();
    for (const [name, value] of [
      ['', 'a'],
      ['a b', 'a'],
      ['a:', 'a'],
      ['x-a', 'a\r\nb: c'],
      ['x-a', '\0'],
      ['x-a', '\u0100'],
      ['Content-Length', '1'],
      ['transfer-encoding', 'chunked'],
      ['HOST', 'a'],
      ['Set-Cookie', 'a=b'],
      ['X-Forwarded-For', '1.2.3.4'],
    ] as const) {
      assert.throws(
        () => trailers.append(name, value),
        (error) => error instanceof WeirError && error.code === 'WEIR_HTTP1_TRAILER',
        name,
      );
    }
    assert.equal(trailers.size, 0);
  });

  it('stand before the last empty line of a body', () => {
    const trailers = Trailers.parse('x-a: \xe4\r\n');
    const bytes = Buffer.from('..0\r\n\r\n..');
    assert.equal(insertTrailers(bytes, 2, 7, trailers).toString('latin1'), '0\r\nx-a: \xe4\r\n\r\n');
  });
});
