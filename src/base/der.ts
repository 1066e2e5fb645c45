// Reads DER (ITU-T X.690), as far as what OpenSSL and certificates say needs it: tags of one byte, lengths below 4 GiB.

/** Places in the bytes that it was read from. */
export interface DerElement {
  readonly tag: number;
  /** Of its content. */
  readonly start: number;
  /** Behind its content, which is where the next one begins. */
  readonly end: number;
}

/** More bytes of a length than these are no length of ours. */
const MAX_LENGTH_BYTES = 4;
const LONG_FORM = 0x80;

/** @param limit where what it lies in ends. @returns null where none begins, or it is longer than that. */
export function derElementAt(bytes: Buffer, at: number, limit = bytes.length): DerElement | null {
  if (at + 2 > limit) return null;
  let start = at + 2;
  let length = bytes[at + 1]!;
  if (length >= LONG_FORM) {
    const lengthBytes = length - LONG_FORM;
    if (lengthBytes === 0 || lengthBytes > MAX_LENGTH_BYTES || start + lengthBytes > limit) return null;
    length = bytes.readUIntBE(start, lengthBytes);
    start += lengthBytes;
  }
  return start + length > limit ? null : { tag: bytes[at]!, start, end: start + length };
}
