// MessagePack as a Datadog agent reads it: the few kinds of values that spans are made of.

import { Buffer } from 'node:buffer';

export type Packed = string | number | bigint | readonly Packed[] | { readonly [key: string]: Packed };

/** Texts are written as UTF-8, whole numbers up to 2^53 as integers, a bigint as an unsigned number of 64 bits. */
export function pack(value: Packed): Buffer {
  const parts: Buffer[] = [];
  write(value, parts);
  return Buffer.concat(parts);
}

/** The beginning of a list, whose items follow. */
export function listHead(length: number): Buffer {
  return head(length, 0x90, 16, 0, 0xdc);
}

function write(value: Packed, parts: Buffer[]): void {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    parts.push(head(bytes.length, 0xa0, 32, 0xd9, 0xda), bytes);
  } else if (typeof value === 'bigint') {
    const bytes = Buffer.alloc(9, 0xcf);
    bytes.writeBigUInt64BE(value, 1);
    parts.push(bytes);
  } else if (typeof value === 'number') {
    parts.push(numberBytes(value));
  } else if (Array.isArray(value)) {
    const items = value as readonly Packed[];
    parts.push(listHead(items.length));
    for (const item of items) write(item, parts);
  } else {
    const entries = Object.entries(value as { readonly [key: string]: Packed });
    parts.push(head(entries.length, 0x80, 16, 0, 0xde));
    for (const [key, item] of entries) {
      write(key, parts);
      write(item, parts);
    }
  }
}

/**
 * @param small of lengths below `limit`, which stand in the same byte. @param one of lengths in one byte, or 0 where there is no
 * such kind. @param two of lengths in two bytes; that of four follows it.
 */
function head(length: number, small: number, limit: number, one: number, two: number): Buffer {
  if (length < limit) return Buffer.from([small | length]);
  if (one !== 0 && length < 0x100) return Buffer.from([one, length]);
  if (length < 0x1_0000) return Buffer.from([two, length >> 8, length & 0xff]);
  const bytes = Buffer.alloc(5, two + 1);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

function numberBytes(value: number): Buffer {
  const bytes = Buffer.alloc(9);
  if (!Number.isSafeInteger(value)) {
    bytes[0] = 0xcb;
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (value >= 0 && value < 0x80) return Buffer.from([value]);
  bytes[0] = 0xd3;
  bytes.writeBigInt64BE(BigInt(value), 1);
  return bytes;
}
