// The hosts of a hash table as its builder takes them: checked, weights as shares of their sum, keys as bytes in
// shared memory where the module hashes them.

import { checkWeightSum, type WeightedHost, weightsOf } from './arguments.ts';

export interface HashedHost extends WeightedHost {
  /** What is hashed for this host, as UTF-8: a hash key of its metadata, its hostname, or `ip:port`. */
  readonly key: string;
}

/** UTF-8 takes up to three bytes for each unit of a string. */
const BYTES_PER_UNIT = 3;

/**
 * The weights as shares of 1, in the order of the hosts.
 * @throws WeirError WEIR_LB_ARGUMENT for an empty list, a weight or a sum of weights out of range.
 */
export function weightShares(hosts: readonly HashedHost[]): Float64Array {
  const shares = weightsOf(hosts);
  let sum = 0;
  for (const weight of shares) sum += weight;
  checkWeightSum(sum);
  for (let at = 0; at < shares.length; at += 1) shares[at]! /= sum;
  return shares;
}

/** Bytes that keys may need, with `room` bytes behind each key. */
export function keyBytes(hosts: readonly HashedHost[], room: number): number {
  let units = 0;
  for (const { key } of hosts) units += key.length;
  return units * BYTES_PER_UNIT + hosts.length * room;
}

/** Writes keys one behind the other. */
export class KeyWriter {
  readonly #bytes: Buffer;
  readonly #room: number;
  /** Address at which the next key goes. */
  #at: number;

  /** @param room  bytes left free behind each key. */
  constructor(memory: WebAssembly.Memory, at: number, room: number) {
    this.#bytes = Buffer.from(memory.buffer);
    this.#at = at;
    this.#room = room;
  }

  get address(): number {
    return this.#at;
  }

  /** Returns the bytes written from `address` as it was before. */
  write(key: string): number {
    const length = this.#bytes.write(key, this.#at);
    this.#at += length + this.#room;
    return length;
  }
}

/** Positions of the hosts in ascending order of their keys' bytes; equal keys keep the order of the list. */
export function orderByKey(hosts: readonly HashedHost[]): Uint32Array {
  const order = new Uint32Array(hosts.length).map((_, at) => at);
  return order.sort((a, b) => compareKeys(hosts[a]!.key, hosts[b]!.key) || a - b);
}

/** By UTF-8 bytes. Units of a string order alike, but that surrogates stand for what lies above all other units. */
function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const unitA = a.charCodeAt(at);
    const unitB = b.charCodeAt(at);
    if (unitA !== unitB) return rank(unitA) - rank(unitB);
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}
