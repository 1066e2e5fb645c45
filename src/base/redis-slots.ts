// How a cluster of Redis servers shares its keys out: each key has one of 16384 slots, each slot a server (the Redis cluster
// specification, "Key distribution model"). Main learns who has which slots, and says it in the metadata of members; workers read it
// there.

import { type JsonObject, jsonAt } from './json.ts';

export const REDIS_SLOTS = 16_384;
export const REDIS_METADATA = 'envoy.clusters.redis';
/** CRC-16/XMODEM. */
const POLYNOMIAL = 0x1021;
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL) & 0xffff;
  return crc;
});

/** What a server has: slots of its own, or a copy of what another has. */
export type RedisRole =
  | { readonly kind: 'primary'; readonly slots: readonly SlotRange[] }
  /** @param of address of the other one. */
  | { readonly kind: 'replica'; readonly of: string };

/** First and last. */
export type SlotRange = readonly [first: number, last: number];

/** What stands between the first `{` and the next `}`, if anything does; else the whole key. */
export function hashTag(key: Buffer): Buffer {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  return close <= open + 1 ? key : key.subarray(open + 1, close);
}

/** 0 to REDIS_SLOTS - 1. */
export function slotOf(key: Buffer): number {
  const tag = hashTag(key);
  let crc = 0;
  for (let at = 0; at < tag.length; at += 1) crc = ((crc << 8) ^ CRC_TABLE[((crc >> 8) ^ tag[at]!) & 0xff]!) & 0xffff;
  return crc % REDIS_SLOTS;
}

/** As members have it in their metadata. */
export function roleMetadata(role: RedisRole): Readonly<Record<string, JsonObject>> {
  const said =
    role.kind === 'replica' ? { replica_of: role.of } : { slots: role.slots.map((range) => range.join('-')) };
  return { [REDIS_METADATA]: said };
}

/** Null for members of no such cluster. */
export function roleOf(metadata: Readonly<Record<string, JsonObject>> | undefined): RedisRole | null {
  const said = metadata?.[REDIS_METADATA];
  const of = jsonAt(said, ['replica_of']);
  if (typeof of === 'string') return { kind: 'replica', of };
  const slots = jsonAt(said, ['slots']);
  if (!Array.isArray(slots)) return null;
  return { kind: 'primary', slots: slots.map((text) => String(text).split('-').map(Number) as unknown as SlotRange) };
}
