// Messages whose ends can be read in more than one way, through every filter that holds or rewrites bodies: nothing that is a body to the proxy
// may become a request to an upstream, nor a response to another client.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BODY_FILTERS, BodyFilterProxy, bodyFor, HIDDEN, pathsOf } from '../support/body-filters.ts';

/** What no recipient may take for one request, without its first line. */
const REQUESTS: Readonly<Record<string, string>> = {
  'a length beside chunks': `content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'chunks beside a length': `transfer-encoding: chunked\r\ncontent-length: ${HIDDEN.length}\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'two lengths': `content-length: 0\r\ncontent-length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'two lengths in one field': `content-length: 0, ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'a length with a sign': `content-length: +0\r\n\r\n${HIDDEN}`,
  'a negative length': `content-length: -1\r\n\r\n${HIDDEN}`,
  'a hexadecimal length': `content-length: 0x0\r\n\r\n${HIDDEN}`,
  'a folded coding': `transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a folded length': `content-length:\r\n 0\r\n\r\n${HIDDEN}`,
  'a space before the colon': `content-length: 5\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a coding before chunked': `transfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a coding behind chunked': `transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'two codings': `transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'an unknown coding': `transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a coding with a control character': `transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'chunked twice': `transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'chunked twice in one field': `transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a length that overflows': `content-length: ${2n ** 64n}\r\n\r\n${HIDDEN}`,
  'a length beyond exact numbers': `content-length: ${2n ** 53n + 1n}\r\n\r\n${HIDDEN}`,
  'a length that ends with LF': `content-length: 5\ncontent-length: 0\r\n\r\n${HIDDEN}`,
  'a head that ends with LF': `content-length: 0\r\n\n${HIDDEN}`,
  'a NUL in a field': `x-a: a\x00b\r\ncontent-length: 0\r\n\r\n${HIDDEN}`,
  'a bare CR in a field': `x-a: a\rcontent-length: 5\r\ncontent-length: 0\r\n\r\n${HIDDEN}`,
  'a size of chunks with a sign': `transfer-encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a size of chunks with a prefix': `transfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a size of chunks that overflows': `transfer-encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'an empty size of chunks': `transfer-encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk longer than its size': `transfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk extension that ends with LF': `transfer-encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk extension with a bare CR': `transfer-encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'an extension of chunks that does not end': `transfer-encoding: chunked\r\n\r\n5;${'a'.repeat(70_000)}`,
  'extensions of many chunks': `transfer-encoding: chunked\r\n\r\n${`1;${'a'.repeat(8000)}\r\nx\r\n`.repeat(20)}0\r\n\r\n${HIDDEN}`,
  'a chunk that ends with LF': `transfer-encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n${HIDDEN}`,
};

/** What upstreams may not answer, in place of `HTTP/1.1 200 OK` with a body. */
const STOLEN = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nstolen';
const RESPONSES: Readonly<Record<string, string>> = {
  'a length beside chunks': `content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${STOLEN}`,
  'two lengths': `content-length: 2\r\ncontent-length: 3\r\n\r\nok${STOLEN}`,
  'a length with a sign': `content-length: +2\r\n\r\nok${STOLEN}`,
  'a folded length': `content-length:\r\n 2\r\n\r\nok${STOLEN}`,
  'an unknown coding behind chunked': `transfer-encoding: chunked, x\r\n\r\n0\r\n\r\n${STOLEN}`,
  'a size of chunks with a sign': `transfer-encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n${STOLEN}`,
  'a chunk longer than its size': `transfer-encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n${STOLEN}`,
  'more than its length': `content-length: 2\r\n\r\nok${STOLEN}`,
  'more than its chunks': `transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n${STOLEN}`,
};

/** Of a message with a book in it that has nothing but a title, behind the number of a shelf. */
function textWithin(message: string): string {
  const at = message.indexOf('GET ');
  return message.slice(at, at + HIDDEN.length);
}

