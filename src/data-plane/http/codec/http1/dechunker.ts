// Takes the framing off a chunked body, for HTTP/1.0 clients, which do not know it.

import { ChunkScanner, ChunkSpan } from '../../../../wasm/http1.ts';

export class Dechunker {
  readonly #scanner = new ChunkScanner();

  constructor() {
    this.#scanner.reset();
  }

  /** The body bytes within bytes[start..end), which was validated before, as a buffer of their own. */
  decode(bytes: Buffer, start: number, end: number): Buffer {
    const parts: Buffer[] = [];
    for (let at = start; at < end && !this.#scanner.isDone; ) {
      const next = this.#scanner.next(bytes, at, end);
      if (next < 0) break;
      if (this.#scanner.span === ChunkSpan.DATA) parts.push(bytes.subarray(at, next));
      at = next;
    }
    return Buffer.concat(parts);
  }
}
