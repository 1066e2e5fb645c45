// Shows filters what is in a body without touching how it is framed: the framed bytes travel on as they came.

import { ChunkScanner, ChunkSpan } from '../../wasm/http1.ts';
import type { Trailers } from './filter.ts';

const NO_BYTES = Buffer.alloc(0);

export interface Payload {
  readonly bytes: Buffer;
  /** Null when there are none, or not yet. */
  readonly trailers: Trailers | null;
}

export class PayloadReader {
  readonly #scanner: ChunkScanner | null;
  #trailerText = '';

  constructor(isChunked: boolean) {
    this.#scanner = isChunked ? new ChunkScanner() : null;
    this.#scanner?.reset();
  }

  /** @param framed the next bytes of the body, whose framing has been checked. */
  read(framed: Buffer): Payload {
    const scanner = this.#scanner;
    if (scanner === null) return { bytes: framed, trailers: null };
    const parts: Buffer[] = [];
    for (let at = 0; at < framed.length && !scanner.isDone; ) {
      const next = scanner.next(framed, at, framed.length);
      if (next < 0) break;
      if (scanner.span === ChunkSpan.DATA) parts.push(framed.subarray(at, next));
      else if (scanner.span === ChunkSpan.TRAILERS) this.#trailerText += framed.toString('latin1', at, next);
      at = next;
    }
    return { bytes: join(parts), trailers: scanner.isDone ? parseTrailers(this.#trailerText) : null };
  }
}

export function join(parts: readonly Buffer[]): Buffer {
  return parts.length <= 1 ? (parts[0] ?? NO_BYTES) : Buffer.concat(parts);
}

function parseTrailers(text: string): Trailers | null {
  const lines = text.split('\r\n').filter((line) => line !== '');
  if (lines.length === 0) return null;
  return lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
}
