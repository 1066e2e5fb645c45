// Filters that change bodies and trailers, by bytes on the wire: what is framed anew and what stays as it came.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HttpFilter } from '../../src/data-plane/index.ts';
import { editing, proxyWith } from '../support/filtered-proxy.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const GET = 'GET /a HTTP/1.1\r\nhost: a\r\n\r\n';
const POST_5 = 'POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n';
const POST_CHUNKED = 'POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n';
const NO_BYTES = Buffer.alloc(0);

const upper = (bytes: Buffer): Buffer => Buffer.from(bytes.toString('latin1').toUpperCase(), 'latin1');

/** Makes letters large, and each body longer. */
const SHOUTING: HttpFilter = {
  decodeData(data) {
    data.bytes = upper(data.bytes);
    if (data.isEnd) data.bytes = Buffer.concat([data.bytes, Buffer.from('!!')]);
    return 'continue';
  },
  encodeData(data) {
    data.bytes = upper(data.bytes);
    if (data.isEnd) data.bytes = Buffer.concat([data.bytes, Buffer.from('!!')]);
    return 'continue';
  },
};

function headOf(message: string): string {
  return message.slice(0, message.indexOf('\r\n\r\n') + 4);
}

function framingLines(head: string): string[] {
  return (head.match(/^(content-length|transfer-encoding|trailer): .*$/gim) ?? []).map((line) => line.toLowerCase());
}

