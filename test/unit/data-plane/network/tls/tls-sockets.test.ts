// What a connection of a client goes without once it is secured, and that it is secured as well as others. Real sockets.

import assert from 'node:assert/strict';
import { type EventEmitter, once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { connect, createSecureContext, type TLSSocket } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { ACCEPTED_SOCKET_OPTIONS } from '../../../../../src/data-plane/network/socket-events.ts';
import { secureServerSocket, serverSocketOptions } from '../../../../../src/data-plane/network/tls/tls-sockets.ts';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';

setFlagsFromString('--allow-natives-syntax');
const hasFastProperties = runInThisContext('(object) => %HasFastProperties(object)') as (object: object) => boolean;

let folder: CertificateFolder;
let certificate: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  certificate = await folder.make('own');
});

after(() => folder[Symbol.dispose]());

/** @returns the proxy's end of a connection that is secured, and what it lies over. */
async function secured(t: TestContext): Promise<{ socket: TLSSocket; raw: Socket; client: TLSSocket }> {
  const options = serverSocketOptions({
    secureContext: createSecureContext({ cert: certificate.certificate, key: certificate.key }),
    alpnProtocols: ['h2', 'http/1.1'],
    requestsCertificate: false,
    requiresCertificate: false,
    findContext: null,
    stapler: null,
  });
  const server = createServer(ACCEPTED_SOCKET_OPTIONS).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const { port } = server.address() as { port: number };
  const client = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
  const [raw] = (await accepting) as [Socket];
  server.close();
  const socket = secureServerSocket(raw, options);
  t.after(() => {
    client.destroy();
    socket.destroy();
  });
  await Promise.all([once(socket, 'secure'), once(client, 'secureConnect')]);
  assert.equal((socket as unknown as { _tlsOptions: object })._tlsOptions, options, 'the options are those of all');
  return { socket, raw, client };
}

function listenersOf(emitter: EventEmitter): object {
  return (emitter as unknown as { _events: object })._events;
}

describe('a connection that is secured', () => {
  test('agrees on a protocol without a copy of those that are offered', async (t) => {
    const { socket, client } = await secured(t);
    assert.equal(socket.alpnProtocol, 'http/1.1');
    assert.equal(client.alpnProtocol, 'http/1.1');
  });

  test('has no dictionaries, and nobody waits for it to connect', async (t) => {
    const { socket, raw } = await secured(t);
    assert.equal(raw.listenerCount('connect'), 0);
    for (const emitter of [socket, raw]) {
      assert.ok(hasFastProperties(emitter));
      assert.ok(hasFastProperties(listenersOf(emitter)), 'V8 keeps its listeners in a dictionary');
    }
  });

  test('tells of its end and of its faults', async (t) => {
    const { socket, raw, client } = await secured(t);
    socket.resume();
    client.end();
    await once(socket, 'end');
    raw.on('error', () => {});
    const failing = once(socket, 'error');
    raw.destroy(new Error('deliberate'));
    const [error] = (await failing) as [Error];
    assert.equal(error.message, 'deliberate');
    if (!socket.closed) await once(socket, 'close');
  });
});
