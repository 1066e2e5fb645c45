// Requests and responses that never come near HTTP/1.1, through connection manager, filters and router: what a codec hands
// over on one side arrives on the other, and everything between them only knows the interfaces of codecs.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ResetReason } from '../../../../src/data-plane/http/codec/downstream-stream.ts';
import type { FilterStatus, HttpFilterKind } from '../../../../src/data-plane/index.ts';
import { Framing } from '../../../../src/wasm/http1.ts';
import { LetterBench, type LetterBenchOptions } from '../../../support/letter-codec.ts';
import { directRoute, forwardTo, routeFor, routeTo } from '../../../support/routes.ts';

const OK = 'HTTP/1.1 200 OK\r\nx-a: 1';

function bench(options?: LetterBenchOptions): LetterBench {
  return new LetterBench([directRoute('/direct', 203, 'direct'), routeTo('web')], options);
}

describe('an exchange in letters', () => {
  test('crosses the proxy with its head, and is counted', () => {
    const letters = bench();
    const client = letters.client().request('GET', '/a');
    const { request } = letters.upstream;
    assert.deepEqual([request.isEnded, request.body, request.framing], [true, '', Framing.NONE]);
    assert.equal(request.field('host'), 'h');
    letters.upstream.answer(OK, 'body');
    assert.deepEqual([client.answer.isEnded, client.answer.body], [true, 'body']);
    assert.equal(client.answer.field('x-a'), '1');
    assert.equal(letters.httpStat('downstream_rq_total'), 1);
    assert.equal(letters.httpStat('downstream_rq_active'), 0);
    assert.equal(letters.httpStat('downstream_rq_2xx'), 1);
    assert.equal(letters.httpStat('downstream_rq_http1_total'), 0);
  });

  test('has nothing of a connection of HTTP/1.1 in its heads', () => {
    const letters = bench();
    const client = letters.client().request('POST', '/a', 'a', false);
    client.send('b', true);
    letters.upstream.answer(OK, 'c', false);
    letters.upstream.more('d', true);
    for (const { head } of [letters.upstream.request, client.answer]) {
      assert.doesNotMatch(head, /connection|transfer-encoding|content-length/i);
    }
    assert.deepEqual([letters.upstream.request.body, client.answer.body], ['ab', 'cd']);
  });

  test('runs beside others, answered in another order than they came', () => {
    const letters = bench();
    const clients = ['1', '2', '3'].map((path) => letters.client().request('GET', `/${path}`));
    assert.equal(letters.httpStat('downstream_rq_active'), 3);
    for (const index of [2, 0, 1]) letters.upstreams[index]!.answer(OK, `body ${index + 1}`);
    assert.deepEqual(
      clients.map(({ answer }) => answer.body),
      ['body 1', 'body 2', 'body 3'],
    );
    assert.equal(letters.httpStat('downstream_rq_active'), 0);
  });

  for (const enableTrailers of [true, false]) {
    test(`ends with${enableTrailers ? '' : 'out'} trailers, both ways`, () => {
      const letters = bench({ enableTrailers });
      const client = letters.client(enableTrailers).request('POST', '/a', 'a', false);
      client.send('', true, 'x-t: 1');
      assert.equal(letters.upstream.request.trailers, enableTrailers ? 'x-t: 1\r\n' : '');
      letters.upstream.answer(OK, 'b', false);
      letters.upstream.more('', true, 'x-u: 2');
      assert.equal(client.answer.trailers, enableTrailers ? 'x-u: 2\r\n' : '');
      assert.deepEqual([letters.upstream.request.body, client.answer.body], ['a', 'b']);
    });
  }

  test('gives a client no trailers that cannot have them', () => {
    const letters = bench();
    const client = letters.client(false).request('GET', '/a');
    letters.upstream.answer(OK, 'b', true, 'x-u: 2');
    assert.deepEqual([client.answer.body, client.answer.trailers], ['b', '']);
  });

  test('takes the chunks of HTTP/1.1 as they come, marked as such', () => {
    const letters = bench();
    letters.client().requestInChunks('1\r\na\r\n0\r\n\r\n');
    assert.deepEqual([letters.upstream.request.framing, letters.upstream.request.body], [Framing.CHUNKED, 'a']);
  });

  test('keeps what comes before there is an upstream, trailers included', () => {
    const letters = bench();
    letters.isReady = false;
    const client = letters.client().request('POST', '/a', 'a', false);
    assert.equal(client.isWelcome, false);
    client.send('b', true, 'x-t: 1');
    letters.waiting[0]!();
    const { body, isEnded, trailers } = letters.upstream.request;
    assert.deepEqual([body, isEnded, trailers], ['ab', true, 'x-t: 1\r\n']);
  });

  test('is a local reply of any kind, whole and without an upstream', () => {
    const letters = bench();
    const client = letters.client().request('GET', '/direct');
    assert.equal(letters.upstreams.length, 0);
    assert.match(client.answer.head, /^HTTP\/1\.1 203 /);
    assert.doesNotMatch(client.answer.head, /connection/i);
    assert.deepEqual([client.answer.body, client.answer.isEnded], ['direct', true]);
  });
});

