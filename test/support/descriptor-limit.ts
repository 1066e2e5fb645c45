// Takes a running process the right to open anything, and gives it back: what happens when the descriptors of the system
// run out, which no budget of the process foresees. Linux.

import { dlopen, getRawPointer } from 'node:ffi';

const RLIMIT_NOFILE = 7;
const LIMIT_BYTES = 16;

const { prlimit } = dlopen(null, {
  prlimit: { arguments: ['i32', 'i32', 'pointer', 'pointer'], return: 'i32' },
}).functions;

/** @param limit the new soft limit. @returns the former one. @throws Error when the system refuses. */
export function limitDescriptors(pid: number, limit: number): number {
  const former = Buffer.alloc(LIMIT_BYTES);
  const wanted = Buffer.alloc(LIMIT_BYTES);
  if (prlimit(pid, RLIMIT_NOFILE, 0n, getRawPointer(former)) !== 0) throw new Error(`no limits of process ${pid}`);
  former.copy(wanted);
  wanted.writeBigUInt64LE(BigInt(limit), 0);
  if (prlimit(pid, RLIMIT_NOFILE, getRawPointer(wanted), 0n) !== 0) throw new Error(`limit ${limit} is refused`);
  return Number(former.readBigUInt64LE(0));
}
