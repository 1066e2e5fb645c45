// What Node reads from an accepted socket lies in memory of its own outside the heap, up to 64 KB a read. Left to the
// garbage collector, an upload fills such memory faster than anything else: collections of the whole heap followed
// each other and cost more than half of the worker's time. So what has left is freed at once.

/** Below this a read costs the collector less than freeing it here does. */
const WORTHWHILE_BYTES = 16 * 1024;

/**
 * Frees the memory of bytes that nobody reads any more; they are empty afterwards. Leaves alone what is short, and
 * views of a part of a larger buffer, such as Node's pool.
 */
export function freeGiven(bytes: Buffer): void {
  const memory = bytes.buffer;
  if (bytes.length < WORTHWHILE_BYTES || memory.byteLength !== bytes.length) return;
  if (memory instanceof ArrayBuffer) memory.transfer(0);
}
