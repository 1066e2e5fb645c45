// Least request over hosts of equal weight. Active requests are read where all workers count them, in the hosts'
// records: plain aligned loads, since a count that is a moment old serves as well.

import { LEAST_CHOICES, LEAST_PAIRS, LEAST_PAIR_COUNT, LEAST_RECORDS, TABLE_HOSTS } from '../layout/lb';
import { HOST_ACTIVE_REQUESTS } from '../layout/shared-memory';
import { mix, nextRandom, STEP, scale } from './random';

/**
 * Index of the host for a request. Reads the table and the records, writes `state`.
 * Draws are with replacement; a later one wins only when it is strictly less busy.
 */
export function leastRequestPick(table: usize, state: usize): u32 {
  const count = load<u32>(table + TABLE_HOSTS);
  const records: usize = table + (load<u32>(table + LEAST_RECORDS) as usize);
  const choices = load<u32>(table + LEAST_CHOICES);
  if (choices == 0) return scan(records, count, state);
  const bits = nextRandom(state);
  const first = scale((bits >> 32) as u32, count);
  const second = scale(bits as u32, count);
  const firstActive = activeRequests(records, first);
  const secondActive = activeRequests(records, second);
  const wins = secondActive < firstActive;
  const best = wins ? second : first;
  if (choices == 2) return best;
  return drawOn(records, count, state, choices, best, wins ? secondActive : firstActive);
}

/**
 * Draws the two hosts of each of the next LEAST_PAIR_COUNT picks into the state, for who compares them without a
 * call: the same draws as leastRequestPick makes of two choices. At most LEAST_PAIR_MAX_HOSTS hosts.
 */
export function drawPairs(table: usize, state: usize): void {
  const count = load<u32>(table + TABLE_HOSTS);
  const end = state + LEAST_PAIRS + LEAST_PAIR_COUNT * 4;
  let sequence = load<u64>(state);
  for (let at = state + LEAST_PAIRS; at < end; at += 4) {
    sequence += STEP;
    const bits = mix(sequence);
    store<u32>(at, (scale((bits >> 32) as u32, count) << 16) | scale(bits as u32, count));
  }
  store<u64>(state, sequence);
}

/** The draws after the first two; 64 random bits serve two of them. */
function drawOn(records: usize, count: u32, state: usize, choices: u32, best: u32, bestActive: i32): u32 {
  let bits: u64 = 0;
  for (let drawn: u32 = 2; drawn < choices; drawn++) {
    bits = drawn & 1 ? bits << 32 : nextRandom(state);
    const next = scale((bits >> 32) as u32, count);
    const active = activeRequests(records, next);
    if (active < bestActive) {
      best = next;
      bestActive = active;
    }
  }
  return best;
}

/** The least busy of all. The k-th of equals takes over with probability 1/k, so that each is as likely. */
function scan(records: usize, count: u32, state: usize): u32 {
  let best: u32 = 0;
  let bestActive = activeRequests(records, 0);
  let equals: u32 = 1;
  for (let host: u32 = 1; host < count; host++) {
    const active = activeRequests(records, host);
    if (active > bestActive) continue;
    if (active < bestActive) {
      equals = 1;
    } else {
      equals++;
      if (scale((nextRandom(state) >> 32) as u32, equals) != 0) continue;
    }
    best = host;
    bestActive = active;
  }
  return best;
}

/** Of the host at an index of a list of record addresses. */
// @ts-ignore: decorator
@inline
export function activeRequests(records: usize, host: u32): i32 {
  return load<i32>((load<u32>(records + ((host as usize) << 2)) as usize) + HOST_ACTIVE_REQUESTS);
}
