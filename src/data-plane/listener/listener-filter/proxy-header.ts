// What a PROXY header says, in the terms that both versions share. Source: "The PROXY protocol", versions 1 and 2.

import type { RestoredAddresses } from '../../network/downstream-connection.ts';

/** The header is incomplete, and right so far. */
export const INCOMPLETE = 'incomplete';
/** The bytes do not begin a header of this version. */
export const ABSENT = 'absent';
/** The bytes begin a header of this version, which is broken. */
export const BROKEN = 'broken';

export interface ProxyHeader {
  /** Bytes of the header, with everything that belongs to it. */
  readonly length: number;
  /** Null when the sender does not say: the addresses of the socket hold. */
  readonly addresses: RestoredAddresses | null;
  /** Where TLVs begin, counted from the header's first byte; they end with it. Absent without any. */
  readonly tlvsAt?: number;
}

export type ProxyHeaderResult = ProxyHeader | typeof INCOMPLETE | typeof ABSENT | typeof BROKEN;

/** How the bytes begin: like the signature, like a part of it that goes on, or otherwise. */
export function compareSignature(
  bytes: Buffer,
  start: number,
  end: number,
  signature: Buffer,
): 'equal' | typeof INCOMPLETE | typeof ABSENT {
  const length = Math.min(signature.length, end - start);
  if (bytes.compare(signature, 0, length, start, start + length) !== 0) return ABSENT;
  return length === signature.length ? 'equal' : INCOMPLETE;
}
