// Memory of the dynamic tables: blocks for their headers and bodies, at the end of the codec's memory, which grows for
// them. A body grows with what its table holds, up to what settings ask for. A block that is given back serves the next
// one of its size.

import * as layout from '../../../assembly/layout/http2.ts';
import type { CodecMemory } from '../http1/memory.ts';

/** Largest table that weir keeps, whatever the settings allow: entries then have lengths of 16 bits. */
export const TABLE_LIMIT_BYTES = 65536;

const GROWTH_PAGES = 16;
const PAGE_BYTES = 65536;
const BLOCK_ALIGNMENT = 64;

/** What the first request of most clients fits into, and the first answer. */
const LEAST_SLOTS = 8;
const LEAST_TEXT_BYTES = 256;

export interface BodySizes {
  /** Entries that fit, a power of two. */
  readonly slots: number;
  readonly textBytes: number;
  readonly blockBytes: number;
}

/** Of the next body of a table that may hold `capacity` octets: for so many entries and bytes, with some room beyond. */
export function bodySizes(capacity: number, entries: number, bytes: number): BodySizes {
  const slots = powerOfTwo(Math.max(LEAST_SLOTS, Math.min(entries + 1, capacity / layout.ENTRY_OVERHEAD)));
  // In a full table bytes are moved less often when there are some to spare.
  const textBytes = Math.min(Math.ceil(capacity * 1.25), powerOfTwo(Math.max(LEAST_TEXT_BYTES, bytes + 1)));
  return { slots, textBytes, blockBytes: aligned(slots * layout.ENTRY_BYTES + textBytes + layout.HTTP2_SLACK) };
}

export function headerBytes(encodes: boolean): number {
  return aligned(layout.TABLE_HEADER_BYTES + (encodes ? layout.BUCKET_COUNT * layout.BUCKET_BYTES : 0));
}

function powerOfTwo(least: number): number {
  return 2 ** Math.ceil(Math.log2(least));
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT;
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
