// Private read buffers of connections with a body on its way. A slab belongs to one connection from `take` to
// `give`, or for good when the kernel still holds a part of it: whoever cannot prove that all writes from a slab
// have been taken lets the garbage collector have it instead (`forget`).
//
// Small bodies get small slabs; only bodies that are known to be long, or that keep coming, get the large ones,
// because memory in use is the number of running bodies times their slab.

/** Slab sizes in bytes, ascending. */
export const SLAB_SIZES = [64 * 1024, 256 * 1024, 1024 * 1024] as const;

/** A body whose length is not known gets the middle size. */
export const UNKNOWN_LENGTH = -1;

export class SlabPool {
  readonly #free: Buffer[][] = SLAB_SIZES.map(() => []);
  readonly #capBytes: number;
  #outstandingBytes = 0;
  #freeBytes = 0;

  /** @param capBytes upper bound of free and taken slabs together; beyond it `take` has only small, unpooled ones. */
  constructor(capBytes: number) {
    this.#capBytes = capBytes;
  }

  /** Bytes of slabs that connections hold. */
  get outstandingBytes(): number {
    return this.#outstandingBytes;
  }

  /** Bytes of slabs that wait for use. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /**
   * A slab for a body of which `remaining` bytes are still to come (UNKNOWN_LENGTH for chunked and close-delimited
   * bodies), no larger than `limitBytes` unless that is below the smallest size. Give it back or forget it.
   */
  take(remaining: number, limitBytes: number): Buffer {
    let size = sizeFor(remaining, limitBytes);
    const index = SLAB_SIZES.indexOf(size as (typeof SLAB_SIZES)[number]);
    const pooled = this.#free[index]!.pop();
    if (pooled !== undefined) {
      this.#freeBytes -= pooled.length;
      this.#outstandingBytes += pooled.length;
      return pooled;
    }
    if (this.#outstandingBytes + this.#freeBytes + size > this.#capBytes) size = SLAB_SIZES[0];
    this.#outstandingBytes += size;
    return Buffer.allocUnsafeSlow(size);
  }

  /** Takes back a slab of which nothing is in the kernel's hands. */
  give(slab: Buffer): void {
    this.#outstandingBytes -= slab.length;
    if (this.#outstandingBytes + this.#freeBytes + slab.length > this.#capBytes) return;
    this.#freeBytes += slab.length;
    this.#free[SLAB_SIZES.indexOf(slab.length as (typeof SLAB_SIZES)[number])]!.push(slab);
  }

  /** Strikes off a slab that may still be read by the kernel. */
  forget(slab: Buffer): void {
    this.#outstandingBytes -= slab.length;
  }
}

function sizeFor(remaining: number, limitBytes: number): number {
  let size: number;
  if (remaining === UNKNOWN_LENGTH) size = SLAB_SIZES[1];
  else if (remaining < 2 * SLAB_SIZES[0]) size = SLAB_SIZES[0];
  else if (remaining <= SLAB_SIZES[2]) size = SLAB_SIZES[1];
  else size = SLAB_SIZES[2];
  while (size > limitBytes && size > SLAB_SIZES[0]) size /= 4;
  return size;
}
