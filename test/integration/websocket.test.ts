// WebSocket as programs speak it: a client and a server of their own, with the data plane between them.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { on, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { eventually } from '../support/eventually.ts';
import { flood, type TunnelBench, tunnelBench } from '../support/tunnel-bench.ts';

const LARGE_BYTES = 6 * 1024 * 1024;

interface Pair {
  readonly bench: TunnelBench;
  readonly client: WebSocket;
  readonly server: WebSocket;
}

async function pair(t: TestContext, readMode: 'lean' | 'events'): Promise<Pair> {
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
  });
  await once(sockets, 'listening');
  const bench = await tunnelBench(t, { upstreamPort: (sockets.address() as AddressInfo).port, readMode });
  const client = new WebSocket(`ws://127.0.0.1:${bench.port}/socket`, { perMessageDeflate: false });
  t.after(() => client.terminate());
  client.on('error', () => {});
  const [[server]] = (await Promise.all([once(sockets, 'connection'), once(client, 'open')])) as [[WebSocket], unknown];
  server.on('error', () => {});
  return { bench, client, server };
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Digests of what comes before the text `end`: all pieces together, and the one large message. */
async function receive(socket: WebSocket): Promise<{ pieces: string; large: string }> {
  const pieces = createHash('sha256');
  let large = '';
  for await (const [data, isBinary] of on(socket, 'message') as AsyncIterable<[Buffer, boolean]>) {
    if (!isBinary) break;
    if (data.length === LARGE_BYTES) large = sha256(data);
    else pieces.update(data);
  }
  return { pieces: pieces.digest('hex'), large };
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`WebSocket, reading by ${readMode}`, () => {
    test('carries text and binary both ways', async (t) => {
      const { client, server } = await pair(t, readMode);
      server.on('message', (data, isBinary) => server.send(data, { binary: isBinary }));
      for (const message of ['hello', 'ä€😀', '', randomBytes(70_000)]) {
        client.send(message);
        const [data, isBinary] = (await once(client, 'message')) as [Buffer, boolean];
        assert.equal(isBinary, typeof message !== 'string');
        assert.deepEqual(data, Buffer.from(message as Buffer));
      }
    });

    test('carries large messages both ways at once past slow readers, unharmed', async (t) => {
      const { bench, client, server } = await pair(t, readMode);
      const { proxy } = bench;
      const [atClient, atServer] = [receive(client), receive(server)];
      client.pause();
      server.pause();
      const [down, up] = await Promise.all([
        flood(
          (bytes) => server.send(bytes),
          () => proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') > 0,
        ),
        flood(
          (bytes) => client.send(bytes),
          () => proxy.httpStat('downstream_flow_control_paused_reading_total') > 0,
        ),
      ]);
      const large = randomBytes(LARGE_BYTES);
      server.send(large);
      server.send('end');
      client.send('end');
      client.resume();
      server.resume();
      assert.deepEqual(await atServer, { pieces: up.sha256, large: '' });
      assert.deepEqual(await atClient, { pieces: down.sha256, large: sha256(large) });
      // The slab of the bulk is given back when it is over.
      server.send('small');
      await once(client, 'message');
      assert.equal(proxy.dataPlane.readSlabBytes, 0);
    });

    test('carries pings, pongs and the codes of a close', async (t) => {
      const { bench, client, server } = await pair(t, readMode);
      client.ping('are you there');
      assert.equal(String((await once(server, 'ping'))[0]), 'are you there');
      assert.equal(String((await once(client, 'pong'))[0]), 'are you there');
      const closed = Promise.all([once(client, 'close'), once(server, 'close')]);
      client.close(4321, 'enough');
      const [[clientCode], [code, reason]] = (await closed) as [[number], [number, Buffer]];
      assert.equal(code, 4321);
      assert.equal(String(reason), 'enough');
      assert.equal(clientCode, 4321);
      await eventually(() => bench.proxy.httpStat('downstream_cx_active') === 0, 'the end of the connection');
      assert.equal(bench.proxy.httpStat('downstream_cx_upgrades_active'), 0);
      assert.equal(bench.proxy.clusterStat('web', 'upstream_cx_active'), 0);
    });

    test('lets each side learn that the other has vanished', async (t) => {
      const first = await pair(t, readMode);
      const serverClosed = once(first.server, 'close');
      first.client.terminate();
      assert.equal((await serverClosed)[0], 1006);
      const second = await pair(t, readMode);
      const clientClosed = once(second.client, 'close');
      second.server.terminate();
      assert.equal((await clientClosed)[0], 1006);
    });
  });
}
