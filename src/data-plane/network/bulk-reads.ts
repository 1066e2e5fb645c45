// Tells when a connection reads in bulk, and deserves a read buffer of its own. Tunnels and proxied TCP connections are
// idle most of the time: until then, and again after that, they read through the buffer that all share.

/** So many reads in a row must fill the buffer. */
const FULL_READS = 2;
/** A read below this says that the bulk is over. */
const BULK_READ_BYTES = 16 * 1024;

export class BulkReads {
  #fullReads = 0;

  get isBulk(): boolean {
    return this.#fullReads >= FULL_READS;
  }

  /** @param length of a read, @param capacity of a buffer that it would have filled. */
  note(length: number, capacity: number): void {
    if (length < BULK_READ_BYTES) this.#fullReads = 0;
    else if (length >= capacity) this.#fullReads++;
  }
}
