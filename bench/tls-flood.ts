// What handshakes that fail do to the others: a thousand a second, of every kind in turn (plain HTTP, garbage, cut, stopped, no
// common cipher), and beside them HTTPS requests at a fixed rate over connections that are kept. Measured in turns with and
// without the flood, with memory and descriptors before and after; nginx goes through the same.
// `npm run bench -- tls-flood --rounds 3 --seconds 10 --rate 500 --flood 1000`
// Bar: p99 with the flood at most twice that without; no descriptor left.

import { connect as connectPlain, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { nginx } from './proxy/contenders/nginx.ts';
import { type BadClient, measureBeside } from './support/flood.ts';

/** Clients that stop leave after this time by themselves. */
const STOPPED_MS = 500;
/** The head of a record with a ClientHello, and the first bytes of it. */
const BEGUN_HELLO = Buffer.from('16030100c8010000c40303', 'hex');
const GARBAGE = Buffer.alloc(600, 0xff);
const NO_COMMON = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256', rejectUnauthorized: false } as const;

const KINDS: readonly BadClient[] = [
  plain((socket) => socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')),
  plain((socket) => socket.write(GARBAGE)),
  plain((socket) => socket.end(BEGUN_HELLO)),
  plain((socket) => {
    socket.write(BEGUN_HELLO);
    setTimeout(() => socket.destroy(), STOPPED_MS);
  }),
  (port) => connect({ ...NO_COMMON, host: '127.0.0.1', port }),
];

function plain(act: (socket: Socket) => void): BadClient {
  return (port) => {
    const socket = connectPlain(port, '127.0.0.1', () => act(socket));
    return socket;
  };
}

await measureBeside({ protocol: 'https', kinds: KINDS, perSecond: 1000, what: 'bad handshakes', peers: [nginx] });
