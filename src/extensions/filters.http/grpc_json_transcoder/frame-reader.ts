// Takes whole messages out of a body of gRPC, whatever pieces it comes in.

import { FRAME_HEAD_BYTES } from '../grpc/frames.ts';

const NO_BYTES = Buffer.alloc(0);

export class FrameReader {
  #rest: Buffer = NO_BYTES;

  get heldBytes(): number {
    return this.#rest.length;
  }

  /** @throws Error for a message that is compressed. */
  read(bytes: Buffer): Buffer[] {
    const all = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    const messages: Buffer[] = [];
    let at = 0;
    while (all.length - at >= FRAME_HEAD_BYTES) {
      const end = at + FRAME_HEAD_BYTES + all.readUInt32BE(at + 1);
      if (end > all.length) break;
      if (all[at] !== 0) throw new Error('a message is compressed');
      messages.push(all.subarray(at + FRAME_HEAD_BYTES, end));
      at = end;
    }
    this.#rest = all.subarray(at);
    return messages;
  }
}
