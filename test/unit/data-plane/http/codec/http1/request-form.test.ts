// How requests look on the wire to clusters that want a form of their own.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RequestForm } from '../../../../../../src/data-plane/http/codec/http1/request-form.ts';
import { Method } from '../../../../../../src/wasm/http1.ts';
import { assertBalanced, httpBench, OK } from '../../../../../support/http-bench.ts';
import { WireUpstream } from '../../../../../support/wire.ts';

const FULL = new RequestForm({ hasFullUrl: true, hasProperCase: false });
const PROPER = new RequestForm({ hasFullUrl: false, hasProperCase: true });

function head(firstLine: string, ...lines: readonly string[]): string {
  return [firstLine, ...lines, '', ''].join('\r\n');
}

describe('a full URL', () => {
  for (const [name, { lines, expected, method = Method.GET }] of Object.entries({
    'has scheme and host before the path': {
      lines: ['GET /a?b=http://c HTTP/1.1', 'host: x:80'],
      expected: 'GET http://x:80/a?b=http://c HTTP/1.1',
    },
    'has the scheme that the client came with': {
      lines: ['GET /a HTTP/1.1', 'Host: x', 'x-forwarded-proto: https'],
      expected: 'GET https://x/a HTTP/1.1',
    },
    'has no path where the request is about the server': {
      lines: ['OPTIONS * HTTP/1.1', 'host: x'],
      expected: 'OPTIONS http://x HTTP/1.1',
      method: Method.OPTIONS,
    },
    'is none of a tunnel': {
      lines: ['CONNECT x:443 HTTP/1.1', 'host: x:443'],
      expected: 'CONNECT x:443 HTTP/1.1',
      method: Method.CONNECT,
    },
    'is none without a host': { lines: ['GET /a HTTP/1.1', 'host: '], expected: 'GET /a HTTP/1.1' },
    'is left as it is': { lines: ['GET http://y/ HTTP/1.1', 'host: y'], expected: 'GET http://y/ HTTP/1.1' },
  })) {
    test(name, () => {
      const [first, ...rest] = lines;
      assert.equal(FULL.apply(head(first!, ...rest), method), head(expected, ...rest));
    });
  }
});

test('a full URL has the scheme of the connection where that is asked for', () => {
  const came = head('GET /a HTTP/1.1', 'host: x', 'x-forwarded-proto: https');
  assert.equal(FULL.apply(came, Method.GET, 'http'), came.replace('/a', 'http://x/a'));
});

describe('names in proper case', () => {
  test('begin their words in upper case and go on in lower case', () => {
    const came = head(
      'GET /a:b HTTP/1.1',
      'host: x:1',
      'content-TYPE: a-b: c',
      'x-a1b-2c: d',
      'foo$b#$are: e',
      'te: f',
    );
    const goes = head(
      'GET /a:b HTTP/1.1',
      'Host: x:1',
      'Content-Type: a-b: c',
      'X-A1b-2c: d',
      'Foo$B#$Are: e',
      'Te: f',
    );
    for (let round = 0; round < 2; round++) assert.equal(PROPER.apply(came, Method.GET), goes);
  });

  test('change nothing but the case of names, however many there are', () => {
    const name = fc.stringMatching(/^[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,20}$/);
    const value = fc.stringMatching(/^[\x20-\x7e]{0,20}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 400, size: 'max' }), (fields) => {
        const text = head('GET / HTTP/1.1', ...fields.map(([each, of]) => `${each}: ${of}`));
        const formed = PROPER.apply(text, Method.GET);
        assert.equal(formed.toLowerCase(), text.toLowerCase());
        const values = (lines: string): string[] =>
          lines.split('\r\n').map((line) => line.slice(line.indexOf(':') + 1));
        assert.deepEqual(values(formed).slice(1), values(text).slice(1));
      }),
      { numRuns: 50 },
    );
  });
});

test('requests of a cluster go out in its form, and their bodies with them', async (t) => {
  const received: string[] = [];
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk.toString('latin1'));
      socket.write(OK);
    });
    socket.on('end', () => socket.end());
  });
  const cluster = { requestForm: { hasFullUrl: true, hasProperCase: true } };
  const { client, proxy } = await httpBench(t, { upstream, cluster });
  const reply = await client()
    .write('POST /a HTTP/1.1\r\nhost: x\r\nx-own: b\r\ncontent-length: 4\r\n\r\nbody')
    .response();
  assert.equal(reply.status, 200);
  const text = received.join('');
  assert.match(text, /^POST http:\/\/x\/a HTTP\/1\.1\r\n/);
  for (const line of ['Host: x', 'X-Own: b', 'Content-Length: 4', 'X-Forwarded-Proto: http']) {
    assert.ok(text.includes(`\r\n${line}\r\n`), `${line} in ${text}`);
  }
  assert.ok(text.endsWith('\r\n\r\nbody'));
  assertBalanced(proxy);
});
