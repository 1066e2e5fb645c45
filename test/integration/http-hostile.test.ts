// Requests that break HTTP or could be read in two ways: refused with the right status, the connection closed, and
// nothing behind them carried out. Nothing of them may reach the upstream.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const HOST = 'host: x\r\n';
const NEXT = 'GET /next HTTP/1.1\r\nhost: x\r\n\r\n';

const REFUSED: readonly { readonly name: string; readonly status: number; readonly bytes: string }[] = [
  {
    name: 'length and chunked',
    status: 400,
    bytes: `POST / HTTP/1.1\r\n${HOST}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  },
  {
    name: 'two equal lengths',
    status: 400,
    bytes: `POST / HTTP/1.1\r\n${HOST}content-length: 1\r\ncontent-length: 1\r\n\r\nx`,
  },
  { name: 'a list of lengths', status: 400, bytes: `POST / HTTP/1.1\r\n${HOST}content-length: 1, 1\r\n\r\nx` },
  { name: 'a signed length', status: 400, bytes: `POST / HTTP/1.1\r\n${HOST}content-length: +1\r\n\r\nx` },
  {
    name: 'a length beyond exact numbers',
    status: 400,
    bytes: `POST / HTTP/1.1\r\n${HOST}content-length: 99999999999999999999\r\n\r\n`,
  },
  { name: 'a folded line', status: 400, bytes: `GET / HTTP/1.1\r\n${HOST}a: b\r\n c\r\n\r\n` },
  { name: 'a bare line feed', status: 400, bytes: `GET / HTTP/1.1\n${HOST}\r\n` },
  { name: 'a bare carriage return', status: 400, bytes: `GET / HTTP/1.1\r\n${HOST}a: b\rc\r\n\r\n` },
  { name: 'a NUL', status: 400, bytes: `GET / HTTP/1.1\r\n${HOST}a: \0\r\n\r\n` },
  {
    name: 'a space before the colon',
    status: 400,
    bytes: `GET / HTTP/1.1\r\n${HOST}transfer-encoding : chunked\r\n\r\n`,
  },
  { name: 'an empty name', status: 400, bytes: `GET / HTTP/1.1\r\n${HOST}: x\r\n\r\n` },
  { name: 'no host', status: 400, bytes: 'GET / HTTP/1.1\r\n\r\n' },
  { name: 'two hosts', status: 400, bytes: `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n` },
  { name: 'HTTP/1.0 without a host', status: 400, bytes: 'GET / HTTP/1.0\r\n\r\n' },
  { name: 'two spaces in the request line', status: 400, bytes: `GET  / HTTP/1.1\r\n${HOST}\r\n` },
  { name: '8-bit bytes in the target', status: 400, bytes: `GET /\xe9 HTTP/1.1\r\n${HOST}\r\n` },
  {
    name: 'an unknown transfer coding',
    status: 501,
    bytes: `POST / HTTP/1.1\r\n${HOST}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  },
  {
    name: 'a coding in disguise',
    status: 501,
    bytes: `POST / HTTP/1.1\r\n${HOST}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n`,
  },
  { name: 'another version', status: 505, bytes: `GET / HTTP/2.0\r\n${HOST}\r\n` },
  { name: 'too many headers', status: 431, bytes: `GET / HTTP/1.1\r\n${HOST}${'a: b\r\n'.repeat(100)}\r\n` },
  { name: 'a head beyond the limit', status: 431, bytes: `GET / HTTP/1.1\r\n${HOST}a: ${'x'.repeat(61_440)}\r\n\r\n` },
  {
    name: 'a bad chunk size',
    status: 400,
    bytes: `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\nzz\r\n`,
  },
  {
    name: 'a chunk size with a sign',
    status: 400,
    bytes: `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n-1\r\n`,
  },
  {
    name: 'a chunk without its end',
    status: 400,
    bytes: `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n1\r\nxGET`,
  },
  {
    name: 'a line feed alone in a chunk extension',
    status: 400,
    bytes: `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n`,
  },
];

