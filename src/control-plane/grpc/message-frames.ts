// Messages as gRPC frames them in a body: whether it is compressed, its length, its bytes (the protocol of gRPC over HTTP/2,
// "Length-Prefixed-Message").

const HEAD_BYTES = 5;

export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** What is being filled, and how far it is. */
interface Filling {
  readonly bytes: Buffer;
  length: number;
}

/**
 * Puts messages together of the pieces that a body comes in. Each piece is copied when it comes, so that the end of a long message
 * costs no more than any other part of it.
 */
export class MessageFrames {
  readonly #maxBytes: number;
  readonly #head: Filling = { bytes: Buffer.alloc(HEAD_BYTES), length: 0 };
  /** Once its head is there. */
  #message: Filling | undefined;

  /** @param maxBytes of a message. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns the messages that are whole now. @throws Error for what is no frame that was asked for. */
  *add(bytes: Buffer): Generator<Buffer> {
    let at = 0;
    for (;;) {
      at += fill(this.#message ?? this.#head, bytes, at);
      if (this.#message === undefined) {
        if (this.#head.length < HEAD_BYTES) return;
        this.#message = this.#begin();
      } else if (this.#message.length < this.#message.bytes.length) return;
      else {
        const { bytes: whole } = this.#message;
        this.#message = undefined;
        this.#head.length = 0;
        yield whole;
      }
    }
  }

  #begin(): Filling {
    const { bytes: head } = this.#head;
    if (head[0] !== 0) throw new Error('a message is compressed, which was not asked for');
    const length = head.readUInt32BE(1);
    if (length > this.#maxBytes) throw new Error(`a message of ${length} bytes, more than ${this.#maxBytes}`);
    // Of its own, so that nothing else keeps it alive; pages that nothing is written to cost nothing.
    return { bytes: Buffer.allocUnsafeSlow(length), length: 0 };
  }
}

/** @returns how many bytes it has taken from `at` on. */
function fill(filling: Filling, bytes: Buffer, at: number): number {
  const copied = bytes.copy(filling.bytes, filling.length, at);
  filling.length += copied;
  return copied;
}