describe('bodies whose ends can be read in more than one way', () => {
  let proxy: BodyFilterProxy;

  before(async () => {
    proxy = await BodyFilterProxy.start();
  });

  after(() => proxy?.close());

  beforeEach(() => proxy.reset());

  /** All that comes back, until the proxy ends the connection. Whoever ends it first is gone, and hears of nothing. */
  async function exchange(listener: string, text: string, later = ''): Promise<string> {
    const socket = connect(proxy.portOf(listener), '127.0.0.1');
    let told = '';
    socket.setEncoding('latin1').on('data', (part) => {
      told += part;
    });
    socket.on('error', () => {}).write(text, 'latin1');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    if (later !== '') {
      for (let turn = 0; turn < 5; turn += 1) await nextTurn();
      socket.write(later, 'latin1');
    }
    await closed;
    return told;
  }

  for (const filter of Object.keys(BODY_FILTERS)) {
    it(`never make requests of bodies, with ${filter}`, async () => {
      for (const [shape, text] of Object.entries(REQUESTS)) {
        const { to, at } = pathsOf(filter);
        for (const type of ['text/plain', 'application/json', 'application/grpc', 'application/grpc-web']) {
          const fields = `host: a\r\ncontent-type: ${type}\r\ncontent-encoding: gzip\r\n`;
          const what = `${shape}, ${type}`;
          const told = await exchange(filter, `POST ${to} HTTP/1.1\r\n${fields}${text}`);
          assert.deepEqual(
            proxy.asked.filter(({ url }) => url !== to && url !== at && url !== '/other'),
            [],
            what,
          );
          assert.equal(proxy.misread, 0, what);
          // Nobody is told that it was fine: a 400, or nothing where an answer had begun.
          assert.doesNotMatch(told, /fine/, what);
          assert.ok((told.match(/HTTP\/1\.1 /g)?.length ?? 0) <= 1, what);
        }
      }
    });

    it(`go on as one request where there is one way to read them, with ${filter}`, async () => {
      const body = bodyFor(filter);
      const { to, at } = pathsOf(filter);
      const size = body.length.toString(16);
      const fields = `POST ${to} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: text/plain\r\n${
        filter === 'decompressor' ? 'content-encoding: gzip\r\n' : ''
      }`;
      const shapes = [
        `content-length: ${body.length}\r\n\r\n${body}`,
        `transfer-encoding: chunked\r\n\r\n${size};ext="a;b"\r\n${body}\r\n0\r\n\r\n`,
        `transfer-encoding: chunked\r\n\r\n000${size}\r\n${body}\r\n000\r\ncontent-length: 3\r\ntransfer-encoding: x\r\nhost: b\r\n\r\n`,
      ];
      for (const text of shapes) {
        proxy.reset();
        const told = await exchange(filter, fields + text);
        // Trailers that frame a message are left out, or have it refused.
        assert.match(
          told,
          text.includes('000\r\ncontent-length') ? /^HTTP\/1\.1 (200|400) / : /^HTTP\/1\.1 200 /,
          text,
        );
        assert.equal(proxy.misread, 0, text);
        for (const { url, lines } of proxy.asked) {
          assert.ok(url === at || url === '/other', text);
          const names = lines.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
          for (const name of ['host', 'content-length', 'transfer-encoding']) {
            assert.ok(names.filter((each) => each === name).length <= 1, `${name} twice: ${text}`);
          }
          assert.ok(!(names.includes('content-length') && names.includes('transfer-encoding')), text);
        }
        const seen = proxy.asked.filter(({ url, body: bytes }) => url === at && bytes !== '');
        if (told.startsWith('HTTP/1.1 200') && filter !== 'compressor') {
          // A message has its fields between others.
          const bodies = seen.map(({ body: bytes }) => (filter === 'grpc_json_transcoder' ? textWithin(bytes) : bytes));
          assert.deepEqual(new Set(bodies), new Set([HIDDEN]), text);
        }
      }
    });

    it(`are not gone on with behind an answer that came early, with ${filter}`, async () => {
      const long = HIDDEN.repeat(10_000);
      const last = 'GET /direct HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n';
      for (const body of [HIDDEN, long]) {
        const shapes = [
          [`content-length: ${body.length}\r\n\r\n`, body + last],
          [`transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`, `${body}\r\n0\r\n\r\n${last}`],
          [`content-length: ${body.length}\r\nexpect: 100-continue\r\n\r\n`, body + last],
        ];
        for (const [head, rest] of shapes as [string, string][]) {
          const told = await exchange(filter, `POST /direct HTTP/1.1\r\nhost: a\r\n${head}`, rest);
          assert.doesNotMatch(told, /fine/, head);
          const statuses = told.match(/(?<=HTTP\/1\.1 )\d+/g)?.filter((status) => status !== '100') ?? [];
          assert.ok(statuses.length <= 2, `${head}: ${statuses}`);
          assert.ok(
            proxy.asked.every(({ url }) => url !== '/hidden'),
            head,
          );
          assert.equal(proxy.misread, 0, head);
        }
      }
    });

    it(`change neither the protocol nor the way of what follows them, with ${filter}`, async () => {
      const settings = 'connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n';
      const shapes = [
        `POST /seen HTTP/1.1\r\nhost: a\r\n${settings}content-length: 5\r\n\r\nhelloPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
        `GET /seen HTTP/1.1\r\nhost: a\r\n${settings}\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
        `CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n${HIDDEN}`,
        `CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\ncontent-length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
        `CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
      ];
      for (const text of shapes) {
        proxy.reset();
        const told = await exchange(filter, text);
        assert.doesNotMatch(told, /HTTP\/1\.1 101/, text);
        if (text.startsWith('CONNECT')) assert.match(told, /^HTTP\/1\.1 4\d\d /, text);
        assert.equal(proxy.misread, 0, text);
        for (const { url, lines } of proxy.asked) {
          assert.notEqual(url, '/hidden', text);
          assert.doesNotMatch(lines.join('\n'), /^(upgrade|http2-settings)$/im, text);
        }
      }
    });

    it(`never answer another client, with ${filter}`, async () => {
      for (const [shape, text] of Object.entries(RESPONSES)) {
        for (const type of ['text/plain', 'application/grpc', 'text/plain']) {
          proxy.answer = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${text}`;
          const { wire: path } = pathsOf(filter);
          const told = await exchange(filter, `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
          assert.doesNotMatch(told, /stolen/, shape);
          assert.equal(told.match(/HTTP\/1\.1 /g)?.length, 1, shape);
        }
      }
    });
  }
});
