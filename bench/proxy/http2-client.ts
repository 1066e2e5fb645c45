// A client of HTTP/2 that asks once and stays: what it takes to leave a proxy with an idle connection.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const FRAME_HEADER_BYTES = 9;
const HEADERS = 1;
const SETTINGS = 4;
const GOAWAY = 7;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;

/** Literals that enter the table, with names of the static one: the request of a browser, nearly. */
const FIELDS: readonly (readonly [index: number, value: string])[] = [
  [4, '/small'],
  [1, 'bench.example'],
  [58, 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'],
  [19, 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
];
/** `:method: GET` and `:scheme: http`. */
const INDEXED = [0x82, 0x86];
const INCREMENTAL = 0x40;

function frame(type: number, flags: number, streamId: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, streamId]), payload]);
}

function request(): Buffer {
  const literals = FIELDS.map(([index, value]) => [INCREMENTAL | index, value.length, ...Buffer.from(value)]);
  return frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.from([...INDEXED, ...literals.flat()]));
}

/** A connection whose settings are confirmed by both sides, that has been answered and stays open. */
export async function openHttp2(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0), request()]));
  await new Promise<void>((resolve, reject) => {
    let received = Buffer.alloc(0);
    socket.once('close', () => reject(new Error('a connection was closed instead of answered')));
    socket.on('error', reject);
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      while (received.length >= FRAME_HEADER_BYTES) {
        const length = FRAME_HEADER_BYTES + received.readUIntBE(0, 3);
        if (received.length < length) return;
        const [type, flags, streamId] = [received[3]!, received[4]!, received.readUInt32BE(5)];
        received = received.subarray(length);
        if (type === GOAWAY) reject(new Error('a connection was ended instead of answered'));
        if (type === SETTINGS && flags !== ACK) socket.write(frame(SETTINGS, ACK, 0));
        if (type <= HEADERS && streamId === 1 && (flags & END_STREAM) !== 0) resolve();
      }
    });
  });
  return socket;
}
