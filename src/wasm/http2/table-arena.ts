// Memory of the dynamic tables: blocks of the sizes that settings ask for, at the end of the codec's memory, which
// grows for them. A block is given back when its connection ends, and serves the next one of its size.

import * as layout from '../../../assembly/layout/http2.ts';
import type { CodecMemory } from '../http1/memory.ts';

/** Largest table that weir keeps, whatever the settings allow: entries then have lengths of 16 bits. */
export const TABLE_LIMIT_BYTES = 65536;

const GROWTH_PAGES = 16;
const PAGE_BYTES = 65536;
const BLOCK_ALIGNMENT = 64;

export interface TableSizes {
  readonly capacity: number;
  /** Entries that fit at most, as a power of two. */
  readonly slots: number;
  readonly textBytes: number;
  readonly blockBytes: number;
}

export function tableSizes(capacity: number, encodes: boolean): TableSizes {
  const most = Math.floor(capacity / layout.ENTRY_OVERHEAD);
  const slots = 2 ** Math.ceil(Math.log2(Math.max(1, most)));
  const textBytes = Math.ceil(capacity * 1.25);
  const buckets = encodes ? layout.BUCKET_COUNT * layout.BUCKET_BYTES : 0;
  const bytes = layout.TABLE_HEADER_BYTES + slots * layout.ENTRY_BYTES + buckets + textBytes + layout.HTTP2_SLACK;
  return { capacity, slots, textBytes, blockBytes: Math.ceil(bytes / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT };
}

export class TableArena {
  readonly #memory: CodecMemory;
  readonly #free = new Map<number, number[]>();
  readonly #sizes = new Map<number, number>();
  #top: number = layout.TABLES;
  #end: number = layout.CODEC_PAGES * PAGE_BYTES;
  #usedBytes = 0;

  constructor(memory: CodecMemory) {
    this.#memory = memory;
  }

  /** Bytes of the blocks in use. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Address of a block, or 0 when the memory has no more room. */
  allocate(bytes: number): number {
    const address = this.#free.get(bytes)?.pop() ?? this.#takeTop(bytes);
    if (address === 0) return 0;
    this.#sizes.set(address, bytes);
    this.#usedBytes += bytes;
    return address;
  }

  release(address: number): void {
    const bytes = this.#sizes.get(address);
    if (bytes === undefined) throw new RangeError(`no table lies at ${address}`);
    this.#sizes.delete(address);
    this.#usedBytes -= bytes;
    const free = this.#free.get(bytes);
    if (free === undefined) this.#free.set(bytes, [address]);
    else free.push(address);
  }

  #takeTop(bytes: number): number {
    while (this.#top + bytes > this.#end) {
      if (!this.#memory.grow(GROWTH_PAGES)) return 0;
      this.#end += GROWTH_PAGES * PAGE_BYTES;
    }
    const address = this.#top;
    this.#top += bytes;
    return address;
  }
}
