// What the system says of sockets of this process.

import { dlopen, getRawPointer } from 'node:ffi';
import { readdirSync } from 'node:fs';

const INT_BYTES = 4;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const TCP_INFO_BYTES = 32;
const STATE_AT = 0;
const LISTENING = 10;
/** Of a socket that listens. */
const BACKLOG_AT = 28;

const { functions } = dlopen(null, {
  getsockopt: { arguments: ['i32', 'i32', 'i32', 'pointer', 'pointer'], return: 'i32' },
});

export function socketOption(descriptor: number, level: number, name: number): number {
  const value = Buffer.alloc(INT_BYTES);
  const length = Buffer.alloc(INT_BYTES);
  length.writeInt32LE(INT_BYTES);
  const result = functions.getsockopt(descriptor, level, name, getRawPointer(value), getRawPointer(length));
  if (result !== 0) throw new Error(`the socket has no option ${level}/${name}`);
  return value.readInt32LE();
}

/** How many connections may wait at each descriptor that listens, in the order of their numbers. */
export function listenBacklogs(): number[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    const info = Buffer.alloc(TCP_INFO_BYTES);
    const length = Buffer.alloc(INT_BYTES);
    length.writeInt32LE(TCP_INFO_BYTES);
    const pointers = [getRawPointer(info), getRawPointer(length)] as const;
    const isTcp = functions.getsockopt(Number(descriptor), IPPROTO_TCP, TCP_INFO, ...pointers) === 0;
    return isTcp && info[STATE_AT] === LISTENING ? [info.readUInt32LE(BACKLOG_AT)] : [];
  });
}
