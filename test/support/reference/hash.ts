// Plain twins of the hashes in assembly/lb/hash, in bigint arithmetic. XXH64 is shipped, since weir-bench needs it.

export { plainXxHash64 as xxHash64 } from '../../../src/bench-cli/twins/xxhash64.ts';

const MASK = (1n << 64n) - 1n;
const u64 = (value: bigint): bigint => value & MASK;

/** Little-endian number of `size` bytes. */
function read(bytes: Uint8Array, at: number, size: number): bigint {
  let value = 0n;
  for (let byte = size - 1; byte >= 0; byte -= 1) value = (value << 8n) | BigInt(bytes[at + byte]!);
  return value;
}

const MULTIPLIER = 0xc6a4a7935bd1e995n;
const shiftMix = (value: bigint): bigint => value ^ (value >> 47n);

export function murmurHash2(bytes: Uint8Array, seed = 0xc70f6907n): bigint {
  let hash = seed ^ u64(BigInt(bytes.length) * MULTIPLIER);
  let at = 0;
  for (; at + 8 <= bytes.length; at += 8) {
    hash = u64((hash ^ u64(shiftMix(u64(read(bytes, at, 8) * MULTIPLIER)) * MULTIPLIER)) * MULTIPLIER);
  }
  if (at < bytes.length) hash = u64((hash ^ read(bytes, at, bytes.length - at)) * MULTIPLIER);
  return shiftMix(u64(shiftMix(hash) * MULTIPLIER));
}
