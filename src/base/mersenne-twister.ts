// The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), for sequences that others draw from the same seed, too.

const SIZE = 624;
const MIDDLE = 397;
const TWO_TO_32 = 0x1_0000_0000;

export class MersenneTwister {
  readonly #state = new Uint32Array(SIZE);
  #next = SIZE;

  /** Begins the sequence of a seed, 32 bits of it. */
  seed(seed: number): void {
    const state = this.#state;
    state[0] = seed;
    for (let at = 1; at < SIZE; at += 1) {
      const before = state[at - 1]!;
      state[at] = Math.imul(before ^ (before >>> 30), 1_812_433_253) + at;
    }
    this.#next = SIZE;
  }

  u32(): number {
    if (this.#next === SIZE) this.#twist();
    let value = this.#state[this.#next++]!;
    value ^= value >>> 11;
    value ^= (value << 7) & 0x9d2c_5680;
    value ^= (value << 15) & 0xefc6_0000;
    value ^= value >>> 18;
    return value >>> 0;
  }

  /** Uniform in 0 to count - 1. */
  below(count: number): number {
    const step = Math.floor(TWO_TO_32 / count);
    for (;;) {
      const drawn = Math.floor(this.u32() / step);
      if (drawn < count) return drawn;
    }
  }

  #twist(): void {
    const state = this.#state;
    for (let at = 0; at < SIZE; at += 1) {
      const bits = (state[at]! & 0x8000_0000) | (state[(at + 1) % SIZE]! & 0x7fff_ffff);
      state[at] = state[(at + MIDDLE) % SIZE]! ^ (bits >>> 1) ^ (bits & 1 ? 0x9908_b0df : 0);
    }
    this.#next = 0;
  }
}
