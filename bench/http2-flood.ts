// What clients that flood over HTTP/2 do to the others: each kind of flood in turn, again and again over new connections, and beside
// them requests at a fixed rate over connections that are kept. Measured in turns with and without the floods, with memory and
// descriptors before and after.
// `npm run bench -- http2-flood --rounds 3 --seconds 10 --rate 500 --flood 50`
// Bar: p99 with the floods at most twice that without; no descriptor left.

import { connect } from 'node:net';
import { PREFACE } from '../src/data-plane/http/codec/http2/frames.ts';
import { FLOODS } from '../test/support/http2-floods.ts';
import { SETTINGS } from '../test/support/http2-session.ts';
import { type BadClient, measureBeside } from './support/flood.ts';

/** What is answered and read at once is no flood, and not ended by the proxy. */
const LEAVES_MS = 1000;
const OPENING = Buffer.concat([PREFACE, SETTINGS]);

const KINDS = FLOODS.map(({ frames }): BadClient => {
  const bytes = Buffer.concat([OPENING, ...frames]);
  return (port) => {
    const socket = connect(port, '127.0.0.1');
    const leave = setTimeout(() => socket.destroy(), LEAVES_MS);
    socket.once('end', () => socket.destroy()).once('close', () => clearTimeout(leave));
    socket.write(bytes);
    return socket;
  };
});

await measureBeside({ protocol: 'http', kinds: KINDS, perSecond: 50, what: 'floods' });
