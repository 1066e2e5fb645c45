// What filters ask clusters of their own while requests wait, over real sockets.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import type {
  CallAnswer,
  CallFailure,
  CallReceiver,
  CallRequest,
  FilterCallbacks,
  HttpFilter,
} from '../../src/data-plane/index.ts';
import { loopback } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type FilteredProxy, proxyWith } from '../support/filtered-proxy.ts';
import { Http2Upstream, readAll } from '../support/http2-upstream.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const GET = 'GET /a HTTP/1.1\r\nhost: a\r\n\r\n';
const QUESTION: CallRequest = {
  cluster: 'guard',
  method: 'GET',
  path: '/may-it?a=1',
  host: 'guard.example',
  fields: [['x-asked', 'yes']],
  body: Buffer.alloc(0),
  isGrpc: false,
  timeoutMs: 5000,
  maxAnswerBytes: 1000,
};

/** Lets a request go on when it has been answered well, and otherwise tells the client what was answered. */
class Asking implements HttpFilter, CallReceiver {
  readonly #callbacks: FilterCallbacks;
  readonly #question: CallRequest;

  constructor(callbacks: FilterCallbacks, question: CallRequest) {
    this.#callbacks = callbacks;
    this.#question = question;
  }

  decodeHeaders(): 'stop' {
    this.#callbacks.call(this.#question, this);
    return 'stop';
  }

  onAnswer({ status, head, body, trailers }: CallAnswer): void {
    if (status === 418) throw new Error('a bug of this filter');
    if (status === 200 && trailers === null) {
      this.#callbacks.continueDecoding();
      return;
    }
    const said = [status, head.headerByName('x-why'), body, trailers?.get('x-last')].join(' ');
    this.#callbacks.reply({ status: 403, body: said, flag: '-', details: 'denied' });
  }

  onCallFailure(failure: CallFailure): void {
    this.#callbacks.reply({ status: 503, body: failure, flag: '-', details: 'guard_failed' });
  }
}

/** A proxy that asks a guard about each request. */
async function guarded(t: TestContext, guardPort: number, question: Partial<CallRequest> = {}) {
  const upstream = await upstreamOf(t);
  const asked = { ...QUESTION, ...question };
  const filtered = await proxyWith(t, upstream.port, [(callbacks) => new Asking(callbacks, asked)]);
  filtered.proxy.cluster('guard', [loopback(guardPort)], { enableTrailers: true });
  return { ...filtered, upstream };
}

function statOf({ proxy }: FilteredProxy, stat: Parameters<FilteredProxy['proxy']['clusterStat']>[1]): number {
  return proxy.clusterStat('guard', stat);
}

