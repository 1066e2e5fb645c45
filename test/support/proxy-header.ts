// PROXY headers of version 2, put together from their parts.

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

/** @param content addresses and TLVs. */
export function proxyV2(versionAndCommand: number, familyAndProtocol: number, content: Buffer): Buffer {
  const fixed = Buffer.from([versionAndCommand, familyAndProtocol, content.length >>> 8, content.length & 0xff]);
  return Buffer.concat([SIGNATURE, fixed, content]);
}
