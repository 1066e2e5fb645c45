// The codec's linear memory and the views over it. Never grown, so the views stay valid for ever.

import { MEMORY_PAGES } from '../../../assembly/layout/http1.ts';

export class CodecMemory {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Buffer;
  readonly u16: Uint16Array;
  readonly u32: Uint32Array;
  readonly f64: Float64Array;

  constructor() {
    this.memory = new WebAssembly.Memory({ initial: MEMORY_PAGES, maximum: MEMORY_PAGES });
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
