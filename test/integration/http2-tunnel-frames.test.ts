// What comes through a tunnel of HTTP/2 beside its bytes, over a real data plane: fields are a fault of the stream on either
// side (RFC 9113 section 8.5), never a clean end, and the streams beside it go on.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { ErrorCode, FrameFlag, FrameType, Setting } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { direct } from '../support/http2-bench.ts';
import { FrameClient } from '../support/http2-clients.ts';
import { data, type Frame, frame, headers, POST } from '../support/http2-session.ts';
import { FrameUpstream, http2Proxy } from '../support/http2-upstream.ts';
import type { Field } from '../support/reference/hpack.ts';
import { connectRoute } from '../support/routes.ts';
import { SWITCHING, UPGRADE, upgrade } from '../support/tunnel-bench.ts';
import { peerEnd, WireClient, WireUpstream } from '../support/wire.ts';

const CONNECT: readonly Field[] = [
  [':method', 'CONNECT'],
  [':authority', 'target.test:443'],
];
const EXTENDED: readonly Field[] = [[':method', 'CONNECT'], [':protocol', 'websocket'], ...POST.slice(1)];
const TRAILERS: readonly Field[] = [['x', 'y']];
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';
const http2 = { ...DEFAULT_HTTP2_SETTINGS, allowConnect: true };

interface Kind {
  readonly what: string;
  readonly fields: readonly Field[];
  /** What the upstream of HTTP/1.1 says first. */
  readonly opening: string;
  readonly terminatesConnect?: boolean;
}

const KINDS: readonly Kind[] = [
  { what: 'a CONNECT that ends here', fields: CONNECT, opening: '', terminatesConnect: true },
  { what: 'a CONNECT that goes to another proxy', fields: CONNECT, opening: ESTABLISHED },
  { what: 'an extended CONNECT', fields: EXTENDED, opening: SWITCHING },
];

const isReset = ({ type, streamId }: Frame): boolean => type === FrameType.RST_STREAM && streamId === 1;

for (const { what, fields, opening, terminatesConnect = false } of KINDS) {
  for (const flags of [FrameFlag.END_STREAM, 0]) {
    const how = `${flags === 0 ? 'do not end' : 'end'} the stream`;
    test(`trailers of a client that ${how} reset the tunnel of ${what}`, async (t) => {
      let received = '';
      const broken = Promise.withResolvers<string>();
      const upstream = await WireUpstream.start((socket) => {
        socket.on('data', (chunk: Buffer) => {
          received += chunk.toString('latin1');
          if (received.length === chunk.length) socket.write(`${opening}hello`);
        });
        void peerEnd(socket).then(broken.resolve);
      });
      const proxy = new DataPlaneFixture();
      proxy.cluster('web', [loopback(upstream.port)]);
      t.after(async () => {
        await proxy.close();
        await upstream.close();
      });
      const routes = [connectRoute({ terminatesConnect }), directRoute('/direct', 200, 'direct'), routeTo('web')];
      const upgrades = [upgrade('connect'), upgrade('websocket')];
      const port = await proxy.http(routes, { upgrades, http2 });
      const client = new FrameClient(t, port);
      client.acknowledge();
      client.send(headers(1, fields, 0), data(1, 'word'));
      await client.find(({ type, payload }) => type === FrameType.DATA && payload.toString() === 'hello');

      client.send(headers(1, TRAILERS, flags));
      assert.equal((await client.find(isReset))?.payload.readUInt32BE(0), ErrorCode.PROTOCOL_ERROR);
      await broken.promise;
      await eventually(() => proxy.httpStat('downstream_cx_upgrades_active') === 0, 'the end of the tunnel');
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
      assert.equal(proxy.http2Stat('rx_messaging_error'), 1);
      client.send(direct(3));
      assert.ok(await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3));
    });
  }
}

/** A proxy in front of an upstream of HTTP/2 that opens tunnels, and sends trailers behind the first bytes. */
async function trailing(
  t: TestContext,
  manager: Partial<HttpConnectionManagerSettings>,
): Promise<{ upstream: FrameUpstream; port: number; proxy: DataPlaneFixture }> {
  const upstream = await FrameUpstream.start(
    t,
    ({ type, streamId, payload }) => {
      if (type === FrameType.HEADERS) return headers(streamId, [[':status', '200']], 0);
      if (type !== FrameType.DATA) return null;
      return Buffer.concat([frame(FrameType.DATA, 0, streamId, payload), headers(streamId, TRAILERS)]);
    },
    [0, Setting.ENABLE_CONNECT_PROTOCOL, 0, 0, 0, 1],
  );
  return { upstream, ...(await http2Proxy(t, upstream.port, { manager })) };
}

test('trailers of an upstream reset the tunnel of an upgrade', async (t) => {
  const { upstream, port, proxy } = await trailing(t, { upgrades: [upgrade('websocket')] });
  const client = new WireClient(port).write(UPGRADE);
  t.after(() => client.close());
  await client.until('\r\n\r\n');
  client.write('word');
  await client.rest();
  assert.equal((client.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
  await eventually(() => upstream.of(FrameType.RST_STREAM).length === 1, 'a reset');
  assert.equal(upstream.of(FrameType.RST_STREAM)[0]!.payload.readUInt32BE(0), ErrorCode.PROTOCOL_ERROR);
  assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
});

test('trailers of an upstream reset the tunnel of a stream', async (t) => {
  const { upstream, port } = await trailing(t, { upgrades: [upgrade('websocket')], http2 });
  const client = new FrameClient(t, port);
  client.acknowledge();
  client.send(headers(1, EXTENDED, 0), data(1, 'word'));
  assert.equal((await client.find(isReset))?.payload.readUInt32BE(0), ErrorCode.INTERNAL_ERROR);
  await eventually(() => upstream.of(FrameType.RST_STREAM).length === 1, 'a reset');
  assert.equal(upstream.of(FrameType.RST_STREAM)[0]!.payload.readUInt32BE(0), ErrorCode.PROTOCOL_ERROR);
});

test('trailers from before the tunnel was open end its direction, and go no further', async (t) => {
  const asked = Promise.withResolvers<number>();
  const upstream = await FrameUpstream.start(
    t,
    ({ type, streamId, flags }) => {
      if (type === FrameType.HEADERS) asked.resolve(streamId);
      return type === FrameType.DATA && (flags & FrameFlag.END_STREAM) !== 0
        ? data(streamId, 'bye', FrameFlag.END_STREAM)
        : null;
    },
    [0, Setting.ENABLE_CONNECT_PROTOCOL, 0, 0, 0, 1],
  );
  const { port } = await http2Proxy(t, upstream.port, { manager: { upgrades: [upgrade('websocket')], http2 } });
  const client = new FrameClient(t, port);
  client.acknowledge();
  client.send(headers(1, EXTENDED, 0), data(1, 'word'), headers(1, TRAILERS));
  const streamId = await asked.promise;
  upstream.sockets[0]!.write(headers(streamId, [[':status', '200']], 0));
  const last = await client.find(({ type, flags }) => type === FrameType.DATA && (flags & FrameFlag.END_STREAM) !== 0);
  assert.equal(last?.payload.toString(), 'bye');
  assert.equal(upstream.of(FrameType.HEADERS).length, 1);
  assert.equal(upstream.of(FrameType.RST_STREAM).length, 0);
});
