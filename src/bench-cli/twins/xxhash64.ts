// XXH64 in plain TypeScript over bigints, as its specification states it. Only a reference to measure and test against.

const PRIME_1 = 0x9e37_79b1_85eb_ca87n;
const PRIME_2 = 0xc2b2_ae3d_27d4_eb4fn;
const PRIME_3 = 0x1656_67b1_9e37_79f9n;
const PRIME_4 = 0x85eb_ca77_c2b2_ae63n;
const PRIME_5 = 0x27d4_eb2f_1656_67c5n;

const u64 = (value: bigint): bigint => BigInt.asUintN(64, value);
const rotate = (value: bigint, bits: bigint): bigint => u64(value << bits) | (value >> (64n - bits));
const round = (accumulator: bigint, input: bigint): bigint =>
  u64(rotate(u64(accumulator + input * PRIME_2), 31n) * PRIME_1);
const mergeRound = (hash: bigint, accumulator: bigint): bigint =>
  u64((hash ^ round(0n, accumulator)) * PRIME_1 + PRIME_4);

export function plainXxHash64(bytes: Uint8Array, seed = 0n): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let hash = u64(seed + PRIME_5);
  if (bytes.length >= 32) {
    const lanes = [u64(seed + PRIME_1 + PRIME_2), u64(seed + PRIME_2), seed, u64(seed - PRIME_1)];
    for (; at + 32 <= bytes.length; at += 32) {
      for (let lane = 0; lane < 4; lane += 1) lanes[lane] = round(lanes[lane]!, view.getBigUint64(at + lane * 8, true));
    }
    const [a, b, c, d] = lanes as [bigint, bigint, bigint, bigint];
    hash = u64(rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n));
    for (const lane of lanes) hash = mergeRound(hash, lane);
  }
  hash = u64(hash + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8) {
    hash = u64(rotate(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * PRIME_1 + PRIME_4);
  }
  if (at + 4 <= bytes.length) {
    hash = u64(rotate(hash ^ u64(BigInt(view.getUint32(at, true)) * PRIME_1), 23n) * PRIME_2 + PRIME_3);
    at += 4;
  }
  for (; at < bytes.length; at += 1) hash = u64(rotate(hash ^ u64(BigInt(bytes[at]!) * PRIME_5), 11n) * PRIME_1);
  hash = u64((hash ^ (hash >> 33n)) * PRIME_2);
  hash = u64((hash ^ (hash >> 29n)) * PRIME_3);
  return hash ^ (hash >> 32n);
}
