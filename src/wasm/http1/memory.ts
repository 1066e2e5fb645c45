// The linear memory of a worker's codecs and the views over it. HTTP/2 lets it grow at its end for the tables of
// connections. Growing detaches all views: they are taken from here for each use, and nobody else may keep one, so what
// sockets read into and write from lies elsewhere (docs/decisions/0043).

import { CODEC_MAXIMUM_PAGES, CODEC_PAGES } from '../../../assembly/layout/http2.ts';

export class CodecMemory {
  /** What modules are instantiated over; `grow` alone makes it larger. */
  readonly memory = new WebAssembly.Memory({ initial: CODEC_PAGES, maximum: CODEC_MAXIMUM_PAGES });
  #bytes: Buffer;
  #u16: Uint16Array;
  #u32: Uint32Array;
  #f64: Float64Array;

  constructor() {
    const { buffer } = this.memory;
    this.#bytes = Buffer.from(buffer);
    this.#u16 = new Uint16Array(buffer);
    this.#u32 = new Uint32Array(buffer);
    this.#f64 = new Float64Array(buffer);
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  get u16(): Uint16Array {
    return this.#u16;
  }

  get u32(): Uint32Array {
    return this.#u32;
  }

  get f64(): Float64Array {
    return this.#f64;
  }

  /** @returns false when there is no room for so many pages more. */
  grow(pages: number): boolean {
    try {
      this.memory.grow(pages);
    } catch {
      return false;
    }
    const { buffer } = this.memory;
    this.#bytes = Buffer.from(buffer);
    this.#u16 = new Uint16Array(buffer);
    this.#u32 = new Uint32Array(buffer);
    this.#f64 = new Float64Array(buffer);
    return true;
  }

  /** The text of `length` bytes at an address; every byte becomes one character (latin1). */
  text(address: number, length: number): string {
    return length === 0 ? '' : this.#bytes.toString('latin1', address, address + length);
  }
}