describe('a request that breaks HTTP', () => {
  let proxy: DataPlaneFixture;
  let upstream: WireUpstream & { heads: string[] };
  let port: number;

  before(async () => {
    proxy = new DataPlaneFixture();
    // Keeps what it is sent and never answers: a broken body is found out later than its head.
    upstream = await WireUpstream.answering('');
    proxy.cluster('web', [loopback(upstream.port)]);
    port = await proxy.http([directRoute('/next', 200, 'next'), routeTo('web')]);
  });
  after(async () => {
    await proxy.close();
    await upstream.close();
  });

  for (const { name, status, bytes } of REFUSED) {
    for (const isCut of [false, true]) {
      test(`${name}${isCut ? ', byte by byte' : ''}: ${status}`, async () => {
        const before = proxy.httpStat('downstream_rq_total');
        const wire = new WireClient(port);
        const input = Buffer.from(bytes + NEXT, 'latin1');
        // Large inputs are cut less finely: the wire is what is tested, not patience.
        const step = isCut ? Math.max(1, Math.ceil(input.length / 300)) : input.length;
        wire.socket.setNoDelay(true);
        for (let at = 0; at < input.length && !wire.isEnded; at += step) {
          wire.write(input.subarray(at, at + step));
          if (isCut) await new Promise(setImmediate);
        }
        const text = await wire.rest();
        wire.close();
        assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
        assert.match(text, /\r\nconnection: close\r\n/);
        assert.equal(text.match(/HTTP\/1\.1/g)!.length, 1, 'one answer only');
        assert.equal(proxy.httpStat('downstream_rq_total'), before + 1);
      });
    }
  }

  test('no more of all that has reached the upstream than heads of bodies that broke later; each was counted', () => {
    for (const head of upstream.heads)
      assert.match(head, /^POST \/ HTTP\/1\.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n/);
    assert.ok(upstream.heads.length <= 4);
    assert.equal(proxy.httpStat('downstream_rq_completed'), REFUSED.length * 2);
    assert.equal(proxy.httpStat('downstream_rq_4xx') + proxy.httpStat('downstream_rq_5xx'), REFUSED.length * 2);
    assert.ok(proxy.httpStat('downstream_cx_protocol_error') >= (REFUSED.length - 1) * 2);
  });

  test('CONNECT that nobody has enabled is refused, and what follows it is not read', async () => {
    const wire = new WireClient(port).write(`CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n${NEXT}`);
    const text = await wire.rest();
    wire.close();
    assert.match(text, /^HTTP\/1\.1 403 /);
    assert.equal(text.match(/HTTP\/1\.1/g)!.length, 1);
  });

  test('requests before the broken one are answered, those behind it are not', async () => {
    const wire = new WireClient(port).write(`${NEXT}${NEXT}GET / HTTP/1.1\r\nbroken\r\n\r\n${NEXT}`);
    assert.equal((await wire.response()).body, 'next');
    assert.equal((await wire.response()).body, 'next');
    assert.match(await wire.rest(), /^HTTP\/1\.1 400 [\s\S]*Bad Request$/);
    wire.close();
  });

  test('a broken body cuts the upstream off, before it can take it for whole', async () => {
    const bodies: string[] = [];
    const listening = await WireUpstream.start((socket) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
      });
      socket.on('end', () => bodies.push(text));
    });
    proxy.cluster('web', [loopback(listening.port)]);
    const wire = new WireClient(port).write(
      'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n',
    );
    while (listening.sockets.length === 0) await new Promise(setImmediate);
    wire.write('bad\n');
    assert.match(await wire.rest(), /^HTTP\/1\.1 400 /);
    wire.close();
    while (bodies.length === 0) await new Promise(setImmediate);
    assert.doesNotMatch(bodies[0]!, /0\r\n\r\n$|bad/);
    await listening.close();
  });
});
