// What `weir-proxy/core` offers, as types. They name nothing of the rest of weir, so that a program that uses the core
// is compiled against this file alone.
//
// Everything here is synchronous and belongs to the thread that called createCore. Whatever is refused throws a
// WeirError whose message names the argument, the value and the limit; nothing has changed then.

export interface CoreOptions {
  /**
   * Most memory that tables and histograms of this core may take together, in MiB: a whole number from 1 to
   * 4096, default 1024. It is address space: what is not used costs nothing.
   */
  readonly maxMemoryMiB?: number;
}

/** A member of a host list; its place in the list is the index that lookups and picks answer with. */
export interface Host {
  /** What consistent hashing places, usually `address:port`; not empty. Equal keys fall on equal places. */
  readonly key: string;
  /** Share of the load relative to the other hosts: a whole number from 1 to 4294967295, default 1. */
  readonly weight?: number;
}

/** What its values are: times, sizes, or ratios of 0 to 1 (and above) for `percent`. */
export type Unit = 'ms' | 'us' | 'bytes' | 'percent' | 'count';

export type HashFunction = 'XX_HASH' | 'MURMUR_HASH_2';

export type BucketMode = 'cumulative' | 'disjoint';

export interface Counter {
  /**
   * Adds a whole number of 0 or more, at most 2^53 - 1 at once. A few nanoseconds.
   * @throws WeirError WEIR_CORE_ARGUMENT for anything else.
   */
  add(n?: number): void;
  /** The exact total, however large. */
  readonly value: bigint;
}

/** One bin with samples: those that are at least `left` and less than `left + width`. */
export interface Bin {
  readonly left: number;
  readonly width: number;
  readonly count: number;
}

/** Samples as merge() left them; values are in the histogram's unit. */
export interface Distribution {
  readonly count: number;
  /** As far as bins can tell: within 5% of the samples' own sum. */
  readonly sum: number;
  /** sum / count; NaN when empty. */
  readonly mean: number;
  /**
   * The values below which the given shares of all samples lie, in the order asked for; NaN for each when empty.
   * Each lies in the bin of the exact sample, so within 10% of it.
   * @param qs  shares of 0 to 1, at most 512.
   */
  quantiles(qs: readonly number[]): Float64Array;
  /**
   * Samples by upper bound. A bin belongs to a bound when it begins at the bound or below: with the bound 1000 the
   * values up to 1099 are in.
   * @param bounds  ascending, 0 or more, at most 512.
   * @param mode  `cumulative` (default): all samples up to each bound; `disjoint`: those above the bound before.
   */
  buckets(bounds: readonly number[], mode?: BucketMode): Float64Array;
  /** All bins with samples, ascending. */
  bins(): Bin[];
}

/**
 * A log-linear histogram of two significant decimal digits: 90 bins a decade, memory by decades in use. Fractions are
 * cut off, but for `percent`, which keeps six decimals.
 */
export interface Histogram {
  readonly unit: Unit;
  /**
   * Counts one value of 0 to 2^53 (percent: to 2^53 / 1,000,000). About ten nanoseconds.
   * @returns false when the value was refused: NaN, infinite, negative or too large.
   */
  record(value: number): boolean;
  /** Counts many values, a few nanoseconds each; returns how many were taken. The others were refused. */
  recordMany(values: Float64Array | Uint32Array): number;
  /** Values that record and recordMany have refused. */
  readonly refusedCount: number;
  /** Makes what was recorded since the last merge the interval, and adds it to the cumulative samples. */
  merge(): void;
  /** Samples between the last two merges. */
  readonly interval: Distribution;
  /** All samples up to the last merge. */
  readonly cumulative: Distribution;
}

/** Tables and pickers live outside of the collected heap until free(); using one after that throws. */
export interface Freeable {
  /** Bytes in use; 0 once freed. */
  readonly bytes: number;
  /** Gives the memory back; a second call does nothing. */
  free(): void;
}

export interface MaglevOptions {
  /** Entries: a prime up to 5000011, default 65537; at least a hundred times the number of hosts is usual. */
  readonly tableSize?: number;
}

