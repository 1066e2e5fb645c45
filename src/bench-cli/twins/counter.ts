// A counter in plain TypeScript: a number, and a check of what is added.

export class PlainCounter {
  #value = 0;

  add(n = 1): void {
    if (!(n >= 0 && Math.floor(n) === n)) throw new RangeError(`${n} is not a whole number of 0 or more`);
    this.#value += n;
  }

  get value(): number {
    return this.#value;
  }
}
