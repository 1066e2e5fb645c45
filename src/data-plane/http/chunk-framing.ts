// Takes the framing off chunked bodies, for whoever does not write chunks and for filters, which see and change what is
// within; and puts one on, for the codec of HTTP/1.

import { ChunkScanner, ChunkSpan } from '../../wasm/http1.ts';
import type { Trailers } from './trailers.ts';

const NO_BYTES = Buffer.alloc(0);
const LINE_END = Buffer.from('\r\n');
const LAST_CHUNK = '0\r\n';
/** The end of a body without trailers. */
const END = Buffer.from('0\r\n\r\n');

export class Dechunker {
  readonly #scanner = new ChunkScanner();

  /** The body bytes within bytes[start..end), which was validated before; borrowed from them where that is possible. */
  decode(bytes: Buffer, start: number, end: number): Buffer {
    const parts: Buffer[] = [];
    for (let at = start; at < end && !this.#scanner.isDone; ) {
      const next = this.#scanner.next(bytes, at, end);
      if (next < 0) break;
      if (this.#scanner.span === ChunkSpan.DATA) parts.push(bytes.subarray(at, next));
      at = next;
    }
    return join(parts);
  }
}

/** The data as at most one chunk, and the end of the body behind it, with its trailers. */
export function frameChunk(data: readonly Buffer[], isEnd: boolean, trailers: Trailers | null = null): Buffer {
  const length = byteLength(data);
  const parts = length === 0 ? [] : [Buffer.from(`${length.toString(16)}\r\n`), ...data, LINE_END];
  if (isEnd) parts.push(trailers === null ? END : Buffer.from(`${LAST_CHUNK}${trailers.text()}\r\n`, 'latin1'));
  return join(parts);
}

export function join(parts: readonly Buffer[]): Buffer {
  return parts.length <= 1 ? (parts[0] ?? NO_BYTES) : Buffer.concat(parts);
}

function byteLength(parts: readonly Buffer[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}
