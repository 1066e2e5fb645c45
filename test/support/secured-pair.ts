// Both ends of a TLS connection: the near one as the proxy makes it, the other one Node's.

import { once } from 'node:events';
import { connect as connectPlain, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import {
  type ConnectionOptions,
  connect,
  createSecureContext,
  type SecureContext,
  type SecureVersion,
  TLSSocket,
} from 'node:tls';
import { ACCEPTED_SOCKET_OPTIONS, layOver } from '../../src/data-plane/network/socket-events.ts';
import { writePromptly } from '../../src/data-plane/network/tls/prompt-writes.ts';
import { secureServerSocket, serverSocketOptions } from '../../src/data-plane/network/tls/tls-sockets.ts';
import { ClientTls } from '../../src/tls/client-tls.ts';
import type { TestCertificate } from './certificates.ts';
import { upstreamTls } from './upstream-tls.ts';

export interface SecuredPair {
  readonly near: TLSSocket;
  readonly far: TLSSocket;
  /** What `near` and `far` lie over. */
  readonly nearRaw: Socket;
  readonly farRaw: Socket;
}

export interface SecuredPairOptions extends ConnectionOptions {
  /** It is the near end that connects, as to an upstream; clients are accepted. */
  readonly nearConnects?: boolean;
  /** Called within the event that says that the handshake is done. */
  readonly onSecure?: (near: TLSSocket) => void;
  /** Gets the bytes that the near end sends, as they are on the wire. */
  readonly tap?: (bytes: Buffer) => void;
  /** What the far end sends as soon as it may. */
  readonly early?: string;
}

const NOBODY = { label: 'test', sentName: '', verifiedName: '', hostname: '', alpnProtocols: [] };

/** @returns both when both say that the handshake is done. Errors of both are for whoever listens. */
export async function securedPair(
  t: Pick<TestContext, 'after'>,
  { certificate, key }: TestCertificate,
  { onSecure, tap, early, nearConnects = false, ...options }: SecuredPairOptions = {},
): Promise<SecuredPair> {
  const secureContext = createSecureContext({ cert: certificate, key });
  const server = createServer(ACCEPTED_SOCKET_OPTIONS).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const direct = portOf(server);
  const port = tap === undefined ? direct : await relayTo(direct, tap, nearConnects);
  const connecting = connectPlain({ port, host: '127.0.0.1', ...(nearConnects ? ACCEPTED_SOCKET_OPTIONS : {}) });
  const [accepted] = (await accepting) as [Socket];
  server.close();
  const [nearRaw, farRaw] = nearConnects ? [connecting, accepted] : [accepted, connecting];
  const near = nearConnects ? upstreamSocket(nearRaw, options) : clientSocket(nearRaw, secureContext);
  layOver(near, nearRaw);
  const far = nearConnects
    ? new TLSSocket(farRaw, { isServer: true, secureContext })
    : connect({ socket: farRaw, rejectUnauthorized: false, ...options });
  t.after(() => {
    near.destroy();
    far.destroy();
  });
  for (const socket of [near, far, nearRaw, farRaw]) socket.on('error', () => {});
  if (early !== undefined) far.write(early);
  const [nearDone, farDone] = nearConnects ? ['secureConnect', 'secure'] : ['secure', 'secureConnect'];
  if (onSecure !== undefined) near.once(nearDone, () => onSecure(near));
  await Promise.all([once(near, nearDone), once(far, farDone)]);
  return { near, far, nearRaw, farRaw };
}

/** A client's. */
function clientSocket(raw: Socket, secureContext: SecureContext): TLSSocket {
  const options = serverSocketOptions({
    secureContext,
    alpnProtocols: [],
    requestsCertificate: false,
    requiresCertificate: false,
    findContext: null,
    stapler: null,
  });
  return secureServerSocket(raw, options);
}

/** The proxy's own to an upstream. */
function upstreamSocket(raw: Socket, { minVersion, maxVersion }: ConnectionOptions): TLSSocket {
  const versions = {
    tls_minimum_protocol_version: versionName(minVersion ?? 'TLSv1.2'),
    tls_maximum_protocol_version: versionName(maxVersion ?? 'TLSv1.3'),
  };
  const settings = upstreamTls({ common_tls_context: { tls_params: versions } });
  const socket = new ClientTls(settings).begin(raw, NOBODY);
  writePromptly(socket);
  return socket;
}

/** As configurations have it. */
function versionName(version: SecureVersion): string {
  return version.replace('.', '_');
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

/** @returns where one client may connect. */
async function relayTo(port: number, tap: (bytes: Buffer) => void, tapsClient: boolean): Promise<number> {
  const relay = createServer({ allowHalfOpen: true }, (client) => {
    relay.close();
    const server = connectPlain({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const socket of [client, server]) socket.on('error', () => {});
    (tapsClient ? client : server).on('data', tap);
    server.pipe(client);
    client.pipe(server);
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  return portOf(relay);
}
