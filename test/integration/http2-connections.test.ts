// The times of HTTP/2 connections and streams, and how connections end: drains, pings, slow readers; tunnels over streams.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { ErrorCode, FrameFlag, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import { eventually } from '../support/eventually.ts';
import { direct, http2Bench, settledClient, silentUpstream } from '../support/http2-bench.ts';
import { answerOf, FrameClient, Http2Client } from '../support/http2-clients.ts';
import { drainedBy, ended, goaways } from '../support/http2-program.ts';
import { frame, headers, POST } from '../support/http2-session.ts';
import type { ManualClock } from '../support/manual-clock.ts';
import { WireUpstream } from '../support/wire.ts';

/** What waits by the clock, which is turned until it is done. */
async function settledAfter(promise: Promise<void>, clock: ManualClock): Promise<void> {
  let isDone = false;
  void promise.then(() => (isDone = true));
  await eventually(() => {
    clock.turn(20);
    return isDone;
  }, 'the end');
}

describe('an HTTP/2 connection', () => {
  test('ends when nothing has run on it for its time', async (t) => {
    const here = await http2Bench(t, { idleTimeoutMs: 1000 });
    const client = await settledClient(t, here);
    here.clock.turn(1100);
    await client.ofType(FrameType.GOAWAY);
    assert.equal(here.proxy.httpStat('downstream_cx_idle_timeout'), 1);
    // A request that was on its way is answered; one that has waited for the end is not.
    client.send(direct(3));
    assert.equal(await ended(client, 3), 'direct');
    here.clock.turn(1100);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    await client.ended();
    assert.deepEqual(goaways(client), [2 ** 31 - 1, 3]);
    assert.equal(here.proxy.httpStat('downstream_cx_idle_timeout'), 1);
  });

  test('does not end that way while a stream runs', async (t) => {
    const { port, asked } = await silentUpstream(t);
    const here = await http2Bench(t, { idleTimeoutMs: 1000 }, { upstreamPort: port });
    const client = await settledClient(t, here);
    client.send(headers(3));
    await asked;
    here.clock.turn(5000);
    client.send(frame(FrameType.PING, 0, 0, Buffer.from('are-here')));
    assert.equal((await client.ofType(FrameType.PING))?.payload.toString(), 'are-here');
  });

  test('ends when its client does not confirm settings', async (t) => {
    const here = await http2Bench(t);
    const client = new FrameClient(t, here.port);
    await client.ofType(FrameType.SETTINGS);
    here.clock.turn(10_100);
    assert.equal(await client.goaway(), ErrorCode.SETTINGS_TIMEOUT);
  });

  test('ends when a header block does not', async (t) => {
    const here = await http2Bench(t, { requestHeadersTimeoutMs: 1000 });
    const client = await settledClient(t, here);
    client.send(
      frame(FrameType.HEADERS, 0, 3, Buffer.from([0x82])),
      frame(FrameType.CONTINUATION, 0, 3, Buffer.from([0x86])),
    );
    await eventually(() => {
      here.clock.turn(100);
      return here.proxy.httpStat('downstream_rq_header_timeout') === 1;
    }, 'the timeout');
    assert.equal(await client.goaway(), ErrorCode.ENHANCE_YOUR_CALM);
  });

  test('is pinged, and ends when there is no answer', async (t) => {
    const keepalive = { intervalMs: 1000, timeoutMs: 500, jitterPercent: 0, idleIntervalMs: 0 };
    const here = await http2Bench(t, { http2: { ...DEFAULT_HTTP2_SETTINGS, keepalive } });
    const client = await settledClient(t, here);
    here.clock.turn(1100);
    const ping = await client.ofType(FrameType.PING);
    client.send(
      frame(FrameType.PING, FrameFlag.ACK, 0, ping!.payload),
      frame(FrameType.PING, 0, 0, Buffer.from('in order')),
    );
    await client.find(({ payload }) => payload.toString() === 'in order');
    here.clock.turn(700);
    assert.equal(here.proxy.http2Stat('keepalive_timeout'), 0);
    here.clock.turn(1000);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    assert.equal(here.proxy.http2Stat('keepalive_timeout'), 1);
  });

  test('that answers no ping ends, too, where pings would come more often than that takes', async (t) => {
    const keepalive = { intervalMs: 400, timeoutMs: 1000, jitterPercent: 0, idleIntervalMs: 0 };
    const here = await http2Bench(t, { http2: { ...DEFAULT_HTTP2_SETTINGS, keepalive } });
    const client = await settledClient(t, here);
    for (let turns = 0; turns < 16; turns += 1) here.clock.turn(100);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    assert.equal(here.proxy.http2Stat('keepalive_timeout'), 1);
  });

  test('tells of a drain in two steps, between which requests are still answered', async (t) => {
    const here = await http2Bench(t);
    const client = await settledClient(t, here);
    const shutdown = here.proxy.dataPlane.shutdown(60_000);
    const first = await client.ofType(FrameType.GOAWAY);
    assert.equal(first?.payload.readUInt32BE(0), 2 ** 31 - 1);
    client.send(direct(3));
    assert.ok(await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3));
    await drainedBy(here.clock, client);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    client.socket.end();
    await client.ended();
    await settledAfter(shutdown, here.clock);
  });

  test('takes the second step by itself when its client answers nothing', async (t) => {
    const here = await http2Bench(t, { drainTimeoutMs: 2000 });
    const client = await settledClient(t, here);
    const shutdown = here.proxy.dataPlane.shutdown(60_000);
    await client.ofType(FrameType.GOAWAY);
    here.clock.turn(2100);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    await client.ended();
    await settledAfter(shutdown, here.clock);
  });
});

