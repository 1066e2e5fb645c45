// Both ends of a TLS connection: the accepting one as the proxy makes it, the other one Node's.

import { once } from 'node:events';
import { connect as connectPlain, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { type ConnectionOptions, connect, createSecureContext, type TLSSocket } from 'node:tls';
import { ACCEPTED_SOCKET_OPTIONS, layOver } from '../../src/data-plane/network/socket-events.ts';
import { secureServerSocket, serverSocketOptions } from '../../src/data-plane/network/tls/tls-sockets.ts';
import type { TestCertificate } from './certificates.ts';

export interface SecuredPair {
  readonly near: TLSSocket;
  readonly far: TLSSocket;
  /** What `near` and `far` lie over. */
  readonly nearRaw: Socket;
  readonly farRaw: Socket;
}

export interface SecuredPairOptions extends ConnectionOptions {
  /** Called within the event that says that the handshake is done. */
  readonly onSecure?: (near: TLSSocket) => void;
  /** Gets the bytes that the accepting side sends, as they are on the wire. */
  readonly tap?: (bytes: Buffer) => void;
  /** What the far end sends as soon as it may. */
  readonly early?: string;
}

/** @returns both when both say that the handshake is done. Errors of both are for whoever listens. */
export async function securedPair(
  t: Pick<TestContext, 'after'>,
  { certificate, key }: TestCertificate,
  { onSecure, tap, early, ...options }: SecuredPairOptions = {},
): Promise<SecuredPair> {
  const secureContext = createSecureContext({ cert: certificate, key });
  const server = createServer(ACCEPTED_SOCKET_OPTIONS).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const port = portOf(server);
  const farRaw = connectPlain(tap === undefined ? port : await relayTo(port, tap), '127.0.0.1');
  const [nearRaw] = (await accepting) as [Socket];
  server.close();
  const near = secureServerSocket(
    nearRaw,
    serverSocketOptions({
      secureContext,
      alpnProtocols: [],
      requestsCertificate: false,
      requiresCertificate: false,
      findContext: null,
      stapler: null,
    }),
  );
  layOver(near, nearRaw);
  const far = connect({ socket: farRaw, rejectUnauthorized: false, ...options });
  t.after(() => {
    near.destroy();
    far.destroy();
  });
  for (const socket of [near, far, nearRaw, farRaw]) socket.on('error', () => {});
  if (early !== undefined) far.write(early);
  if (onSecure !== undefined) near.once('secure', () => onSecure(near));
  await Promise.all([once(near, 'secure'), once(far, 'secureConnect')]);
  return { near, far, nearRaw, farRaw };
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

/** @returns where one client may connect. */
async function relayTo(port: number, tap: (bytes: Buffer) => void): Promise<number> {
  const relay = createServer({ allowHalfOpen: true }, (client) => {
    relay.close();
    const server = connectPlain({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const socket of [client, server]) socket.on('error', () => {});
    server.on('data', tap);
    server.pipe(client);
    client.pipe(server);
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  return portOf(relay);
}
