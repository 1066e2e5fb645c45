// CONNECT of HTTP/2 clients, by node:http2 over a real data plane: ended here, with plain TCP behind it, or passed on to the
// next proxy over HTTP/1.1. A stream is the tunnel, and its neighbours go on.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { ErrorCode } from '../../src/data-plane/http/codec/http2/frames.ts';
import { DataPlaneFixture, directRoute, loopback } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { answerOf, Http2Client } from '../support/http2-clients.ts';
import { connectRoute } from '../support/routes.ts';
import { upgrade } from '../support/tunnel-bench.ts';
import { WireUpstream } from '../support/wire.ts';

const REQUEST = { ':method': 'CONNECT', ':authority': 'target.test:443' };
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly client: Http2Client;
  /** What the upstream has got. */
  readonly received: () => string;
  readonly upstream: WireUpstream;
}

/** The upstream says `opening` to the first bytes, sends back what comes then, and ends when the other side has, or not even then. */
async function bench(
  t: TestContext,
  terminatesConnect: boolean,
  { isEnabled = true, endsToo = true } = {},
): Promise<Bench> {
  let received = '';
  const upstream = await WireUpstream.start((socket) => {
    let isOpen = terminatesConnect;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (isOpen) socket.write(chunk);
      else socket.write(ESTABLISHED);
      isOpen = true;
    });
    if (endsToo) socket.on('end', () => socket.end());
    socket.on('error', () => {});
  });
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstream.port)]);
  const settings = isEnabled ? { upgrades: [upgrade('connect')] } : {};
  const port = await proxy.http([connectRoute({ terminatesConnect }), directRoute('/direct', 200, 'direct')], settings);
  t.after(async () => {
    await proxy.close();
    await upstream.close();
  });
  return { proxy, client: new Http2Client(t, port), received: () => received, upstream };
}

for (const terminatesConnect of [true, false]) {
  describe(`a CONNECT over HTTP/2 that ${terminatesConnect ? 'ends here' : 'goes to another proxy'}`, () => {
    test('carries bytes both ways until both sides have ended', async (t) => {
      const { proxy, client, received } = await bench(t, terminatesConnect);
      const stream = client.open(REQUEST);
      const [fields] = (await once(stream, 'response')) as [Record<string, unknown>];
      assert.equal(fields[':status'], 200);
      assert.equal(fields['content-length'], undefined);
      if (!terminatesConnect) assert.match(received(), /^CONNECT target\.test:443 HTTP\/1\.1\r\n/);
      let answer = '';
      stream.setEncoding('latin1').on('data', (text: string) => (answer += text));
      stream.write('hello');
      await eventually(() => answer === 'hello', 'an echo');
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 1);
      assert.equal((await client.get('/direct')).body, 'direct');
      const ended = once(stream, 'end');
      stream.end(' and goodbye');
      await ended;
      assert.equal(answer, 'hello and goodbye');
      await eventually(() => proxy.httpStat('downstream_cx_upgrades_active') === 0, 'the end of the tunnel');
      assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
      assert.equal(proxy.httpStat('downstream_cx_http2_active'), 1);
    });

    test('is seen to have been reset when it is that behind the proxy', async (t) => {
      const { client, upstream } = await bench(t, terminatesConnect);
      const stream = client.open(REQUEST);
      await once(stream, 'response');
      const failed = once(stream, 'error');
      upstream.sockets[0]!.resetAndDestroy();
      await failed;
      assert.equal(stream.rstCode, ErrorCode.CONNECT_ERROR);
      assert.equal((await client.get('/direct')).status, 200);
    });

    test('ends behind it, too, when its client breaks it off', async (t) => {
      const { proxy, client } = await bench(t, terminatesConnect, { endsToo: false });
      const stream = client.open(REQUEST);
      await once(stream, 'response');
      stream.on('error', () => {});
      stream.close(ErrorCode.CANCEL);
      await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the end upstream');
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 0);
      assert.equal((await client.get('/direct')).status, 200);
    });
  });
}

test('a CONNECT over HTTP/2 that nobody has enabled gets a 403', async (t) => {
  const { proxy, client } = await bench(t, true, { isEnabled: false });
  assert.equal((await answerOf(client.open(REQUEST))).status, 403);
  assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 0);
});
