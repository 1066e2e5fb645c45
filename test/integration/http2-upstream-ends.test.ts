// An upstream of HTTP/2 that breaks off an exchange, at each moment of it: its client, of either protocol, never takes what has come for a
// whole answer, and the connection goes on unless it was the connection that broke.

import assert from 'node:assert/strict';
import http2 from 'node:http2';
import { describe, type TestContext, test } from 'node:test';
import { ErrorCode, FrameFlag, FrameType, Setting } from '../../src/data-plane/http/codec/http2/frames.ts';
import { eventually } from '../support/eventually.ts';
import { plainBlock } from '../support/http2-heads.ts';
import { blockFrames, data, frame, headers, word } from '../support/http2-session.ts';
import { FrameUpstream, Http2Upstream, http2Proxy, type OnStream } from '../support/http2-upstream.ts';
import { WireClient } from '../support/wire.ts';

type Exchange = { readonly status: number; readonly body: string; readonly isWhole: boolean };

const HEAD = [[':status', '200']] as const;
const SIZED = [...HEAD, ['content-length', '8']] as const;

/** By HTTP/1, read as bytes. */
async function byHttp1(_t: TestContext, port: number): Promise<Exchange> {
  const client = new WireClient(port).write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  await eventually(() => client.isEnded, 'the end');
  const text = await client.until(/^.*$/s);
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  const isWhole = length === undefined ? text.endsWith('\r\n0\r\n\r\n') : body.length === Number(length);
  return { status: Number(head.split(' ')[1]), body, isWhole };
}

async function byHttp2(t: TestContext, port: number): Promise<Exchange> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  session.on('error', () => {});
  const stream = session.request({ ':path': '/' });
  let status = 0;
  let body = '';
  stream.on('error', () => {});
  stream.on('response', (fields) => (status = Number(fields[':status'])));
  stream.setEncoding('utf8').on('data', (text: string) => (body += text));
  // It may come with an error, which is what is looked for.
  await new Promise<void>((resolve) => void stream.once('close', resolve));
  return { status, body, isWhole: stream.rstCode === 0 };
}

const CLIENTS = { 'HTTP/1': byHttp1, 'HTTP/2': byHttp2 };

const reset = (id: number, code: number = ErrorCode.INTERNAL_ERROR): Buffer =>
  frame(FrameType.RST_STREAM, 0, id, word(code));

/** What the upstream says, and how its client takes it: the proxy's own answer, or one that is cut. */
const MOMENTS: readonly {
  readonly when: string;
  readonly said: (id: number) => readonly Buffer[];
  readonly status: 200 | 503;
  readonly isWhole: boolean;
}[] = [
  { when: 'before the head', said: (id) => [reset(id)], status: 503, isWhole: true },
  { when: 'behind the head', said: (id) => [headers(id, HEAD, 0), reset(id)], status: 200, isWhole: false },
  {
    when: 'in the body',
    said: (id) => [headers(id, HEAD, 0), data(id, 'part'), reset(id)],
    status: 200,
    isWhole: false,
  },
  {
    when: 'in a body of a known length',
    said: (id) => [headers(id, SIZED, 0), data(id, 'part'), reset(id)],
    status: 200,
    isWhole: false,
  },
  {
    when: 'in the body, without an error',
    said: (id) => [headers(id, HEAD, 0), data(id, 'part'), reset(id, ErrorCode.NO_ERROR)],
    status: 200,
    isWhole: false,
  },
  {
    when: 'behind the body',
    said: (id) => [headers(id, SIZED, 0), data(id, 'complete', FrameFlag.END_STREAM), reset(id)],
    status: 200,
    isWhole: true,
  },
];