/** A Maglev table: every key has its host, and most keep it when hosts come or go. */
export interface Maglev extends Freeable {
  /**
   * Index of the host of a key's hash.
   * @param hash  unsigned 64 bits; higher bits are cut off.
   * @param attempt  0, or the number of a retry, which looks elsewhere (and may find the same host).
   */
  lookup(hash: bigint, attempt?: number): number;
  /** The same for the XXH64 of a key, in one call into WASM instead of two. */
  lookupKey(key: string | Uint8Array, attempt?: number): number;
  /** Entries of the table; 1 when there is one host, which needs none. */
  readonly tableSize: number;
  /** Entries of the host with the fewest and the most. */
  readonly minEntriesPerHost: number;
  readonly maxEntriesPerHost: number;
}

export interface RingHashOptions {
  /** Least number of entries on the ring, 1 to 8388608, default 1024. */
  readonly minimumRingSize?: number;
  /** Most entries, minimumRingSize to 8388608, default 8388608. */
  readonly maximumRingSize?: number;
  /** Places the hosts on the ring, default XX_HASH. Keys are always looked up by the hash that you give. */
  readonly hashFunction?: HashFunction;
}

export interface RingEntry {
  readonly hash: bigint;
  readonly host: number;
}

/** A ring of hashes (ketama): a key belongs to the first entry at or after its hash. */
export interface RingHash extends Freeable {
  /** As Maglev.lookup; a retry takes the entry so many places further on. */
  lookup(hash: bigint, attempt?: number): number;
  /** The same for the XXH64 of a key, in one call into WASM instead of two. */
  lookupKey(key: string | Uint8Array, attempt?: number): number;
  /** Entries on the ring. */
  readonly size: number;
  /** Entries of the host with the fewest and the most. */
  readonly minHashesPerHost: number;
  readonly maxHashesPerHost: number;
  /** All entries, ascending by hash; a copy, so mind large rings. */
  ring(): RingEntry[];
}

export interface SeedOptions {
  /** Start of the random sequence, a whole number of 0 to 2^53 - 1; by default another one each time. */
  readonly seed?: number;
}

export interface LeastRequestOptions extends SeedOptions {
  /** Hosts drawn at random for each pick, of which the least busy is taken: 2 or more, default 2. */
  readonly choiceCount?: number;
}

/**
 * Least request. With equal weights the least busy of choiceCount random hosts; with unequal ones a weighted schedule
 * in which each host counts by weight / (active + 1).
 */
export interface LeastRequest extends Freeable {
  /** Index of a host; counts nothing: start() does. */
  pick(): number;
  /** A request to the host has begun. */
  start(index: number): void;
  /** It has ended. @throws WeirError WEIR_CORE_ARGUMENT when none is active there. */
  finish(index: number): void;
  /** Requests in flight to the host. */
  active(index: number): number;
}

/** Round robin: the hosts in turn, or by earliest deadline when weights differ. */
export interface RoundRobin extends Freeable {
  pick(): number;
}

export interface Core {
  /** The counter of this name; made when it is first asked for. */
  counter(name: string): Counter;
  /**
   * The histogram of this name; made when it is first asked for.
   * @throws WeirError WEIR_CORE_ARGUMENT when it exists with another unit.
   */
  histogram(name: string, options?: { readonly unit?: Unit }): Histogram;
  /** @throws WeirError WEIR_CORE_ARGUMENT, or WEIR_CORE_MEMORY when maxMemoryMiB does not suffice. */
  maglev(hosts: readonly Host[], options?: MaglevOptions): Maglev;
  /** @throws WeirError WEIR_CORE_ARGUMENT, or WEIR_CORE_MEMORY when maxMemoryMiB does not suffice. */
  ringHash(hosts: readonly Host[], options?: RingHashOptions): RingHash;
  /** @throws WeirError WEIR_CORE_ARGUMENT, or WEIR_CORE_MEMORY when maxMemoryMiB does not suffice. */
  leastRequest(hosts: readonly Host[], options?: LeastRequestOptions): LeastRequest;
  /** @throws WeirError WEIR_CORE_ARGUMENT, or WEIR_CORE_MEMORY when maxMemoryMiB does not suffice. */
  roundRobin(hosts: readonly Host[], options?: SeedOptions): RoundRobin;
  /** XXH64 of the bytes, or of the string's UTF-8. */
  xxHash64(data: string | Uint8Array, seed?: bigint): bigint;
  /** 64-bit MurmurHash2 as std::hash of libstdc++ computes it with its seed 0xc70f6907. */
  murmurHash2(data: string | Uint8Array, seed?: bigint): bigint;
}
