// Randomness that decides but does not protect: seeds of balancers, jitter. Given to owners, so that a test can
// fix it. Not for secrets or identifiers.

export interface Random {
  /** Uniform in 0 to 2^32 - 1. */
  u32(): number;
}

export const SYSTEM_RANDOM: Random = { u32: () => Math.floor(Math.random() * 0x1_0000_0000) };

/** Draws from shares: index of the weight that `value`, below the sum of all of them, falls into. */
export function weightedIndex(weights: readonly number[], value: number): number {
  let rest = value;
  let index = 0;
  while (rest >= weights[index]!) {
    rest -= weights[index]!;
    index += 1;
  }
  return index;
}

/**
 * A sequence of its own, repeatable from its seed (Marsaglia, "Xorshift RNGs", 2003). For what draws with every
 * request: the system's source costs several times as much.
 */
export class RandomSequence implements Random {
  #state: number;

  /** @param seed any 32-bit number. */
  constructor(seed: number) {
    // The sequence that starts at 0 never leaves it.
    this.#state = seed | 0 || 1;
  }

  u32(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state;
    return state >>> 0;
  }
}
