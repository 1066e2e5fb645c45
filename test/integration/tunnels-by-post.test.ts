// A POST that stands for a tunnel (`allow_post`): its body goes to an upstream as plain TCP, and what comes back is the body of its
// answer, whatever frames either.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { unusedPort, WireClient } from '../support/wire.ts';

const upgrade_configs = (allow_post: boolean): JsonObject[] => [
  { upgrade_type: 'CONNECT', connect_config: { allow_post } },
];

async function bench(t: TestContext, port: number, allowsPost = true) {
  const route = routeTo(
    '/',
    {},
    { route: { cluster: 'web', timeout: '0s', upgrade_configs: upgrade_configs(allowsPost) } },
  );
  const proxy = await createProxy(bootstrapOf([filteredListener([], [route])], [clusterAt('web', port)]));
  const at = proxy.listeners.get('main')!.port;
  const client = new WireClient(at);
  t.after(async () => {
    client.close();
    await proxy.close();
  });
  return { proxy, client, port: at };
}

/** Sends back what comes, in capitals, and ends when the other side has. */
async function echo(t: TestContext) {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on('data', (bytes: Buffer) => socket.write(bytes.toString().toUpperCase()));
    socket.on('end', () => socket.end());
    socket.on('error', () => {});
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { port: (server.address() as AddressInfo).port, sockets };
}

const POST = 'POST /tunnel HTTP/1.1\r\nhost: a\r\n';

describe('a POST that stands for a tunnel', () => {
  test('carries its body of a length there, and what comes back', async (t) => {
    const { port } = await echo(t);
    const { client, proxy } = await bench(t, port);
    client.write(`${POST}content-length: 10\r\n\r\nhello`);
    assert.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 200 OK\r\n(?=.*transfer-encoding: chunked)/s);
    assert.equal(await client.until('HELLO\r\n'), '5\r\nHELLO\r\n');
    client.write('world');
    assert.equal(await client.until('0\r\n\r\n'), '5\r\nWORLD\r\n0\r\n\r\n');
    // The connection goes on.
    client.write(`${POST}content-length: 1\r\n\r\na`);
    assert.match(await client.until('0\r\n\r\n'), /1\r\nA\r\n0\r\n\r\n$/);
    assert.equal(proxy.stats.value('cluster.web.upstream_cx_total'), 2);
    assert.equal(proxy.stats.value('cluster.web.upstream_rq_active'), 0);
  });

  test('takes the chunks off', async (t) => {
    const { port } = await echo(t);
    const { client } = await bench(t, port);
    client.write(`${POST}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`);
    await client.until('3\r\nABC\r\n');
    client.write('2;x=1\r\nde\r\n0\r\nx-trailer: 1\r\n\r\n');
    assert.equal(await client.until('0\r\n\r\n'), '2\r\nDE\r\n0\r\n\r\n');
  });

  test('may come over HTTP/2', async (t) => {
    const { port: echoPort } = await echo(t);
    const { port } = await bench(t, echoPort);
    const session = connect(`http://127.0.0.1:${port}`);
    const stream = session.request({ ':method': 'POST', ':path': '/tunnel' });
    stream.write('one ');
    const [first] = (await once(stream, 'data')) as [Buffer];
    assert.equal(first.toString(), 'ONE ');
    stream.end('two');
    const [second] = (await once(stream, 'data')) as [Buffer];
    assert.equal(second.toString(), 'TWO');
    await once(stream, 'end');
    session.close();
  });

  test('keeps what comes before the upstream is there within its bounds, in order', async (t) => {
    const { port } = await echo(t);
    const { client } = await bench(t, port);
    const body = 'abcdefghij'.repeat(200_000);
    const received = client.write(`${POST}content-length: ${body.length}\r\n\r\n${body}`).until('0\r\n\r\n');
    const content = (await received).replace(/^.*?\r\n\r\n/s, '').replaceAll(/[^A-J]/g, '');
    assert.equal(content, body.toUpperCase());
  });

  test('is answered with 503 when nobody is there', async (t) => {
    const { client } = await bench(t, await unusedPort());
    assert.equal((await client.write(`${POST}content-length: 1\r\n\r\na`).response()).status, 503);
  });

  test('breaks off when its upstream does', async (t) => {
    const { port, sockets } = await echo(t);
    const { client } = await bench(t, port);
    client.write(`${POST}content-length: 10\r\n\r\nhello`);
    await client.until('HELLO\r\n');
    sockets[0]!.resetAndDestroy();
    assert.doesNotMatch(await client.rest(), /0\r\n\r\n/);
  });
});

test('a POST is a request as any other where it does not', async (t) => {
  const server = createServer((socket) => {
    socket.once('data', (bytes: Buffer) => {
      assert.match(bytes.toString(), /^POST \/tunnel HTTP\/1\.1\r\n/);
      socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { client } = await bench(t, (server.address() as AddressInfo).port, false);
  assert.equal((await client.write(`${POST}content-length: 1\r\n\r\na`).response()).status, 204);
});
