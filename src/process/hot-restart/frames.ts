// Messages on a stream of bytes: four bytes with the length of the JSON that follows, big end first.

import { WeirError } from '../../base/errors.ts';

const HEAD_BYTES = 4;
/** Many times as much as a batch of stats with long names. */
const MOST_BYTES = 16 * 1024 * 1024;

export function frameOf(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const frame = Buffer.allocUnsafe(HEAD_BYTES + text.length);
  frame.writeUInt32BE(text.length, 0);
  text.copy(frame, HEAD_BYTES);
  return frame;
}

export class FrameReader {
  #pieces: Buffer[] = [];
  #length = 0;

  /** @returns the messages that are complete now. @throws WeirError WEIR_HOT_RESTART for what is none. */
  read(bytes: Buffer): unknown[] {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    const messages: unknown[] = [];
    for (let size = this.#nextSize(); size !== undefined && this.#length >= size; size = this.#nextSize()) {
      const all = this.#joined();
      messages.push(parse(all.toString('utf8', HEAD_BYTES, size)));
      this.#pieces = [all.subarray(size)];
      this.#length -= size;
    }
    return messages;
  }

  /** Of the next frame with its head; undefined while that is not there. */
  #nextSize(): number | undefined {
    if (this.#length < HEAD_BYTES) return undefined;
    const first = this.#pieces[0]!.length < HEAD_BYTES ? this.#joined() : this.#pieces[0]!;
    const size = first.readUInt32BE(0);
    if (size > MOST_BYTES) throw new WeirError('WEIR_HOT_RESTART', `a message of ${size} bytes is too long`);
    return HEAD_BYTES + size;
  }

  #joined(): Buffer {
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new WeirError('WEIR_HOT_RESTART', 'a message is no JSON', { cause: error });
  }
}