describe('a filter that edits bodies', () => {
  test('has a whole request sent with the length that it has then', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [editing(SHOUTING)]);
    client.write(`${POST_5}hello`);
    const text = await upstream.received('HELLO!!');
    assert.deepEqual(framingLines(headOf(text)), ['content-length: 7']);
    upstream.send(OK);
    assert.equal((await client.response()).body, 'OK!!');
  });

  test('has a request that goes on sent in chunks, each framed anew', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [editing(SHOUTING)]);
    client.write(POST_5);
    const head = await upstream.received('\r\n\r\n');
    assert.deepEqual(framingLines(head), ['transfer-encoding: chunked']);
    client.write('he');
    await upstream.received('2\r\nHE\r\n');
    client.write('llo');
    assert.ok((await upstream.received('0\r\n\r\n')).endsWith('\r\n\r\n2\r\nHE\r\n5\r\nLLO!!\r\n0\r\n\r\n'));
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
  });

  test('sees and changes data and trailers of a chunked request', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [
      editing({
        ...SHOUTING,
        decodeTrailers(trailers) {
          trailers.set('x-sum', `${trailers.get('x-sum')}7`);
          trailers.remove('x-old');
          trailers.append('X-New', 'yes');
          return 'continue';
        },
      }),
    ]);
    client.write(`${POST_CHUNKED}3;a=b\r\nabc\r\n2\r\nde\r\n0;z\r\nx-old: 1\r\nX-Sum: 5\r\n\r\n`);
    const text = await upstream.received('X-New: yes\r\n\r\n');
    assert.ok(text.endsWith('\r\n\r\n5\r\nABCDE\r\n0\r\nx-sum: 57\r\nX-New: yes\r\n\r\n'), text);
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
  });

  test('has a response sent with its new length, or in chunks, as it comes', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [editing(SHOUTING)]);
    client.write(GET);
    await upstream.received('\r\n\r\n');
    upstream.send(`${CHUNKED}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`);
    const whole = await client.response();
    assert.deepEqual(framingLines(whole.head), ['content-length: 4']);
    assert.equal(whole.body, 'AB!!');

    client.write(GET.replace('/a', '/b'));
    await upstream.received('/b HTTP');
    upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n');
    const head = await client.until('\r\n\r\n');
    assert.deepEqual(framingLines(head), ['transfer-encoding: chunked']);
    upstream.send('ab');
    assert.equal(await client.until('AB\r\n'), '2\r\nAB\r\n');
    upstream.send('cd');
    assert.equal(await client.until('0\r\n\r\n'), '4\r\nCD!!\r\n0\r\n\r\n');
    const { body } = await client.write('GET /direct HTTP/1.1\r\nhost: a\r\n\r\n').response();
    assert.equal(body, 'direct');
  });

  test('has a response to an HTTP/1.0 client end with its connection', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [editing(SHOUTING)]);
    client.write('GET /a HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n');
    await upstream.received('\r\n\r\n');
    upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab');
    const head = await client.until('\r\n\r\n');
    assert.deepEqual(framingLines(head), []);
    assert.match(head, /connection: close/);
    assert.equal(await client.until('AB'), 'AB');
    upstream.send('cd');
    assert.equal(await client.rest(), 'CD!!');
  });

  test('has a response that ends with its connection sent in chunks', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\nab'));
    });
    t.after(() => upstream.close());
    const { client } = await proxyWith(t, upstream.port, [editing(SHOUTING)]);
    const head = await client.write(GET).until('\r\n\r\n');
    const chunks = framingLines(head).includes('transfer-encoding: chunked');
    if (chunks) assert.match(await client.until('0\r\n\r\n'), /^2\r\nAB\r\n2\r\n!!\r\n0\r\n\r\n$/);
    else assert.equal((await client.bytes(4)).toString(), 'AB!!');
  });

  test('leaves messages without a body without one', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [editing(SHOUTING)]);
    client.write(GET.replace('GET', 'HEAD'));
    assert.deepEqual(framingLines(await upstream.received('\r\n\r\n')), []);
    upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n');
    // How long the body would be, had it come through the filter, nobody can know.
    assert.deepEqual(framingLines(await client.until('\r\n\r\n')), []);
    client.write(GET.replace('/a', '/b'));
    await upstream.received('/b HTTP');
    upstream.send('HTTP/1.1 204 No Content\r\n\r\n');
    assert.deepEqual(framingLines(await client.until('\r\n\r\n')), []);
    client.write(GET.replace('/a', '/c'));
    await upstream.received('/c HTTP');
    upstream.send(OK);
    assert.equal((await client.response()).body, 'OK!!');
  });

  test('may take all data away and give it back at the end', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [
      editing((callbacks) => {
        let collected = '';
        return {
          decodeHeaders: () => 'stop',
          decodeData(data) {
            collected += data.bytes.toString();
            data.bytes = data.isEnd ? Buffer.from([...collected].reverse().join('')) : NO_BYTES;
            return data.isEnd ? 'continue' : 'stop';
          },
          decodeTrailers() {
            callbacks.addRequestData(Buffer.from([...collected].reverse().join('')));
            return 'continue';
          },
        };
      }),
    ]);
    client.write(`${POST_5}abc`);
    client.write('de');
    assert.deepEqual(framingLines(headOf(await upstream.received('edcba'))), ['content-length: 5']);
    upstream.send(OK);
    await client.response();
    client.write(`${POST_CHUNKED.replace('/a', '/b')}2\r\nfg\r\n`);
    client.write('1\r\nh\r\n0\r\nx-a: 1\r\n\r\n');
    const text = await upstream.received('x-a: 1\r\n\r\n');
    assert.ok(text.endsWith('\r\n\r\n3\r\nhgf\r\n0\r\nx-a: 1\r\n\r\n'), text);
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
  });

  test('adds a body to messages that have none', async (t) => {
    const upstream = await upstreamOf(t);
    const seen: string[] = [];
    const { client } = await proxyWith(t, upstream.port, [
      editing((callbacks) => ({
        decodeHeaders() {
          callbacks.addRequestData(Buffer.from('asked'));
          return 'continue';
        },
      })),
      editing((callbacks) => ({
        decodeHeaders(_head, isEnd) {
          seen.push(`head ${isEnd}`);
          return 'continue';
        },
        decodeData({ bytes, isEnd }) {
          seen.push(`${bytes} ${isEnd}`);
          return 'continue';
        },
        encodeHeaders(_head, status) {
          if (status === 200) callbacks.addResponseData(Buffer.from('told'));
          return 'continue';
        },
      })),
    ]);
    client.write(GET);
    assert.deepEqual(framingLines(headOf(await upstream.received('\r\n\r\nasked'))), ['content-length: 5']);
    assert.deepEqual(seen, ['head false', 'asked true']);
    upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    const { body, head } = await client.response();
    assert.deepEqual(framingLines(head), ['content-length: 4']);
    assert.equal(body, 'told');
  });

  test('adds trailers, which the filters behind it see, in both directions', async (t) => {
    const upstream = await upstreamOf(t);
    const seen: string[] = [];
    const reading = (name: string): HttpFilter => ({
      decodeData({ isEnd }) {
        seen.push(`${name} in ${isEnd}`);
        return 'continue';
      },
      decodeTrailers(trailers) {
        seen.push(`${name} in ${trailers.get('x-sum')}`);
        return 'continue';
      },
      encodeData({ isEnd }) {
        seen.push(`${name} out ${isEnd}`);
        return 'continue';
      },
      encodeTrailers(trailers) {
        seen.push(`${name} out ${trailers.get('x-sum')}`);
        return 'continue';
      },
    });
    const { client } = await proxyWith(t, upstream.port, [
      () => reading('a'),
      editing({
        decodeData(data) {
          if (data.isEnd) data.addTrailers().append('x-sum', '1');
          return 'continue';
        },
        encodeData(data) {
          if (data.isEnd) data.addTrailers().append('X-Sum', '2');
          return 'continue';
        },
      }),
      () => reading('b'),
    ]);
    client.write(`${POST_5}hello`);
    const text = await upstream.received('x-sum: 1\r\n\r\n');
    assert.deepEqual(framingLines(headOf(text)), ['transfer-encoding: chunked']);
    assert.ok(text.endsWith('\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n'), text);
    upstream.send(OK);
    assert.deepEqual(framingLines(await client.until('\r\n\r\n')), ['transfer-encoding: chunked']);
    assert.equal(await client.until('X-Sum: 2\r\n\r\n'), '2\r\nok\r\n0\r\nX-Sum: 2\r\n\r\n');
    assert.deepEqual(seen, ['a in true', 'b in false', 'b in 1', 'b out true', 'a out false', 'a out 2']);
  });

  test('that does not say so cannot edit: the connection ends, and nothing of it goes on', async (t) => {
    const upstream = await upstreamOf(t);
    const edits: HttpFilter[] = [
      {
        decodeData(data) {
          data.bytes = NO_BYTES;
          return 'continue';
        },
      },
      {
        decodeData(data) {
          data.addTrailers();
          return 'continue';
        },
      },
    ];
    for (const filter of edits) {
      const { client } = await proxyWith(t, upstream.port, [() => filter]);
      assert.equal(await client.write(`${POST_5}hello`).rest(), '');
    }
  });
});

describe('a filter that only looks at heads', () => {
  test('leaves bodies and trailers as they came', async (t) => {
    const upstream = await upstreamOf(t);
    const body = '2;a=b\r\nok\r\n0;z\r\nX-a: 1\r\n\r\n';
    const create = (): HttpFilter => ({
      decodeHeaders: () => 'continue',
      decodeData: () => assert.fail('no data must come here'),
      encodeTrailers: () => assert.fail('no trailers must come here'),
    });
    const { client, port } = await proxyWith(t, upstream.port, [{ use: 'none', create }]);
    client.write(POST_CHUNKED + body);
    assert.ok((await upstream.received('X-a')).endsWith(`\r\n\r\n${body}`));
    upstream.send(CHUNKED + body);
    await client.until('\r\n\r\n');
    assert.equal(await client.until('X-a: 1\r\n\r\n'), body);
    const other = new WireClient(port);
    t.after(() => other.close());
    assert.equal((await other.write('GET /direct HTTP/1.1\r\nhost: a\r\n\r\n').response()).body, 'direct');
  });
});
