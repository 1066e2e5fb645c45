// WASM module "lb": hash tables and balancers. Every thread may run it over the one shared memory, so it owns
// nothing: no data segment, no allocator, no mutable global; addresses come from outside. 64-bit numbers cross its
// border as two u32 or through memory.

export { murmurHash2, murmurHash2Begin, murmurHash2End, murmurHash2Words } from './hash/murmur2';
export { xxHash64, xxHash64Begin, xxHash64End, xxHash64Stripes } from './hash/xxhash64';
export { layoutVersion } from './layout-version';
export { drawPairs, leastRequestPick } from './least-request';
export { buildMaglev, maglevLookupKey } from './maglev';
export { seedRandom } from './random';
export { buildRing } from './ring-build';
export { ringLookup, ringLookupKey } from './ring-lookup';
export { schedulePick, startQueue } from './schedule';
