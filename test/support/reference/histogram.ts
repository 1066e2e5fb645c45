// Plain twin of the histograms of assembly/stats: a sorted list of (value, exponent) bins, written down from
// the rules of the log-linear histogram alone. Slow, and meant to be read.

/** A bin: two significant digits `value` (10 to 99, or 0 for the zero bin) times 10^(exponent - 1). */
export interface ReferenceBin {
  readonly value: number;
  readonly exponent: number;
  count: number;
}

export class ReferenceHistogram {
  readonly #bins: ReferenceBin[] = [];

  record(sample: number, times = 1): void {
    const { value, exponent } = binOf(BigInt(Math.floor(sample)));
    const known = this.#bins.find((bin) => bin.value === value && bin.exponent === exponent);
    if (known) known.count += times;
    else this.#bins.push({ value, exponent, count: times });
    this.#bins.sort((a, b) => left(a) - left(b));
  }

  add(other: ReferenceHistogram): void {
    for (const bin of other.#bins) this.record(left(bin) === 0 ? 0 : firstIntegerOf(bin), bin.count);
  }

  get count(): number {
    return this.#bins.reduce((sum, bin) => sum + bin.count, 0);
  }

  /** Type 1: the sample of rank ceil(q * count), placed in its bin as the k-th of n even samples. */
  quantiles(qs: readonly number[]): number[] {
    if (this.count === 0) return qs.map(() => Number.NaN);
    return qs.map((q) => {
      const target = this.count * q;
      let lower = 0;
      let at = 0;
      while (at < this.#bins.length - 1 && lower + this.#bins[at]!.count < target) {
        lower += this.#bins[at]!.count;
        at += 1;
      }
      const bin = this.#bins[at]!;
      if (bin.value === 0) return 0;
      const k = Math.ceil(target - lower) || 1;
      return left(bin) + (k / (bin.count + 1)) * width(bin);
    });
  }

  cumulativeBuckets(bounds: readonly number[]): number[] {
    return bounds.map((bound) =>
      this.#bins.filter((bin) => left(bin) <= bound).reduce((sum, bin) => sum + bin.count, 0),
    );
  }

  sum(): number {
    return this.#bins
      .filter((bin) => bin.value !== 0)
      .reduce((sum, bin) => {
        const [l, w] = [left(bin), width(bin)];
        return sum + bin.count * (l + (w * l) / (2 * l + w));
      }, 0);
  }

  bins(): { left: number; width: number; count: number }[] {
    return this.#bins.map((bin) => ({ left: left(bin), width: width(bin), count: bin.count }));
  }
}

/** Digits beyond two are cut off, never rounded; one digit is scaled up. */
function binOf(sample: bigint): { value: number; exponent: number } {
  if (sample === 0n) return { value: 0, exponent: 0 };
  if (sample < 10n) return { value: Number(sample) * 10, exponent: 0 };
  let value = sample;
  let exponent = 1;
  while (value >= 100n) {
    value /= 10n;
    exponent += 1;
  }
  return { value: Number(value), exponent };
}

function left({ value, exponent }: ReferenceBin): number {
  return (value / 10) * Number(`1e${exponent}`);
}

function width({ value, exponent }: ReferenceBin): number {
  return value === 0 ? 0 : Number(`1e${exponent}`) / 10;
}

function firstIntegerOf({ value, exponent }: ReferenceBin): number {
  return exponent === 0 ? value / 10 : value * Number(`1e${exponent - 1}`);
}
