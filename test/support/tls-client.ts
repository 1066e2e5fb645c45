// Clients of a listener that speaks TLS: one connection each.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';

export interface TlsClientOptions extends ConnectionOptions {
  /** Lines of the request's head, each with its end. */
  readonly head?: string;
}

/** Asks for a.example unless options say otherwise. */
export function tlsClient(port: number, options: ConnectionOptions): TLSSocket {
  return connect({ host: '127.0.0.1', port, servername: 'a.example', ...options });
}

/** @returns the answer to one request; rejects when the handshake fails or the proxy closes without one. */
export async function getOverTls(port: number, { head = '', ...options }: TlsClientOptions): Promise<string> {
  const socket = tlsClient(port, options);
  let answer = '';
  socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
  socket.write(`GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n${head}\r\n`);
  await once(socket, 'close');
  assert.match(answer, /^HTTP\/1\.1 /, 'no answer');
  return answer;
}

/** @returns the subject of the certificate that the server shows. */
export async function shownSubject(port: number, options: ConnectionOptions): Promise<string> {
  const socket = tlsClient(port, options);
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerX509Certificate()!;
  // Destroyed here, it would never have sent the last message of its handshake.
  socket.end();
  await once(socket.resume(), 'close');
  return subject;
}

/** @returns what a client may resume its session with. */
export async function newSession(port: number, options: ConnectionOptions): Promise<Buffer> {
  const socket = tlsClient(port, options);
  const [ticket] = (await once(socket, 'session')) as [Buffer];
  socket.destroy();
  return ticket;
}

/** @returns whether the server goes on with a session. */
export async function isResumed(port: number, session: Buffer, options: ConnectionOptions): Promise<boolean> {
  const socket = tlsClient(port, { ...options, session });
  await once(socket, 'secureConnect');
  const resumed = socket.isSessionReused();
  socket.end();
  await once(socket.resume(), 'close');
  return resumed;
}
