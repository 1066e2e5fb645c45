// The linear memory of a worker's codecs and the views over it. HTTP/2 lets it grow at its end for the tables of
// connections: then it is of the shared kind, though one thread alone has it, because growing detaches no view of that.
// Where nothing grows it is not: Node takes one and a half to three times as long to copy out of shared memory
// (docs/decisions/0048).

import { CODEC_MAXIMUM_PAGES, CODEC_PAGES } from '../../../assembly/layout/http2.ts';

export class CodecMemory {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Buffer;
  readonly u16: Uint16Array;
  readonly u32: Uint32Array;
  readonly f64: Float64Array;

  /** @param grows HTTP/2 works over it, too. */
  constructor(grows: boolean) {
    const maximum = grows ? CODEC_MAXIMUM_PAGES : CODEC_PAGES;
    this.memory = new WebAssembly.Memory({ initial: CODEC_PAGES, maximum, shared: grows });
    const { buffer } = this.memory;
    this.bytes = Buffer.from(buffer);
    this.u16 = new Uint16Array(buffer);
    this.u32 = new Uint32Array(buffer);
    this.f64 = new Float64Array(buffer);
  }

  /** The text of `length` bytes at an address; every byte becomes one character (latin1). */
  text(address: number, length: number): string {
    return length === 0 ? '' : this.bytes.toString('latin1', address, address + length);
  }
}
