// The package export `weir-proxy/core`: the proxy's statistics and balancer tables as a library. Reference:
// docs/core.md.

export { WeirError } from '../base/errors.ts';
export { createCore } from './core.ts';
export type {
  Bin,
  BucketMode,
  Core,
  CoreOptions,
  Counter,
  Distribution,
  HashFunction,
  Histogram,
  Host,
  LeastRequest,
  LeastRequestOptions,
  Maglev,
  MaglevOptions,
  RingEntry,
  RingHash,
  RingHashOptions,
  RoundRobin,
  SeedOptions,
  Unit,
} from './types.ts';
