// Node's own parser, asked through a real node:http server, must accept whatever this codec accepts: where the two
// disagree, this one is the stricter.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Http1Codec } from '../../src/wasm/http1.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { eventsOf } from '../support/http1-event-log.ts';

/** A good request behind each input: a body that one of the two ends elsewhere would swallow or split it. */
const FOLLOWER = 'GET /follower HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

describe('HTTP/1 codec against node:http', () => {
  const codec = new Http1Codec({ name: 'http1', module: compileModule('http1') });
  const served: string[] = [];
  const server = http.createServer({ insecureHTTPParser: false }, (request, response) => {
    let body = '';
    request.setEncoding('latin1');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('error', () => undefined);
    request.on('end', () => {
      served.push(`${request.method} ${request.url} ${JSON.stringify(body)}`);
      response.end();
    });
  });
  server.on('clientError', (_, socket) => socket.destroy());

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());

  async function servedByNode(text: string): Promise<string[]> {
    served.length = 0;
    const { port } = server.address() as net.AddressInfo;
    const socket = net.connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.resume();
    socket.end(text, 'latin1');
    await once(socket, 'close');
    return [...served];
  }

  /** The same list from this codec: `METHOD path "body"` of every message that ended. */
  function servedHere(text: string): string[] {
    const limits = { maxHeadBytes: 16384, maxFields: 100 };
    const events = eventsOf(codec, { direction: 'request', method: 'GET', limits }, [Buffer.from(text, 'latin1')]);
    const messages: string[] = [];
    let line = '';
    for (const event of events) {
      const start = /^request (\S+ )"(.*)" for /.exec(event);
      if (start !== null) line = start[1]! + start[2]!;
      const end = /^(?:no body|\w+ body (".*?")(?: trailers .*)?)$/.exec(event);
      if (end !== null) messages.push(`${line} ${end[1] ?? '""'}`);
    }
    return messages;
  }

  const post = (...fields: string[]): string => `POST /first HTTP/1.1\r\nHost: a\r\n${fields.join('\r\n')}\r\n\r\n`;
  const chunked = (body: string): string => post('Transfer-Encoding: chunked') + body;
  const inputs = [
    `${post('Content-Length: 5')}hello`,
    post('Content-Length: 0'),
    `${post('Content-Length: 5', 'Content-Length: 5')}hello`,
    `${post('Content-Length: 5', 'Content-Length: 6')}hello`,
    `${post('Content-Length: 5, 5')}hello`,
    `${post('Content-Length: +5')}hello`,
    `${post('Content-Length: 5 ')}hello`,
    `${post('Content-Length : 5')}hello`,
    `${post('Content-Length: 0x5')}hello`,
    `${post('Content-Length:')}hello`,
    `${post('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    `${post('Transfer-Encoding: chunked', 'Content-Length: 5')}0\r\n\r\n`,
    `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    `${post('Transfer-Encoding: chunked, gzip')}0\r\n\r\n`,
    `${post('Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
    `${post('Transfer-Encoding: xchunked')}0\r\n\r\n`,
    post('Transfer-Encoding: identity'),
    `${post('Transfer-Encoding:\tchunked')}0\r\n\r\n`,
    `${post('Transfer-Encoding: \vchunked')}0\r\n\r\n`,
    `${post('Transfer-Encoding : chunked')}0\r\n\r\n`,
    `${post('Transfer-Encoding:', ' chunked')}0\r\n\r\n`,
    `${post('X: y\nTransfer-Encoding: chunked')}0\r\n\r\n`,
    `${post('X: y\rTransfer-Encoding: chunked')}0\r\n\r\n`,
    post('X: a\0b'),
    post('X\0: b'),
    post('X: a\x7fb'),
    post('X: caf\xe9'),
    post('X\xe9: b'),
    post(': b'),
    post('no colon'),
    post(' folded'),
    chunked('5\r\nhello\r\n0\r\n\r\n'),
    chunked('5;a=b\r\nhello\r\n0\r\n\r\n'),
    chunked('5;a="b"\r\nhello\r\n0\r\n\r\n'),
    chunked('5;a\nhello\r\n0\r\n\r\n'),
    chunked('5 \r\nhello\r\n0\r\n\r\n'),
    chunked(' 5\r\nhello\r\n0\r\n\r\n'),
    chunked('0x5\r\nhello\r\n0\r\n\r\n'),
    chunked('5\nhello\r\n0\r\n\r\n'),
    chunked('5\r\nhello\n0\r\n\r\n'),
    chunked('5\r\nhelloo\r\n0\r\n\r\n'),
    chunked('5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n'),
    chunked('5\r\nhello\r\n0\r\nX-T : 1\r\n\r\n'),
    chunked('5\r\nhello\r\n0\r\n\n'),
    chunked('100000000000000000\r\nhello\r\n0\r\n\r\n'),
    'GET /first HTTP/1.1\r\n\r\n',
    'GET /first HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
    'GET  /first HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /first  HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /first HTTP/1.1 \r\nHost: a\r\n\r\n',
    'GET /first\tHTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /fi\0rst HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /first HTTP/1.1\nHost: a\n\n',
    'GET /first HTTP/2.0\r\nHost: a\r\n\r\n',
    'GET /first HTTP/1.2\r\nHost: a\r\n\r\n',
    'GET /first\r\n\r\n',
    '\r\nGET /first HTTP/1.1\r\nHost: a\r\n\r\n',
    '\r\n\r\nGET /first HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /first HTTP/1.1\r\n Host: a\r\n\r\n',
    'GET /first HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    'GET /first HTTP/1.0\r\nHost: a\r\n\r\n',
    'GET /first HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n',
  ];

  /** Inputs of which node serves more, and the rule that refuses them here. */
  const stricter = new Map([
    [
      `${post('Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
      'a coding that nobody here can undo is 501 (RFC 9112 6.1)',
    ],
    ['GET /first HTTP/1.1\r\n\r\n', 'a request without Host ends the connection (RFC 9112 3.2)'],
    ['GET /first HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 'two Hosts are refused (RFC 9112 3.2)'],
    ['GET  /first HTTP/1.1\r\nHost: a\r\n\r\n', 'exactly one space between the parts (RFC 9112 3)'],
    ['GET /first  HTTP/1.1\r\nHost: a\r\n\r\n', 'exactly one space between the parts (RFC 9112 3)'],
    ['GET /first HTTP/2.0\r\nHost: a\r\n\r\n', 'no version but 1.0 and 1.1'],
    ['GET /first\r\n\r\n', 'no HTTP/0.9'],
    ['\r\n\r\nGET /first HTTP/1.1\r\nHost: a\r\n\r\n', 'at most one empty line before a request (RFC 9112 2.2)'],
  ]);

  it('serves each message as node does, or refuses what node serves for a rule that is known', async () => {
    for (const input of inputs) {
      const here = servedHere(input + FOLLOWER);
      const node = await servedByNode(input + FOLLOWER);
      // A strict reader sees the first messages that a lax one sees, and then stops.
      assert.deepEqual(here, node.slice(0, here.length), JSON.stringify(input));
      const rule = stricter.get(input) ?? '';
      assert.equal(here.length < node.length, rule !== '', `${JSON.stringify(input)} ${rule}`);
    }
  });
});
