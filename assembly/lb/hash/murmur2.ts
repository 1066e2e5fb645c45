// 64-bit MurmurHash2 as std::hash of libstdc++ has it: the tail is read as one little-endian word and mixed in like a
// whole one, only without the inner multiplications. Over bytes at any address; reads nothing else. Keys that do not
// fit into a scratch come in parts: Begin, Words for each part of whole words, End for the rest.

import { word } from '../words';

const MULTIPLIER: u64 = 0xc6a4a7935bd1e995;

/** Hashes `length` bytes; writes the u64 at `out`. */
export function murmurHash2(key: usize, length: u32, seedHi: u32, seedLo: u32, out: usize): void {
  store<u64>(out, murmur2(key, length, word(seedHi, seedLo)));
}

/** For use within the module. */
export function murmur2(key: usize, length: u32, seed: u64): u64 {
  const rest = length & 7;
  return finish(mixWords(begin(length, seed), key, length - rest), key + ((length - rest) as usize), rest);
}

/** The length of the whole key goes into its start. */
export function murmurHash2Begin(state: usize, totalLength: u32, seedHi: u32, seedLo: u32): void {
  store<u64>(state, begin(totalLength, word(seedHi, seedLo)));
}

/** Takes in `length` bytes, a multiple of 8. */
export function murmurHash2Words(state: usize, at: usize, length: u32): void {
  store<u64>(state, mixWords(load<u64>(state), at, length));
}

/** Takes in the last `length` bytes; writes the u64 at `out`. */
export function murmurHash2End(state: usize, at: usize, length: u32, out: usize): void {
  const rest = length & 7;
  murmurHash2Words(state, at, length - rest);
  store<u64>(out, finish(load<u64>(state), at + ((length - rest) as usize), rest));
}

// @ts-ignore: decorator
@inline
function begin(length: u32, seed: u64): u64 {
  return seed ^ ((length as u64) * MULTIPLIER);
}

// @ts-ignore: decorator
@inline
function mixWords(hash: u64, at: usize, length: u32): u64 {
  const end = at + (length as usize);
  for (; at < end; at += 8) hash = (hash ^ (shiftMix(load<u64>(at) * MULTIPLIER) * MULTIPLIER)) * MULTIPLIER;
  return hash;
}

// @ts-ignore: decorator
@inline
function finish(hash: u64, at: usize, rest: u32): u64 {
  if (rest > 0) {
    let tail: u64 = 0;
    for (let byte: u32 = 0; byte < rest; byte++) tail |= (load<u8>(at + (byte as usize)) as u64) << ((byte << 3) as u64);
    hash = (hash ^ tail) * MULTIPLIER;
  }
  return shiftMix(shiftMix(hash) * MULTIPLIER);
}

// @ts-ignore: decorator
@inline
function shiftMix(value: u64): u64 {
  return value ^ (value >> 47);
}
