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

/** Puts messages together of the pieces that a body comes in. */
export class MessageFrames {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #length = 0;

  /** @param maxBytes of a message. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns the messages that are whole now. @throws Error for what is no frame that was asked for. */
  *add(bytes: Buffer): Generator<Buffer> {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    for (;;) {
      if (this.#length < HEAD_BYTES) return;
      const head = this.#peek(HEAD_BYTES);
      if (head[0] !== 0) throw new Error('a message is compressed, which was not asked for');
      const length = head.readUInt32BE(1);
      if (length > this.#maxBytes) throw new Error(`a message of ${length} bytes, more than ${this.#maxBytes}`);
      if (this.#length < HEAD_BYTES + length) return;
      yield this.#take(HEAD_BYTES + length).subarray(HEAD_BYTES);
    }
  }

  #peek(length: number): Buffer {
    if (this.#pieces[0]!.length < length) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!;
  }

  #take(length: number): Buffer {
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    const rest = whole.subarray(length);
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return whole.subarray(0, length);
  }
}
