// Filters that stop in the midst of a message, by bytes on the wire: the order of callbacks, what waits and what does
// not, limits of what is held, and replies in place of what was on its way.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FilterCallbacks } from '../../src/data-plane/index.ts';
import { eventually } from '../support/eventually.ts';
import { editing, proxyWith } from '../support/filtered-proxy.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const GET = 'GET /a HTTP/1.1\r\nhost: a\r\n\r\n';
const POST_5 = 'POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n';
const POST_CHUNKED = 'POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n';
const DENIED = { status: 403, body: 'no', flag: '-', details: 'denied' } as const;

function bodyLength(message: string): number {
  return message.length - message.indexOf('\r\n\r\n') - 4;
}

describe('a filter that stops', () => {
  test('before trailers keeps the end of a body that travels as it came', async (t) => {
    const upstream = await upstreamOf(t);
    const stopped = Promise.withResolvers<FilterCallbacks>();
    const { client } = await proxyWith(t, upstream.port, [
      (callbacks) => ({
        decodeTrailers(trailers) {
          trailers.append('x-seen', 'yes');
          stopped.resolve(callbacks);
          return 'stop';
        },
      }),
    ]);
    client.write(`${POST_CHUNKED}2;a=b\r\nok\r\n0;z\r\nx-a: 1\r\n\r\n`);
    const callbacks = await stopped.promise;
    const before = await upstream.received('0;z\r\n');
    assert.ok(before.endsWith('\r\n\r\n2;a=b\r\nok\r\n0;z\r\n'), before);
    callbacks.continueDecoding();
    assert.ok((await upstream.received('x-seen')).endsWith('0;z\r\nx-a: 1\r\nx-seen: yes\r\n\r\n'));
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
  });

  test('keeps each part from those behind it until it goes on, in the order of the chain', async (t) => {
    const upstream = await upstreamOf(t);
    const seen: string[] = [];
    const stops = new Map<string, FilterCallbacks>();
    const arrived = Promise.withResolvers<void>();
    const step = (name: string, stopsAt: string): ReturnType<typeof editing> =>
      editing((callbacks) => {
        stops.set(name, callbacks);
        const at = (part: string): 'stop' | 'continue' => {
          seen.push(`${name}.${part}`);
          if (name === 'a' && part === 'trailers') arrived.resolve();
          return part === stopsAt ? 'stop' : 'continue';
        };
        return {
          decodeHeaders: () => at('head'),
          decodeData: ({ bytes }) => at(bytes.toString()),
          decodeTrailers: () => at('trailers'),
        };
      });
    const { client } = await proxyWith(t, upstream.port, [step('a', 'none'), step('b', 'two'), step('c', 'trailers')]);
    client.write(`${POST_CHUNKED}3\r\none\r\n`);
    await upstream.received('one');
    client.write('3\r\ntwo\r\n');
    client.write('0\r\nx-a: 1\r\n\r\n');
    await arrived.promise;
    // The second filter lets go by what it says of the trailers; the third then keeps those.
    const order = ['a.head', 'b.head', 'c.head', 'a.one', 'b.one', 'c.one', 'a.two', 'b.two'];
    await upstream.received('two');
    assert.deepEqual(seen, [...order, 'a.trailers', 'b.trailers', 'c.two', 'c.trailers']);
    stops.get('c')!.continueDecoding();
    await upstream.received('x-a: 1\r\n\r\n');
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
  });

  test('and pauses has a request wait at the limit, and all of it arrive later', async (t) => {
    const upstream = await upstreamOf(t);
    const stopped = Promise.withResolvers<FilterCallbacks>();
    const { client, proxy } = await proxyWith(
      t,
      upstream.port,
      [
        (callbacks) => ({
          decodeHeaders() {
            stopped.resolve(callbacks);
            return 'stop-and-pause';
          },
        }),
      ],
      1000,
    );
    const body = Buffer.alloc(4_000_000, 'x');
    client.write(`POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`);
    client.write(body);
    const callbacks = await stopped.promise;
    await eventually(() => proxy.httpStat('downstream_flow_control_paused_reading_total') > 0, 'a pause');
    assert.ok(proxy.httpStat('downstream_cx_rx_bytes_total') < body.length);
    callbacks.continueDecoding();
    const text = await upstream.received('x'.repeat(10), body.length);
    assert.equal(bodyLength(text), body.length);
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
  });

  test('and pauses has a response wait at the limit, and all of it arrive later', async (t) => {
    const body = Buffer.alloc(4_000_000, 'x');
    const upstream = await WireUpstream.answering(
      Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`), body]),
    );
    t.after(() => upstream.close());
    const stopped = Promise.withResolvers<FilterCallbacks>();
    const { client, proxy } = await proxyWith(
      t,
      upstream.port,
      [
        (callbacks) => ({
          encodeHeaders() {
            stopped.resolve(callbacks);
            return 'stop-and-pause';
          },
        }),
      ],
      1000,
    );
    client.write(GET);
    const callbacks = await stopped.promise;
    await eventually(() => proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') > 0, 'a pause');
    assert.ok(proxy.clusterStat('web', 'upstream_cx_rx_bytes_total') < body.length);
    callbacks.continueEncoding();
    const response = await client.response();
    assert.equal(response.body.length, body.length);
  });
});

describe('a filter that holds more than the buffer limit', () => {
  test('of a chunked request that is edited has it refused', async (t) => {
    const upstream = await upstreamOf(t);
    const { client, proxy } = await proxyWith(t, upstream.port, [editing({ decodeData: () => 'stop' })], 1000);
    client.write(`${POST_CHUNKED}7d0\r\n${'x'.repeat(2000)}\r\n`);
    assert.equal((await client.response()).status, 413);
    assert.equal(proxy.httpStat('downstream_rq_4xx'), 1);
    assert.equal(proxy.httpStat('downstream_rq_too_large'), 1);
  });

  test('of a response whose head has gone has it broken off', async (t) => {
    const upstream = await upstreamOf(t);
    const { client, proxy } = await proxyWith(t, upstream.port, [editing({ encodeData: () => 'stop' })], 1000);
    client.write(GET);
    await upstream.received('\r\n\r\n');
    upstream.send(CHUNKED);
    await client.until('\r\n\r\n');
    upstream.send(`7d0\r\n${'x'.repeat(2000)}\r\n`);
    assert.equal(await client.rest(), '');
    assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
    assert.equal(proxy.httpStat('rs_too_large'), 1);
    assert.equal(proxy.httpStat('downstream_rq_active'), 0);
  });
});

describe('a reply of a filter', () => {
  test('from data and from trailers takes the place of the upstream', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [
      editing((callbacks) => ({
        decodeData({ isEnd }) {
          if (isEnd) callbacks.reply(DENIED);
          return 'stop';
        },
        decodeTrailers() {
          callbacks.reply({ ...DENIED, status: 418 });
          return 'stop';
        },
      })),
      () => ({ decodeData: () => assert.fail('data must not come here') }),
    ]);
    const first = await client.write(`${POST_5}hello${POST_CHUNKED}2\r\nok\r\n0\r\nx-a: 1\r\n\r\n`).response();
    assert.deepEqual([first.status, first.body], [403, 'no']);
    assert.equal((await client.response()).status, 418);
    assert.equal((await client.write('GET /direct HTTP/1.1\r\nhost: a\r\n\r\n').response()).body, 'direct');
  });

  test('takes the place of a response that is held, and is shown to the filters that did not see that one', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    t.after(() => upstream.close());
    const seen: string[] = [];
    const sees = (place: string) => () => ({
      encodeHeaders(_head: unknown, status: number) {
        seen.push(`${place} ${status}`);
        return 'continue' as const;
      },
    });
    const { client, proxy } = await proxyWith(t, upstream.port, [
      sees('before'),
      (callbacks) => ({
        encodeHeaders: () => 'stop',
        encodeData() {
          callbacks.reply(DENIED);
          return 'stop';
        },
      }),
      sees('behind'),
    ]);
    const { status, body } = await client.write(GET).response();
    assert.deepEqual([status, body], [403, 'no']);
    assert.deepEqual(seen, ['behind 200', 'before 403']);
    assert.equal(proxy.httpStat('downstream_rq_4xx'), 1);
  });

  test('breaks off a response that has begun', async (t) => {
    const upstream = await upstreamOf(t);
    const { client, proxy } = await proxyWith(t, upstream.port, [
      (callbacks) => ({
        encodeTrailers() {
          callbacks.reply(DENIED);
          return 'stop';
        },
      }),
    ]);
    client.write(GET);
    await upstream.received('\r\n\r\n');
    upstream.send(CHUNKED);
    await client.until('\r\n\r\n');
    upstream.send('2\r\nok\r\n');
    assert.equal(await client.until('ok\r\n'), '2\r\nok\r\n');
    upstream.send('0\r\nx-a: 1\r\n\r\n');
    assert.doesNotMatch(await client.rest(), /\r\n\r\n/);
    assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
  });
});
