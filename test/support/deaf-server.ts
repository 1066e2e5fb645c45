// An address at which connections neither succeed nor fail: somebody listens there, and takes nobody in.

import { once } from 'node:events';
import { dlopen, getRawPointer } from 'node:ffi';
import { connect } from 'node:net';
import { closeAtEnd } from './close-at-end.ts';

const AF_INET = 2;
const SOCK_STREAM = 1;
const ADDRESS_BYTES = 16;
const PORT_AT = 2;
const IP_AT = 4;

const { functions } = dlopen(null, {
  socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
  bind: { arguments: ['i32', 'pointer', 'u32'], return: 'i32' },
  listen: { arguments: ['i32', 'i32'], return: 'i32' },
  close: { arguments: ['i32'], return: 'i32' },
});

/** Linux lets one connection more wait than it is told, and ignores all others. @param ip an IPv4 literal. */
export async function startDeafServer(ip: string, port: number): Promise<{ close(): void }> {
  const descriptor = functions.socket(AF_INET, SOCK_STREAM, 0);
  const address = Buffer.alloc(ADDRESS_BYTES);
  address.writeUInt16LE(AF_INET, 0);
  address.writeUInt16BE(port, PORT_AT);
  Buffer.from(ip.split('.').map(Number)).copy(address, IP_AT);
  const bound = functions.bind(descriptor, getRawPointer(address), ADDRESS_BYTES);
  if (bound !== 0 || functions.listen(descriptor, 0) !== 0) throw new Error(`cannot listen at ${ip}:${port}`);
  const waiting = connect(port, ip);
  await once(waiting, 'connect');
  waiting.on('error', () => {});
  const end = (): void => {
    waiting.destroy();
    functions.close(descriptor);
  };
  const forget = closeAtEnd(end);
  return {
    close() {
      forget();
      end();
    },
  };
}
