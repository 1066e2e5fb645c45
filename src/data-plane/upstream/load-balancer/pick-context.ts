// What a pick may know of its request.

export interface PickContext {
  /** False: balancers that go by hashes draw one. */
  readonly hasHash: boolean;
  /** Halves of the request's hash, each of 32 bits. */
  readonly hashHi: number;
  readonly hashLo: number;
}

/** The hash of one request, while it is put together. */
export class RequestHash implements PickContext {
  hasHash = false;
  hashHi = 0;
  hashLo = 0;

  /** Takes in one more hash: turns what was there by one bit, so that the order counts. */
  add(hi: number, lo: number): void {
    const turnedHi = (this.hashHi << 1) | (this.hashLo >>> 31);
    const turnedLo = (this.hashLo << 1) | (this.hashHi >>> 31);
    this.hashHi = (this.hasHash ? turnedHi : 0) ^ hi;
    this.hashLo = (this.hasHash ? turnedLo : 0) ^ lo;
    this.hasHash = true;
  }
}
