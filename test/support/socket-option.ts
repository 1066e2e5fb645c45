// What the system says of an option of a socket.

import { dlopen, getRawPointer } from 'node:ffi';

const INT_BYTES = 4;

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
