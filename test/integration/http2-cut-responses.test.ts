// What becomes of a response that its upstream has cut over HTTP/2 while its client, of HTTP/2 too, has taken nothing of it.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { ErrorCode, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import { DataPlaneFixture, directRoute, forwardTo, loopback, routeFor } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { FrameClient } from '../support/http2-clients.ts';
import { get } from '../support/http2-program.ts';
import { data, frame, headers, POST, word } from '../support/http2-session.ts';
import { FrameUpstream } from '../support/http2-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';

const FLUSH_TIMEOUT_MS = 10_000;
const NO_WINDOW = frame(FrameType.SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]);

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly clock: ManualClock;
  readonly client: FrameClient;
}

/** A client without a window has asked for a response that comes in so many pieces, and was cut. */
async function cut(
  t: TestContext,
  pieces: readonly string[],
  request = get(1, '/'),
  flushTimeoutMs: number | null = null,
): Promise<Bench> {
  const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
    type === FrameType.HEADERS
      ? Buffer.concat([
          headers(streamId, [[':status', '200']], 0),
          ...pieces.map((piece) => data(streamId, piece)),
          frame(FrameType.RST_STREAM, 0, streamId, word(ErrorCode.CANCEL)),
        ])
      : null,
  );
  const clock = new ManualClock();
  const proxy = new DataPlaneFixture({ clock });
  proxy.cluster('web', [loopback(upstream.port)], { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } });
  const settings = { streamFlushTimeoutMs: FLUSH_TIMEOUT_MS };
  const routes = [directRoute('/empty', 204, ''), routeFor('/', forwardTo('web', { flushTimeoutMs }))];
  const port = await proxy.http(routes, settings);
  t.after(() => proxy.close());
  const client = new FrameClient(t, port, Buffer.concat([PREFACE, NO_WINDOW]));
  client.acknowledge();
  client.send(request);
  await eventually(() => proxy.clusterHttp2Stat('web', 'rx_reset') === 1, 'the cut');
  return { proxy, clock, client };
}

function resetCode({ frames }: FrameClient): number | undefined {
  return frames.find(({ type }) => type === FrameType.RST_STREAM)?.payload.readUInt32BE(0);
}

/** Nothing of the exchange is left, and its connection goes on. */
async function assertOver({ proxy, client }: Bench): Promise<void> {
  client.send(get(3, '/empty'));
  await client.find(({ type, streamId }) => type === FrameType.HEADERS && streamId === 3);
  assert.equal(proxy.http2Stat('streams_active'), 0);
  assert.equal(proxy.http2Stat('pending_send_bytes'), 0);
  assert.equal(proxy.httpStat('downstream_rq_active'), 0);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
  assert.equal(proxy.breakerCount('web', 8), 0);
}

const PIECES: Readonly<Record<string, readonly string[]>> = {
  'waits for a window': ['part'],
  'has not been asked for': ['part', 'of', 'a whole'],
};

for (const [what, pieces] of Object.entries(PIECES)) {
  test(`the part that ${what} is followed by the reset`, async (t) => {
    const here = await cut(t, pieces);
    const { client } = here;
    let content = '';
    // A byte at a time, so that everything is held back again and again.
    for (const _ of pieces.join('')) {
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 1, word(1)));
      const length = content.length + 1;
      const text = (): string =>
        client.frames
          .filter(({ type }) => type === FrameType.DATA)
          .map(({ payload }) => payload.toString())
          .join('');
      await eventually(() => text().length === length, 'a byte');
      content = text();
      if (length < pieces.join('').length) assert.equal(resetCode(client), undefined);
    }
    assert.equal(content, pieces.join(''));
    await client.ofType(FrameType.RST_STREAM);
    assert.equal(resetCode(client), ErrorCode.INTERNAL_ERROR);
    assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 0);
    assert.equal(here.proxy.httpStat('downstream_rq_tx_reset'), 1);
    await assertOver(here);
  });

  test(`the part that ${what} goes with a client that resets its stream`, async (t) => {
    const here = await cut(t, pieces);
    here.client.send(frame(FrameType.RST_STREAM, 0, 1, word(ErrorCode.CANCEL)));
    await assertOver(here);
    assert.equal(resetCode(here.client), undefined);
  });

  test(`the part that ${what} goes with a connection that ends`, async (t) => {
    const { proxy, client } = await cut(t, pieces);
    client.socket.destroy();
    await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the end');
    assert.equal(proxy.http2Stat('pending_send_bytes'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
    assert.equal(proxy.breakerCount('web', 8), 0);
  });
}

test('a client that takes nothing of what was cut has the time of a flush', async (t) => {
  const here = await cut(t, ['part']);
  here.clock.turn(FLUSH_TIMEOUT_MS - 100);
  assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 0);
  here.clock.turn(200);
  assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 1);
  await here.client.ofType(FrameType.RST_STREAM);
  assert.equal(resetCode(here.client), ErrorCode.CANCEL);
  await assertOver(here);
});

test('a route has another time for that than its connection manager', async (t) => {
  const here = await cut(t, ['part'], get(1, '/'), FLUSH_TIMEOUT_MS / 2);
  here.clock.turn(FLUSH_TIMEOUT_MS / 2 - 100);
  assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 0);
  here.clock.turn(200);
  assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 1);
});

test('a request that goes on behind a response that was cut is thrown away', async (t) => {
  const here = await cut(t, ['part'], headers(1, POST, 0));
  here.client.send(data(1, 'more'), data(1, 'and the end', 1));
  here.client.send(frame(FrameType.WINDOW_UPDATE, 0, 1, word(4)));
  await here.client.ofType(FrameType.RST_STREAM);
  assert.equal(resetCode(here.client), ErrorCode.INTERNAL_ERROR);
  await assertOver(here);
});
