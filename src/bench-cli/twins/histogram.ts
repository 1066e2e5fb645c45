// The log-linear histogram as one would write it in plain TypeScript: one dense array of counts, scanned bin by
// bin. What the WASM module is measured against, by weir-bench and by bench/histogram.ts; tests hold the two together.

const DECADES = 15;
const FIRST_BINS = 100;
const DECADE_BINS = 90;
const BINS = FIRST_BINS + (DECADES - 1) * DECADE_BINS;

export class PlainHistogram {
  readonly counts = new Float64Array(BINS);
  count = 0;

  record(value: number): void {
    let entry = Math.floor(value);
    let first = 0;
    if (entry >= 100) {
      first = FIRST_BINS - 10 - DECADE_BINS;
      while (entry >= 100) {
        entry = Math.floor(entry / 10);
        first += DECADE_BINS;
      }
    }
    this.counts[first + entry]! += 1;
    this.count += 1;
  }

  recordMany(values: Float64Array): void {
    for (let at = 0; at < values.length; at++) this.record(values[at]!);
  }

  quantiles(qs: readonly number[]): Float64Array {
    const found = new Float64Array(qs.length).fill(Number.NaN);
    if (this.count === 0) return found;
    let bin = 0;
    let before = 0;
    for (const [at, q] of qs.entries()) {
      const rank = Math.ceil(this.count * q) || 1;
      while (before + this.counts[bin]! < rank) {
        before += this.counts[bin]!;
        bin += 1;
      }
      const { left, width } = edgesOf(bin);
      found[at] = bin === 0 ? 0 : left + ((rank - before) / (this.counts[bin]! + 1)) * width;
    }
    return found;
  }

  cumulativeBuckets(bounds: readonly number[]): Float64Array {
    return Float64Array.from(bounds, (bound) => {
      let count = 0;
      for (let bin = 0; bin < BINS && LEFT_EDGES[bin]! <= bound; bin++) count += this.counts[bin]!;
      return count;
    });
  }

  /** Adds another one's counts and clears them. */
  mergeAndClear(other: PlainHistogram): void {
    for (let bin = 0; bin < BINS; bin++) {
      this.counts[bin]! += other.counts[bin]!;
      other.counts[bin] = 0;
    }
    this.count += other.count;
    other.count = 0;
  }
}

function edgesOf(bin: number): { left: number; width: number } {
  if (bin < 10) return { left: bin, width: 0.1 };
  const exponent = bin < FIRST_BINS ? 1 : 2 + Math.floor((bin - FIRST_BINS) / DECADE_BINS);
  const value = bin < FIRST_BINS ? bin : 10 + ((bin - FIRST_BINS) % DECADE_BINS);
  return { left: (value / 10) * Number(`1e${exponent}`), width: Number(`1e${exponent}`) / 10 };
}

const LEFT_EDGES = Float64Array.from({ length: BINS }, (_, bin) => edgesOf(bin).left);
