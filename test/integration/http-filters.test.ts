// HTTP filters by bytes on the wire: the order of a chain, edits in both directions, stops with what is held, replies
// of filters, trailers; and that a chain shows bodies without touching how they are framed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FilterCallbacks } from '../../src/data-plane/index.ts';
import { type CreateScripted, proxyWith } from '../support/filtered-proxy.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const GET = 'GET /a HTTP/1.1\r\nhost: a\r\n\r\n';

describe('a chain of HTTP filters', () => {
  test('sees requests in order and responses in reverse, and keeps the edits of each', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    t.after(() => upstream.close());
    const seen: string[] = [];
    const naming =
      (name: string): CreateScripted =>
      () => ({
        decodeHeaders(head, isEnd) {
          seen.push(`${name} in ${head.path()} ${isEnd}`);
          head.append('x-in', name);
          return 'continue';
        },
        encodeHeaders(head, status) {
          seen.push(`${name} out ${status}`);
          head.append('x-out', name);
          return 'continue';
        },
        encodeData({ bytes, isEnd }) {
          seen.push(`${name} data ${bytes.toString()} ${isEnd}`);
          return 'continue';
        },
        onDestroy: () => void seen.push(`${name} over`),
      });
    const { client } = await proxyWith(t, upstream.port, [naming('a'), naming('b')]);
    const { head, body } = await client.write(GET).response();
    assert.match(upstream.heads[0]!, /x-in: a\r\nx-in: b\r\n/);
    assert.match(head, /x-out: b\r\nx-out: a\r\n/);
    assert.equal(body, 'ok');
    assert.deepEqual(seen, [
      'a in /a true',
      'b in /a true',
      'b out 200',
      'a out 200',
      'b data ok true',
      'a data ok true',
      'a over',
      'b over',
    ]);
  });

  test('edits replies of the proxy itself', async (t) => {
    const { client } = await proxyWith(t, 1, [
      () => ({
        encodeHeaders(head, status, isEnd) {
          head.append('x-seen', `${status} ${isEnd}`);
          return 'continue';
        },
      }),
    ]);
    const { head, body } = await client.write('GET /direct HTTP/1.1\r\nhost: a\r\n\r\n').response();
    assert.match(head, /x-seen: 200 false\r\n/);
    assert.equal(body, 'direct');
  });

  test('answers in place of the upstream, and the connection goes on', async (t) => {
    const { client, proxy } = await proxyWith(t, 1, [
      (callbacks) => ({
        decodeHeaders() {
          callbacks.reply({ status: 403, body: 'no', flag: '-', details: 'denied' });
          return 'stop';
        },
      }),
      () => ({
        decodeHeaders: () => assert.fail('the request must not come here'),
      }),
    ]);
    const first = await client.write(GET + GET).response();
    const second = await client.response();
    assert.deepEqual([first.status, first.body, second.status], [403, 'no', 403]);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 0);
    assert.equal(proxy.httpStat('downstream_rq_4xx'), 2);
    assert.equal(proxy.httpStat('downstream_rq_active'), 0);
  });

  test('holds a request that stops, with its body, until the filter has seen it all', async (t) => {
    const upstream = await upstreamOf(t);
    let collected = '';
    let behind = '';
    const { client } = await proxyWith(t, upstream.port, [
      () => ({
        decodeHeaders: () => 'stop',
        decodeData({ bytes, isEnd }) {
          collected += bytes.toString();
          return isEnd ? 'continue' : 'stop';
        },
      }),
      () => ({
        decodeHeaders(head, isEnd) {
          behind += `${head.method} ${isEnd} after ${collected};`;
          head.append('x-behind', 'yes');
          return 'continue';
        },
        decodeData({ bytes, isEnd }) {
          behind += `${bytes.toString()} ${isEnd};`;
          return 'continue';
        },
      }),
    ]);
    client.write('POST /a HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 6\r\n\r\n');
    assert.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 100 /);
    client.write('abc');
    client.write('def');
    const text = await upstream.received('abcdef');
    assert.match(text, /^POST \/a HTTP\/1\.1\r\n[\s\S]*x-behind: yes\r\n/);
    assert.doesNotMatch(text, /expect:/);
    upstream.send(OK);
    assert.equal((await client.response()).body, 'ok');
    assert.match(behind, /^POST false after abcdef;/);
    assert.match(behind, /true;$/);
  });

  test('goes on from an event of its own, with the head that it had, whatever came between', async (t) => {
    const upstream = await upstreamOf(t);
    const stopped = Promise.withResolvers<FilterCallbacks>();
    const { client } = await proxyWith(t, upstream.port, [
      (callbacks) => ({
        decodeHeaders(head) {
          if (head.path() !== '/a') return 'continue';
          head.append('x-first', '1');
          stopped.resolve(callbacks);
          return 'stop';
        },
      }),
    ]);
    client.write(GET);
    const callbacks = await stopped.promise;
    const other = new WireClient(client.socket.remotePort!);
    t.after(() => other.close());
    const direct = await other.write('GET /direct HTTP/1.1\r\nhost: b\r\nx-other: 1\r\n\r\n').response();
    assert.equal(direct.body, 'direct');
    callbacks.continueDecoding();
    const text = await upstream.received('\r\n\r\n');
    assert.match(text, /^GET \/a HTTP\/1\.1\r\nhost: a\r\n/i);
    assert.match(text, /x-first: 1\r\n/);
    assert.doesNotMatch(text, /x-other/);
    upstream.send(OK);
    assert.equal((await client.response()).body, 'ok');
    callbacks.continueDecoding();
    callbacks.reply({ status: 500, body: '', flag: '-', details: 'late' });
  });

  test('refuses a request of which a filter would hold more than the buffer limit', async (t) => {
    const { client, proxy } = await proxyWith(t, 1, [() => ({ decodeHeaders: () => 'stop' })], 1000);
    client.write(`POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\n${'x'.repeat(1000)}`);
    client.write('y');
    const { status } = await client.response();
    assert.equal(status, 413);
    assert.equal(proxy.httpStat('downstream_rq_too_large'), 1);
    assert.equal(proxy.httpStat('downstream_rq_active'), 0);
  });

  test('shows a chunked body without its framing, and the trailers behind it, while the bytes stay as they are', async (t) => {
    const upstream = await upstreamOf(t);
    const seen: string[] = [];
    const { client } = await proxyWith(t, upstream.port, [
      () => ({
        decodeData({ bytes, isEnd }) {
          seen.push(`${bytes.toString()} ${isEnd}`);
          return 'stop';
        },
        decodeTrailers(trailers) {
          seen.push(JSON.stringify(trailers.entries()));
          return 'continue';
        },
      }),
    ]);
    const body = '3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n';
    client.write(`POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${body}`);
    assert.ok((await upstream.received(body)).endsWith(body));
    assert.deepEqual(seen, ['abcde false', '[["x-sum","5"]]']);
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
  });

  test('holds a response until its filter lets it go, and edits its head meanwhile', async (t) => {
    const upstream = await WireUpstream.answering(
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    );
    t.after(() => upstream.close());
    const stopped = Promise.withResolvers<FilterCallbacks>();
    let body = '';
    const { client } = await proxyWith(t, upstream.port, [
      () => ({
        encodeHeaders(head) {
          head.append('x-last', 'yes');
          return 'continue';
        },
      }),
      (callbacks) => ({
        encodeHeaders(head) {
          head.append('x-held', 'yes');
          return 'stop';
        },
        encodeData({ bytes, isEnd }) {
          body += bytes.toString();
          if (isEnd) stopped.resolve(callbacks);
          return 'stop';
        },
      }),
    ]);
    client.write(GET);
    const callbacks = await stopped.promise;
    assert.equal(body, 'ok');
    callbacks.continueEncoding();
    const head = await client.until('\r\n\r\n');
    assert.match(head, /x-held: yes\r\n[\s\S]*x-last: yes\r\n/);
    assert.equal(await client.until('0\r\n\r\n'), '2\r\nok\r\n0\r\n\r\n');
  });

  test('gives up a response of which a filter would hold more than the buffer limit', async (t) => {
    const large = `HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n${'x'.repeat(5000)}`;
    const upstream = await WireUpstream.answering(large);
    t.after(() => upstream.close());
    const { client, proxy } = await proxyWith(t, upstream.port, [() => ({ encodeHeaders: () => 'stop' })], 1000);
    assert.equal((await client.write(GET).response()).status, 500);
    assert.equal(proxy.httpStat('downstream_rq_5xx'), 1);
    assert.equal(proxy.httpStat('rs_too_large'), 1);
    assert.equal(proxy.httpStat('downstream_rq_active'), 0);
  });

  test('lets go of a request whose client leaves while a filter holds it', async (t) => {
    const stopped = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const { client, proxy } = await proxyWith(t, 1, [
      () => ({
        decodeHeaders() {
          stopped.resolve();
          return 'stop';
        },
        onDestroy: () => over.resolve(),
      }),
    ]);
    client.write(GET);
    await stopped.promise;
    client.close();
    await over.promise;
    assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
  });
});
