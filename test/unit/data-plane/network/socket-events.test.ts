// Sockets of the data plane, in the states in which Node's own methods would do something else than what is wanted.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { resetSocket } from '../../../../src/data-plane/network/socket-events.ts';
import { peerEnd } from '../../../support/wire.ts';

async function pair(t: TestContext): Promise<{ socket: Socket; peer: Socket }> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const socket = connect({ port: (server.address() as { port: number }).port, host: '127.0.0.1' });
  const [peer] = (await accepting) as [Socket];
  await once(socket, 'connect');
  t.after(() => {
    socket.destroy();
    peer.destroy();
    server.close();
  });
  return { socket, peer };
}

describe('a socket that is reset', () => {
  test('has its peer know of it', async (t) => {
    const { socket, peer } = await pair(t);
    const closed = once(socket, 'close');
    resetSocket(socket);
    assert.equal(await peerEnd(peer), 'ECONNRESET');
    await closed;
  });

  test('throws away what waits, its end included', async (t) => {
    const { socket, peer } = await pair(t);
    const closed = once(socket, 'close');
    socket.end(Buffer.alloc(50_000_000));
    resetSocket(socket);
    assert.equal(await peerEnd(peer), 'ECONNRESET');
    await closed;
  });

  test('closes when its end is just being sent', async (t) => {
    const { socket, peer } = await pair(t);
    const closed = once(socket, 'close');
    socket.end();
    resetSocket(socket);
    assert.equal(await peerEnd(peer), 'end');
    await closed;
  });

  test('is reset when its end has been sent', async (t) => {
    const { socket, peer } = await pair(t);
    socket.end();
    await once(peer.resume(), 'end');
    const reset = once(peer, 'error') as Promise<[NodeJS.ErrnoException]>;
    resetSocket(socket);
    while (peer.errored === null) {
      peer.write('x');
      await new Promise(setImmediate);
    }
    assert.match((await reset)[0].code!, /ECONNRESET|EPIPE/);
  });

  test('closes while it connects', async () => {
    const socket = connect(9, '192.0.2.1').on('error', () => {});
    const closed = once(socket, 'close');
    resetSocket(socket);
    await closed;
  });
});
