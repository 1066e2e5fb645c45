// Messages of gRPC within a body: each has a byte of flags and four of its length before it.

export const FRAME_HEAD_BYTES = 5;

/** Follows the messages of a body, whatever pieces it comes in, and keeps none of it. */
export class FrameCounter {
  /** Messages that have begun. */
  count = 0;
  /** Bytes of the head at hand that have come, and of its message that have not. */
  #headBytes = 0;
  #length = 0;
  #missing = 0;

  /** What has come ends with a message. */
  get isBetween(): boolean {
    return this.#headBytes === 0 && this.#missing === 0;
  }

  see(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#missing > 0) {
        const taken = Math.min(this.#missing, bytes.length - at);
        this.#missing -= taken;
        at += taken;
        continue;
      }
      if (this.#headBytes === 0) {
        this.count += 1;
        this.#length = 0;
      } else this.#length = this.#length * 256 + bytes[at]!;
      at += 1;
      this.#headBytes += 1;
      if (this.#headBytes < FRAME_HEAD_BYTES) continue;
      this.#headBytes = 0;
      this.#missing = this.#length;
    }
  }
}

/** @param flags 0 for a message, 128 for what gRPC-Web has of trailers. */
export function frameHead(flags: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES);
  head[0] = flags;
  head.writeUInt32BE(length, 1);
  return head;
}