describe('a call of a filter', () => {
  test('is a request of this machine, has its request wait, and lets it go on as it was', async (t) => {
    const guard = await upstreamOf(t);
    const filtered = await guarded(t, guard.port, { method: 'POST', body: Buffer.from('a question') });
    const { client, upstream, port } = filtered;
    client.write('POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbody');
    const asked = await guard.received('a question');
    assert.equal(
      asked,
      'POST /may-it?a=1 HTTP/1.1\r\nhost: guard.example\r\nx-asked: yes\r\ncontent-length: 10\r\n' +
        'x-proxy-internal: true\r\nx-proxy-expected-rq-timeout-ms: 5000\r\n\r\na question',
    );
    guard.send(OK);
    assert.match(await upstream.received('body'), /^POST \/a HTTP\/1\.1\r\nhost: a\r\ncontent-length: 4\r\n/);
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);

    // Another request uses the codec while the next one waits.
    client.write('GET /first HTTP/1.1\r\nhost: a\r\n\r\n');
    await guard.received('', asked.length * 2);
    const other = new WireClient(port).write('GET /direct HTTP/1.1\r\nhost: b\r\n\r\n');
    await guard.received('', asked.length * 3);
    guard.send('HTTP/1.1 403 Forbidden\r\nx-why: not you\r\ncontent-length: 0\r\n\r\n');
    assert.equal((await other.response()).body, '403 not you  ');
    other.close();
    assert.equal(statOf(filtered, 'upstream_rq_total'), 3);
    assert.equal(statOf(filtered, 'upstream_rq_active'), 1);
  });

  test('gets a body in chunks whole, with its trailers', async (t) => {
    const guard = await upstreamOf(t);
    const { client } = await guarded(t, guard.port);
    client.write(GET);
    await guard.received('\r\n\r\n');
    guard.send('HTTP/1.1 200 OK\r\nx-why: chunks\r\ntransfer-encoding: chunked\r\n\r\n3\r\none');
    guard.send('\r\n4;a=b\r\n two\r\n0\r\nx-last: bye\r\n\r\n');
    const { status, body } = await client.response();
    assert.deepEqual([status, body], [403, '200 chunks one two bye']);
  });

  test('works with guards that speak HTTP/2', async (t) => {
    let asked = '';
    const guard = await Http2Upstream.start(t, async (stream, headers) => {
      asked = `${headers[':method']} ${headers[':authority']} ${headers[':path']} ${await readAll(stream)}`;
      stream.respond({ ':status': 200, 'x-why': 'streams' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-last': 'bye' }));
      stream.end('frames');
    });
    const { client, proxy } = await guarded(t, guard.port, { method: 'POST', isGrpc: true, body: Buffer.from('?') });
    proxy.successor('guard', [loopback(guard.port)], {
      http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' },
    });
    client.write(GET);
    const { status, body } = await client.response();
    assert.deepEqual([status, body], [403, '200 streams frames bye']);
    assert.equal(asked, 'POST guard.example /may-it?a=1 ?');
  });

  test('that nobody can answer fails', async (t) => {
    const guard = await upstreamOf(t);
    const filtered = await guarded(t, guard.port);
    const { client, proxy } = filtered;
    const outcome = async (): Promise<readonly [number, string]> => {
      const { status, body } = await client.write(GET).response();
      return [status, body];
    };
    proxy.successor('guard', []);
    assert.deepEqual(await outcome(), [503, 'no healthy upstream']);
    proxy.dataPlane.updateClusters([], ['guard']);
    assert.deepEqual(await outcome(), [503, 'unknown cluster']);
    const upstream = await WireUpstream.start((socket) => socket.on('data', () => socket.destroy()));
    t.after(() => upstream.close());
    proxy.successor('guard', [loopback(upstream.port)]);
    assert.deepEqual(await outcome(), [503, 'connection termination']);
  });

  test('fails when its time is over, or its answer is longer than it may be', async (t) => {
    const guard = await upstreamOf(t);
    const filtered = await guarded(t, guard.port, { timeoutMs: 20, maxAnswerBytes: 4 });
    const { client } = filtered;
    assert.equal((await client.write(GET).response()).body, 'timeout');
    assert.equal(statOf(filtered, 'upstream_rq_timeout'), 1);
  });

  test('fails when its answer is longer than it may be, be it there or still to come', async (t) => {
    const guard = await upstreamOf(t);
    const filtered = await guarded(t, guard.port, { maxAnswerBytes: 4 });
    let asked = 0;
    for (const [length, body] of [
      [5, 'whole'],
      [9, 'begun'],
    ] as const) {
      filtered.client.write(GET);
      asked = (await guard.received('\r\n\r\n', asked + 1)).length;
      guard.send(`HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${body}`);
      assert.equal((await filtered.client.response()).body, 'answer too large');
      assert.equal(statOf(filtered, 'upstream_rq_active'), 0);
    }
    assert.equal(statOf(filtered, 'upstream_rq_tx_reset'), 1);
  });

  test('ends with a client that leaves', async (t) => {
    const left = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const guard = await WireUpstream.start((socket) => {
      socket.on('data', () => asked.resolve());
      socket.on('end', () => left.resolve());
      socket.on('error', () => left.resolve());
    });
    t.after(() => guard.close());
    const filtered = await guarded(t, guard.port);
    filtered.client.write(GET);
    await asked.promise;
    filtered.client.socket.destroy();
    await left.promise;
    assert.equal(statOf(filtered, 'upstream_rq_active'), 0);
    assert.equal(statOf(filtered, 'upstream_rq_tx_reset'), 1);
  });

  test('whose answer a filter fails over costs that request alone', async (t) => {
    const guard = await upstreamOf(t);
    const filtered = await guarded(t, guard.port);
    const { client, upstream } = filtered;
    client.write(GET);
    await guard.received('\r\n\r\n');
    guard.send("HTTP/1.1 418 I'm a teapot\r\ncontent-length: 0\r\n\r\n");
    assert.equal((await client.response()).status, 500);
    assert.equal(filtered.proxy.dynamicStat('server.', 'contained_faults'), 1);
    client.write(GET);
    await eventually(() => statOf(filtered, 'upstream_rq_active') === 1, 'the question is out');
    guard.send(OK);
    await upstream.received('\r\n\r\n');
    upstream.send(OK);
    assert.equal((await client.response()).status, 200);
    // The guard's connection has not suffered.
    assert.equal(statOf(filtered, 'upstream_cx_total'), 1);
  });
});