for (const [version, exchange] of Object.entries(CLIENTS)) {
  describe(`an answer for a client of ${version}`, () => {
    for (const { when, said, status, isWhole } of MOMENTS) {
      test(`that is reset ${when} is ${isWhole ? 'whole' : 'seen to be cut'}`, async (t) => {
        const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
          type === FrameType.HEADERS ? Buffer.concat([...said(streamId)]) : null,
        );
        const { proxy, port } = await http2Proxy(t, upstream.port);
        const answer = await exchange(t, port);
        if (status === 503 || isWhole) assert.equal(answer.status, status);
        assert.equal(answer.isWhole, isWhole, JSON.stringify(answer));
        assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
        assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
      });
    }

    test('whose head is larger than any that is read is replaced, and the connection goes on', async (t) => {
      const large = plainBlock([...HEAD, ['x-a', 'a'.repeat(200_000)]]);
      const upstream = await FrameUpstream.start(t, ({ type, streamId }) => {
        if (type !== FrameType.HEADERS) return null;
        return streamId === 1 ? Buffer.concat(blockFrames(1, large)) : headers(streamId, HEAD);
      });
      const { proxy, port } = await http2Proxy(t, upstream.port);
      assert.equal((await exchange(t, port)).status, 502);
      assert.equal((await exchange(t, port)).status, 200);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
      assert.deepEqual(
        upstream.of(FrameType.RST_STREAM).map(({ payload }) => payload.readUInt32BE(0)),
        [ErrorCode.ENHANCE_YOUR_CALM],
      );
    });

    test('whose connection breaks in the body is seen to be cut', async (t) => {
      const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
        type === FrameType.HEADERS ? Buffer.concat([headers(streamId, HEAD, 0), data(streamId, 'part')]) : null,
      );
      const { proxy, port } = await http2Proxy(t, upstream.port);
      const answer = exchange(t, port);
      const isHere = (): boolean => proxy.clusterStat('web', 'upstream_rq_active') === 1;
      await eventually(isHere, 'the request');
      await eventually(() => upstream.of(FrameType.HEADERS).length === 1, 'the answer');
      upstream.sockets[0]!.end();
      assert.equal((await answer).isWhole, false);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
    });

    test('is there in full whatever GOAWAY comes in its middle', async (t) => {
      const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
        type === FrameType.HEADERS
          ? Buffer.concat([
              headers(streamId, SIZED, 0),
              data(streamId, 'comp'),
              frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(2 ** 31 - 1), word(0)])),
              frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(streamId), word(0)])),
              data(streamId, 'lete', FrameFlag.END_STREAM),
            ])
          : null,
      );
      const { proxy, port } = await http2Proxy(t, upstream.port);
      const answer = await exchange(t, port);
      assert.deepEqual([answer.status, answer.body, answer.isWhole], [200, 'complete', true]);
      await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the end of the connection');
    });
  });
}

test('an upstream that takes one stream at a time gets one, and more as soon as it says so', async (t) => {
  const answers: (() => void)[] = [];
  const onStream: OnStream = (stream) => {
    answers.push(() => stream.respond({ ':status': 200 }, { endStream: true }));
  };
  const upstream = await Http2Upstream.start(t, onStream, { maxConcurrentStreams: 1 });
  const limits = { maxConnections: 1, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 };
  const { port } = await http2Proxy(t, upstream.port, {
    cluster: { circuitBreakers: { default: limits, high: limits } },
  });
  const first = byHttp2(t, port);
  await eventually(() => answers.length === 1, 'the first request');
  answers.shift()!();
  assert.equal((await first).status, 200);
  const others = Array.from({ length: 4 }, () => byHttp2(t, port));
  await eventually(() => answers.length === 1, 'one of them');
  upstream.sessions[0]!.settings({ maxConcurrentStreams: 3 });
  await eventually(() => answers.length === 3, 'three of them');
  for (const answer of answers.splice(0)) answer();
  await eventually(() => answers.length === 1, 'the last');
  answers.shift()!();
  for (const other of others) assert.equal((await other).status, 200);
  assert.equal(upstream.sessions.length, 1);
});

test('streams that an upstream refuses in the middle of a burst are sent again, each once', async (t) => {
  const seen = new Map<number, number>();
  const upstream = await FrameUpstream.start(
    t,
    ({ type, streamId }, connection) => {
      if (type !== FrameType.HEADERS) return null;
      seen.set(connection, (seen.get(connection) ?? 0) + 1);
      const isRefused = streamId % 4 === 1 && streamId <= 40;
      return isRefused ? reset(streamId, ErrorCode.REFUSED_STREAM) : headers(streamId, HEAD);
    },
    [0, Setting.MAX_CONCURRENT_STREAMS, 0, 0, 0, 100],
  );
  const { proxy, port } = await http2Proxy(t, upstream.port);
  const all = await Promise.all(Array.from({ length: 20 }, () => byHttp2(t, port)));
  const refusedTwice = all.filter(({ status }) => status === 503).length;
  assert.equal(all.filter(({ status }) => status === 200).length + refusedTwice, 20);
  assert.equal(
    [...seen.values()].reduce((sum, count) => sum + count, 0),
    proxy.clusterStat('web', 'upstream_rq_total'),
  );
  assert.ok(proxy.clusterStat('web', 'upstream_rq_total') > 20);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
});
