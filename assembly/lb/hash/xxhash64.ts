// XXH64, over bytes at any address; reads nothing else. Keys that do not fit into a scratch come in parts:
// Begin, Stripes for each part of whole stripes, End for the rest.
//
//   32-byte stripes -> four lanes -> merged | + length | 8, 4 and 1 byte tails -> avalanche
//
// State of a hash in parts: the four lanes, u64 each; it works for 32 bytes and more.

import { word } from '../words';

const PRIME_1: u64 = 0x9e3779b185ebca87;
const PRIME_2: u64 = 0xc2b2ae3d27d4eb4f;
const PRIME_3: u64 = 0x165667b19e3779f9;
const PRIME_4: u64 = 0x85ebca77c2b2ae63;
const PRIME_5: u64 = 0x27d4eb2f165667c5;
const STRIPE: usize = 32;

/** Hashes `length` bytes; writes the u64 at `out`. */
export function xxHash64(key: usize, length: u32, seedHi: u32, seedLo: u32, out: usize): void {
  store<u64>(out, xxh64(key, length, word(seedHi, seedLo)));
}

/** For use within the module. */
export function xxh64(key: usize, length: u32, seed: u64): u64 {
  let at = key;
  const end = key + (length as usize);
  let hash = seed + PRIME_5;
  if (length >= (STRIPE as u32)) {
    let lane1 = seed + PRIME_1 + PRIME_2;
    let lane2 = seed + PRIME_2;
    let lane3 = seed;
    let lane4 = seed - PRIME_1;
    const last = end - STRIPE;
    do {
      lane1 = round(lane1, load<u64>(at));
      lane2 = round(lane2, load<u64>(at, 8));
      lane3 = round(lane3, load<u64>(at, 16));
      lane4 = round(lane4, load<u64>(at, 24));
      at += STRIPE;
    } while (at <= last);
    hash = mergeLanes(lane1, lane2, lane3, lane4);
  }
  return finish(hash + (length as u64), at, end);
}

export function xxHash64Begin(state: usize, seedHi: u32, seedLo: u32): void {
  const seed = word(seedHi, seedLo);
  store<u64>(state, seed + PRIME_1 + PRIME_2);
  store<u64>(state, seed + PRIME_2, 8);
  store<u64>(state, seed, 16);
  store<u64>(state, seed - PRIME_1, 24);
}

/** Takes in `length` bytes, a multiple of 32. */
export function xxHash64Stripes(state: usize, at: usize, length: u32): void {
  let lane1 = load<u64>(state);
  let lane2 = load<u64>(state, 8);
  let lane3 = load<u64>(state, 16);
  let lane4 = load<u64>(state, 24);
  const end = at + (length as usize);
  for (; at < end; at += STRIPE) {
    lane1 = round(lane1, load<u64>(at));
    lane2 = round(lane2, load<u64>(at, 8));
    lane3 = round(lane3, load<u64>(at, 16));
    lane4 = round(lane4, load<u64>(at, 24));
  }
  store<u64>(state, lane1);
  store<u64>(state, lane2, 8);
  store<u64>(state, lane3, 16);
  store<u64>(state, lane4, 24);
}

/** Takes in the last `length` bytes of `totalLength` (32 or more); writes the u64 at `out`. */
export function xxHash64End(state: usize, at: usize, length: u32, totalLength: u32, out: usize): void {
  const rest = length & 31;
  xxHash64Stripes(state, at, length - rest);
  const hash = mergeLanes(load<u64>(state), load<u64>(state, 8), load<u64>(state, 16), load<u64>(state, 24));
  const end = at + (length as usize);
  store<u64>(out, finish(hash + (totalLength as u64), end - (rest as usize), end));
}

function mergeLanes(lane1: u64, lane2: u64, lane3: u64, lane4: u64): u64 {
  let hash = rotl<u64>(lane1, 1) + rotl<u64>(lane2, 7) + rotl<u64>(lane3, 12) + rotl<u64>(lane4, 18);
  hash = mergeLane(hash, lane1);
  hash = mergeLane(hash, lane2);
  hash = mergeLane(hash, lane3);
  return mergeLane(hash, lane4);
}

/** The bytes behind the last whole stripe, and the final mixing. */
// @ts-ignore: decorator
@inline
function finish(hash: u64, at: usize, end: usize): u64 {
  for (; at + 8 <= end; at += 8) {
    hash = rotl<u64>(hash ^ round(0, load<u64>(at)), 27) * PRIME_1 + PRIME_4;
  }
  if (at + 4 <= end) {
    hash = rotl<u64>(hash ^ ((load<u32>(at) as u64) * PRIME_1), 23) * PRIME_2 + PRIME_3;
    at += 4;
  }
  for (; at < end; at++) hash = rotl<u64>(hash ^ ((load<u8>(at) as u64) * PRIME_5), 11) * PRIME_1;
  hash = (hash ^ (hash >> 33)) * PRIME_2;
  hash = (hash ^ (hash >> 29)) * PRIME_3;
  return hash ^ (hash >> 32);
}

// @ts-ignore: decorator
@inline
function round(lane: u64, input: u64): u64 {
  return rotl<u64>(lane + input * PRIME_2, 31) * PRIME_1;
}

// @ts-ignore: decorator
@inline
function mergeLane(hash: u64, lane: u64): u64 {
  return (hash ^ round(0, lane)) * PRIME_1 + PRIME_4;
}
