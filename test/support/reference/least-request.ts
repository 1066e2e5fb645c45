// Plain twins of assembly/lb/random.ts and least-request.ts: the same random sequence, the same draws.

const MASK = (1n << 64n) - 1n;

export class RandomReference {
  #state: bigint;

  constructor(seed: number) {
    this.#state = BigInt(seed);
  }

  next(): bigint {
    this.#state = (this.#state + 0x9e3779b97f4a7c15n) & MASK;
    let value = this.#state;
    value = ((value ^ (value >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    value = ((value ^ (value >> 27n)) * 0x94d049bb133111ebn) & MASK;
    return value ^ (value >> 31n);
  }

  index(count: number): number {
    return scale(this.next() >> 32n, count);
  }
}

function scale(bits: bigint, count: number): number {
  return Number((bits * BigInt(count)) >> 32n);
}

/** The first of the least busy among `choices` draws with replacement; each 64 random bits serve two. */
export function pickByChoices(active: readonly number[], choices: number, random: RandomReference): number {
  let bits = 0n;
  let best = -1;
  for (let drawn = 0; drawn < choices; drawn += 1) {
    if (drawn % 2 === 0) bits = random.next();
    const host = scale(drawn % 2 === 0 ? bits >> 32n : bits & 0xffff_ffffn, active.length);
    if (best === -1 || active[host]! < active[best]!) best = host;
  }
  return best;
}

/** The least busy of all; the k-th of equals replaces the one before with probability 1/k. */
export function pickByScan(active: readonly number[], random: RandomReference): number {
  let best = 0;
  let equals = 1;
  for (let host = 1; host < active.length; host += 1) {
    if (active[host]! < active[best]!) {
      best = host;
      equals = 1;
    } else if (active[host] === active[best]) {
      equals += 1;
      if (random.index(equals) === 0) best = host;
    }
  }
  return best;
}
