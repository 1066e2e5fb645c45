// HTTP connections that belong to one client each, through listeners, routes and real sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { DataPlaneFixture, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

/** An upstream that answers with the number of the connection, from 0. */
async function bench(t: TestContext, poolsPerClient: boolean) {
  const upstream = await WireUpstream.start((socket, index) => {
    socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${index}`));
    socket.on('end', () => socket.end());
  });
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstream.port)], { poolsPerClient });
  const port = await proxy.http([routeTo('web')]);
  const clients = [0, 1].map(() => new WireClient(port));
  t.after(async () => {
    for (const wire of clients) wire.close();
    await proxy.close();
    await upstream.close();
  });
  const ask = async (client: number): Promise<string> => (await clients[client]!.write(GET).response()).body;
  return { upstream, proxy, clients, ask };
}

test('each client has its own connection, whoever comes first, and it ends with the client', async (t) => {
  const { upstream, proxy, clients, ask } = await bench(t, true);
  for (const [client, connection] of [
    [0, '0'],
    [1, '1'],
    [0, '0'],
    [0, '0'],
    [1, '1'],
  ] as const) {
    assert.equal(await ask(client), connection);
  }
  const ended = once(upstream.sockets[0]!, 'end');
  clients[0]!.socket.end();
  await ended;
  await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 1, 'the end of its connection');
  assert.equal(await ask(1), '1');
  assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 2);
});

test('without the option clients share', async (t) => {
  const { ask } = await bench(t, false);
  assert.deepEqual([await ask(0), await ask(1), await ask(0)], ['0', '0', '0']);
});
