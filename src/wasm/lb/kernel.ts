// One thread's instance of the lb module, its scratch for keys, and the hashes. Any thread: main builds tables with
// it, workers look up and pick. The scratch lies below the heap, so its views never need replacing.

import {
  LAYOUT_VERSION,
  SCRATCH_AT,
  SCRATCH_HASH,
  SCRATCH_HASH_STATE,
  SCRATCH_KEY,
  SCRATCH_KEY_SIZE,
  SCRATCH_STRIDE,
} from '../../../assembly/layout/shared-memory.ts';
import { instantiateModule } from '../instantiate.ts';
import type { SharedMemory } from '../shared-memory.ts';
import type { LbExports } from './exports.ts';

/** Seed of std::hash<std::string> in libstdc++. */
export const STD_HASH_SEED = 0xc70f6907n;

/** UTF-8 takes three bytes at most for a unit of a string. */
const SURELY_FITS = SCRATCH_KEY_SIZE / 3;

/** A string is hashed by its UTF-8. */
export type HashKey = string | Uint8Array;

export class LbKernel {
  readonly shared: SharedMemory;
  readonly exports: LbExports;
  /** Address of the scratch's key; what placeKey wrote is valid until the next call. */
  readonly keyAddress: number;
  readonly #scratch: number;
  /** Where keys are placed. */
  readonly #key: Buffer;
  /** The scratch's hash, and the same as halves: low first. */
  readonly #hash: BigUint64Array<ArrayBufferLike>;
  readonly #halves: Uint32Array<ArrayBufferLike>;

  /**
   * @param shared  as this thread maps it; its slab decides which scratch is used.
   * @param module  compileModule('lb'), compiled once and posted.
   * @throws WeirError WEIR_WASM_LAYOUT when the binary is of another layout.
   */
  constructor(shared: SharedMemory, module: WebAssembly.Module) {
    this.shared = shared;
    this.exports = instantiateModule<LbExports>('lb', module, shared.memory, LAYOUT_VERSION);
    const { buffer } = shared.memory;
    this.#scratch = SCRATCH_AT + shared.slab * SCRATCH_STRIDE;
    this.keyAddress = this.#scratch + SCRATCH_KEY;
    this.#key = Buffer.from(buffer, this.keyAddress, SCRATCH_KEY_SIZE);
    this.#hash = new BigUint64Array(buffer, this.#scratch + SCRATCH_HASH, 1);
    this.#halves = new Uint32Array(buffer, this.#scratch + SCRATCH_HASH, 2);
  }

  /** XXH64. @param seed  unsigned 64 bits; higher bits are cut off. */
  xxHash64(key: HashKey, seed = 0n): bigint {
    this.#hash[0] = seed;
    this.#xxHash64(key, this.#halves[1]!, this.#halves[0]!);
    return this.#hash[0]!;
  }

  /** 64-bit MurmurHash2 in the variant of libstdc++. @param seed  unsigned 64 bits; higher bits are cut off. */
  murmurHash2(key: HashKey, seed = STD_HASH_SEED): bigint {
    const { exports } = this;
    const out = this.#scratch + SCRATCH_HASH;
    this.#hash[0] = seed;
    const seedHi = this.#halves[1]!;
    const seedLo = this.#halves[0]!;
    const length = this.placeKey(key);
    if (length >= 0) {
      exports.murmurHash2(this.keyAddress, length, seedHi, seedLo, out);
    } else {
      const bytes = bytesOf(key);
      const state = this.#scratch + SCRATCH_HASH_STATE;
      exports.murmurHash2Begin(state, bytes.length, seedHi, seedLo);
      const rest = this.#feed(bytes, (at, part) => exports.murmurHash2Words(state, at, part));
      exports.murmurHash2End(state, this.keyAddress, rest, out);
    }
    return this.#hash[0]!;
  }

  /** Splits a hash without allocating: afterwards hashHi and hashLo hold its halves. */
  split(hash: bigint): void {
    this.#hash[0] = hash;
  }

  /** XXH64 of a key into hashHi and hashLo; the seed is given by its halves. */
  hash(key: HashKey, seedHi = 0, seedLo = 0): void {
    this.#xxHash64(key, seedHi, seedLo);
  }

  /** The same of the bytes that a text of units up to 255 stands for. Hot for up to 960 of them: one call. */
  hashLatin1(text: string, seedHi = 0, seedLo = 0): void {
    if (text.length > SCRATCH_KEY_SIZE) {
      this.#xxHash64(Buffer.from(text, 'latin1'), seedHi, seedLo);
      return;
    }
    const length = this.#key.write(text, 'latin1');
    this.exports.xxHash64(this.keyAddress, length, seedHi, seedLo, this.#scratch + SCRATCH_HASH);
  }

  get hashHi(): number {
    return this.#halves[1]!;
  }

  get hashLo(): number {
    return this.#halves[0]!;
  }

  /**
   * Writes a key into the scratch, a string as UTF-8.
   * @returns its bytes, or -1 when it does not fit: hash() takes it then.
   */
  placeKey(key: HashKey): number {
    if (typeof key !== 'string') return this.#placeBytes(key);
    if (key.length > SURELY_FITS && Buffer.byteLength(key) > SCRATCH_KEY_SIZE) return -1;
    // Without an offset and a length to be checked this is the quickest way of text into memory.
    return this.#key.write(key);
  }

  #placeBytes(key: Uint8Array): number {
    if (key.length > SCRATCH_KEY_SIZE) return -1;
    this.#key.set(key);
    return key.length;
  }

  #xxHash64(key: HashKey, seedHi: number, seedLo: number): void {
    const { exports } = this;
    const out = this.#scratch + SCRATCH_HASH;
    const length = this.placeKey(key);
    if (length >= 0) {
      exports.xxHash64(this.keyAddress, length, seedHi, seedLo, out);
      return;
    }
    const bytes = bytesOf(key);
    const state = this.#scratch + SCRATCH_HASH_STATE;
    exports.xxHash64Begin(state, seedHi, seedLo);
    const rest = this.#feed(bytes, (at, part) => exports.xxHash64Stripes(state, at, part));
    exports.xxHash64End(state, this.keyAddress, rest, bytes.length, out);
  }

  /** Hands over whole scratches of a long key; the rest, shorter than one, stays in the scratch. */
  #feed(bytes: Uint8Array, take: (at: number, length: number) => void): number {
    let from = 0;
    for (; bytes.length - from >= SCRATCH_KEY_SIZE; from += SCRATCH_KEY_SIZE) {
      this.#placeBytes(bytes.subarray(from, from + SCRATCH_KEY_SIZE));
      take(this.keyAddress, SCRATCH_KEY_SIZE);
    }
    return this.#placeBytes(bytes.subarray(from));
  }
}

function bytesOf(key: HashKey): Uint8Array {
  return typeof key === 'string' ? Buffer.from(key) : key;
}