describe('a stream', () => {
  test('on which nothing moves is answered, and its connection goes on', async (t) => {
    const { port, asked } = await silentUpstream(t);
    const here = await http2Bench(t, { streamIdleTimeoutMs: 1000 }, { upstreamPort: port });
    const client = new Http2Client(t, here.port);
    const answer = client.get('/');
    await asked;
    here.clock.turn(1100);
    assert.equal((await answer).status, 504);
    assert.equal((await client.get('/direct')).status, 200);
    assert.equal(here.proxy.httpStat('downstream_rq_idle_timeout'), 1);
  });

  test('whose request does not end in time is answered', async (t) => {
    const here = await http2Bench(t, { requestTimeoutMs: 1000 }, { upstreamPort: (await silentUpstream(t)).port });
    const client = new Http2Client(t, here.port);
    const stream = client.open({ ':method': 'POST', ':path': '/' });
    const answer = answerOf(stream);
    await eventually(() => here.proxy.http2Stat('streams_active') === 1, 'the request');
    here.clock.turn(1100);
    assert.equal((await answer).status, 408);
    assert.equal(here.proxy.httpStat('downstream_rq_timeout'), 1);
  });

  test('whose answer is not taken is reset after its time', async (t) => {
    const here = await http2Bench(t, { streamIdleTimeoutMs: 1000 });
    // A window of nothing.
    const noWindow = frame(FrameType.SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]);
    const client = new FrameClient(
      t,
      here.port,
      Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), noWindow]),
    );
    client.acknowledge();
    client.send(direct(1));
    await client.ofType(FrameType.HEADERS);
    here.clock.turn(1100);
    assert.equal((await client.ofType(FrameType.RST_STREAM))?.payload.readUInt32BE(0), ErrorCode.CANCEL);
    assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 1);
    assert.equal(here.proxy.httpStat('downstream_rq_completed'), 1);
  });
});

test('an answer that nobody takes is reset, once, when it holds too much', async (t) => {
  const here = await http2Bench(t, { streamIdleTimeoutMs: 1000 });
  const client = new FrameClient(
    t,
    here.port,
    Buffer.concat([PREFACE, frame(FrameType.SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0])]),
  );
  client.acknowledge();
  client.send(direct(1));
  await client.ofType(FrameType.HEADERS);
  const { cell, read } = here.proxy.counter();
  here.proxy.dataPlane.resetStreams({ fromBytes: 7, countCell: cell });
  assert.equal(read(), 0);
  here.proxy.dataPlane.resetStreams({ fromBytes: 6, countCell: cell });
  assert.equal(read(), 1);
  assert.equal((await client.ofType(FrameType.RST_STREAM))?.payload.readUInt32BE(0), ErrorCode.ENHANCE_YOUR_CALM);
  here.clock.turn(1100);
  assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 0);
  assert.equal(here.proxy.http2Stat('tx_reset'), 1);
});

describe('an extended CONNECT', () => {
  const upgrades = [{ type: 'websocket', isEnabled: true, httpFilters: null }];
  const http2 = { ...DEFAULT_HTTP2_SETTINGS, allowConnect: true };
  const REQUEST = { ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/chat', 'sec-websocket-version': '13' };

  test('becomes a WebSocket of an HTTP/1.1 upstream, with a key, and carries bytes both ways', async (t) => {
    let head = '';
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', (chunk: Buffer) => {
        head = chunk.toString('latin1');
        socket.write(
          'HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\nhello',
        );
        socket.on('data', (bytes: Buffer) => socket.write(`got ${bytes.toString('latin1')}`));
        socket.on('end', () => socket.end('bye'));
      });
    });
    t.after(() => upstream.close());
    const here = await http2Bench(t, { upgrades, http2 }, { upstreamPort: upstream.port });
    const client = new Http2Client(t, here.port);
    await once(client.session, 'remoteSettings');
    const stream = client.open(REQUEST);
    const [fields] = (await once(stream, 'response')) as [Record<string, unknown>];
    assert.equal(fields[':status'], 200);
    assert.equal(fields['sec-websocket-accept'], undefined);
    assert.match(head, /^GET \/chat HTTP\/1\.1\r\n/);
    assert.match(head, /\r\nupgrade: websocket\r\n/);
    assert.match(head, /\r\nsec-websocket-key: [A-Za-z0-9+/]{22}==\r\n/);
    let received = '';
    stream.setEncoding('latin1').on('data', (text: string) => (received += text));
    await eventually(() => received === 'hello', 'a word');
    stream.write('word');
    await eventually(() => received === 'hellogot word', 'an answer');
    assert.equal(here.proxy.httpStat('downstream_cx_upgrades_active'), 1);
    stream.end();
    await once(stream, 'end');
    assert.equal(received, 'hellogot wordbye');
    assert.equal(here.proxy.httpStat('downstream_cx_upgrades_active'), 0);
  });

  test('that nobody admits gets a 403, and one that was not announced is a fault', async (t) => {
    const here = await http2Bench(t, { http2 });
    const client = new Http2Client(t, here.port);
    await once(client.session, 'remoteSettings');
    assert.equal((await answerOf(client.open(REQUEST))).status, 403);
    assert.equal((await client.get('/direct')).status, 200);
    const plain = await http2Bench(t, { upgrades });
    const other = new FrameClient(t, plain.port);
    other.send(headers(1, [[':method', 'CONNECT'], [':protocol', 'websocket'], ...POST.slice(1)], 0));
    assert.equal(await other.goaway(), ErrorCode.PROTOCOL_ERROR);
  });
});
