// Random sequences by splitmix64. The state is one u64 at an address that one thread owns: a sequence can be
// repeated from its seed, and instances of the module keep nothing.

import { word } from './words';

/** What a state advances by for each 64 random bits. */
export const STEP: u64 = 0x9e3779b97f4a7c15;

export function seedRandom(state: usize, seedHi: u32, seedLo: u32): void {
  store<u64>(state, word(seedHi, seedLo));
}

/** 64 random bits; advances the state. */
// @ts-ignore: decorator
@inline
export function nextRandom(state: usize): u64 {
  const value = load<u64>(state) + STEP;
  store<u64>(state, value);
  return mix(value);
}

/** The random bits that a state which has been advanced stands for. */
// @ts-ignore: decorator
@inline
export function mix(value: u64): u64 {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/** Random bits to 0 to count - 1, without a division; uneven by less than count / 2^32. */
// @ts-ignore: decorator
@inline
export function scale(bits: u32, count: u32): u32 {
  return (((bits as u64) * (count as u64)) >> 32) as u32;
}
