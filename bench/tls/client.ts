// The client of the handshakes that are measured: so many connections at a time, each closed when it is secured or answered.
// A process of its own, pinned to the generator's core. Usage: node client.ts <port> <kind> <connections> <seconds>; one line
// of JSON, of the form Handshakes, is what it says. Ends with 1 when a connection failed or was not of the kind asked for.

import { connect, type TLSSocket } from 'node:tls';
import { REQUEST, untilAnswered } from '../proxy/memory.ts';
import { CURVE, type HandshakeKind, type Handshakes } from './handshakes.ts';

const [port, kind, connections, seconds] = process.argv.slice(2) as [string, HandshakeKind, string, string];
const MS = 1000;
const isResumed = kind === 'resumed';
const agreed = new Set<string>();
let done = 0;

function open(session?: Buffer): TLSSocket {
  const options = { host: '127.0.0.1', port: Number(port), rejectUnauthorized: false, ecdhCurve: CURVE };
  return connect({ ...options, ...(session && { session }) });
}

/** A ticket, which servers send behind the handshake. */
function takeSession(): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = open();
    socket.on('error', reject);
    socket.once('secureConnect', () => socket.write(REQUEST));
    socket.once('session', (session: Buffer) => {
      socket.destroy();
      resolve(session);
    });
  });
}

async function connectOnce(session: Buffer | undefined): Promise<void> {
  const socket = open(session);
  const closed = new Promise<void>((resolve, reject) => {
    socket.once('close', () => resolve());
    socket.once('error', reject);
  });
  socket.once('secureConnect', () => {
    if (socket.isSessionReused() !== isResumed) socket.destroy(new Error(`the handshake was not ${kind}`));
    agreed.add(`${socket.getProtocol()} ${socket.getCipher().standardName}`);
    if (kind !== 'request') socket.end();
    else {
      socket.write(REQUEST);
      untilAnswered(socket).then(
        () => socket.end(),
        (error: Error) => socket.destroy(error),
      );
    }
  });
  // Also what is not waited for has to be read, or the end is not seen.
  socket.resume();
  await closed;
  done += 1;
}

const session = isResumed ? await takeSession() : undefined;
const begin = performance.now();
const giveUpAt = begin + Number(seconds) * MS;
const turns = Array.from({ length: Number(connections) }, async () => {
  while (performance.now() < giveUpAt) await connectOnce(session);
});
await Promise.all(turns);
const said: Handshakes = { count: done, seconds: (performance.now() - begin) / MS, agreed: [...agreed].join(', ') };
process.stdout.write(`${JSON.stringify(said)}\n`);