describe('the flow of letters', () => {
  test('stops the upstream while the client takes no more, and goes on with it', () => {
    const letters = bench();
    const client = letters.client().request('GET', '/a');
    client.isFast = false;
    letters.upstream.answer(OK, 'a', false);
    assert.equal(letters.upstream.isWelcome, false);
    client.drain();
    assert.deepEqual([letters.upstream.isWelcome, letters.upstream.resumed], [true, 1]);
  });

  test('stops the client while the upstream takes no more, and goes on with it', () => {
    const letters = bench();
    letters.hasFastUpstreams = false;
    const client = letters.client().request('POST', '/a', 'a', false);
    assert.equal(client.isWelcome, false);
    assert.equal(letters.httpStat('downstream_flow_control_paused_reading_total'), 1);
    letters.upstream.drain();
    assert.equal(client.isWelcome, true);
    assert.equal(letters.httpStat('downstream_flow_control_resumed_reading_total'), 1);
  });
});

describe('the end of letters before their time', () => {
  test('reaches the upstream when the client has broken off', () => {
    const letters = bench();
    const client = letters.client().request('POST', '/a', 'a', false);
    client.lose();
    assert.equal(letters.upstream.aborted, true);
    assert.equal(letters.httpStat('downstream_rq_rx_reset'), 1);
    assert.equal(letters.httpStat('downstream_rq_active'), 0);
    assert.equal(letters.clusterStat('upstream_rq_tx_reset'), 1);
  });

  test('takes a request back that waits for its upstream', () => {
    const letters = bench();
    letters.isReady = false;
    letters.client().request('GET', '/a').lose();
    assert.equal(letters.cancelled, 1);
  });

  test('is told to the client as a reply before the answer has begun', () => {
    const letters = bench();
    const client = letters.client().request('GET', '/a');
    letters.upstream.reset('connection termination');
    assert.match(client.answer.head, /^HTTP\/1\.1 503 /);
    assert.deepEqual([client.answer.isEnded, client.reset], [true, null]);
    assert.equal(letters.clusterStat('upstream_rq_rx_reset'), 1);
  });

  test('is a reset with a reason, and never a clean end, after that', () => {
    const letters = bench();
    const client = letters.client().request('GET', '/a');
    letters.upstream.answer(OK, 'a', false);
    letters.upstream.reset('connection termination');
    assert.deepEqual([client.answer.isEnded, client.reset], [false, ResetReason.upstream]);
    assert.equal(letters.httpStat('downstream_rq_tx_reset'), 1);
  });

  test('has another reason where there was too much of it', () => {
    const letters = bench();
    const client = letters.client().request('GET', '/a');
    letters.upstream.answer(OK, 'a', false);
    client.receiver.onTooExpensive();
    assert.deepEqual([client.answer.isEnded, client.reset], [false, ResetReason.overload]);
    assert.equal(letters.upstream.aborted, true);
  });

  test('comes with the limit of its route', () => {
    const letters = new LetterBench([routeFor('/', forwardTo('web', { timeoutMs: 50 }))]);
    const client = letters.client().request('GET', '/a');
    const [limit] = client.deadlines.limits;
    client.receiver.onLimit(limit!);
    assert.match(client.answer.head, /^HTTP\/1\.1 504 /);
    assert.equal(letters.upstream.aborted, true);
    assert.deepEqual(client.deadlines.limits, []);
    assert.equal(letters.clusterStat('upstream_rq_timeout'), 1);
  });
});

describe('letters through filters', () => {
  for (const use of ['none', 'reads', 'edits'] as const) {
    test(`come out as they went in where the filters' kind is "${use}"`, () => {
      const seen: string[] = [];
      const see = (what: string): FilterStatus => {
        seen.push(what);
        return 'continue';
      };
      const kind: HttpFilterKind = {
        requestBody: use,
        encodes: true,
        responseBody: use,
        compile: () => () => ({
          decodeData: ({ bytes }) => see(`request ${bytes}`),
          encodeData: ({ bytes }) => see(`response ${bytes}`),
          decodeTrailers: () => see('request trailers'),
          encodeTrailers: () => see('response trailers'),
        }),
      };
      const letters = bench({
        httpFilters: { watching: kind },
        settings: { httpFilters: [{ name: 'watching', settings: null }] },
      });
      const client = letters.client().request('POST', '/a', 'a', false);
      client.send('', true, 'x-t: 1');
      letters.upstream.answer(OK, 'b', false);
      letters.upstream.more('', true, 'x-u: 2');
      const { request } = letters.upstream;
      assert.deepEqual([request.body, request.trailers, request.isEnded], ['a', 'x-t: 1\r\n', true]);
      assert.deepEqual([client.answer.body, client.answer.trailers, client.answer.isEnded], ['b', 'x-u: 2\r\n', true]);
      const all = ['request a', 'request trailers', 'response b', 'response trailers'];
      assert.deepEqual(seen, use === 'none' ? [] : all);
    });
  }
});
