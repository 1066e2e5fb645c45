// Version 2 of the PROXY header, binary:
//
//   0                                  12        13         14       16                         16 + length
//   | signature: \r\n\r\n\0\r\nQUIT\n  | ver cmd | fam proto | length | addresses, TLVs …        |
//
//   ver 2; cmd 0 LOCAL (the proxy's own connection: the socket's addresses hold), 1 PROXY
//   fam 0 unspecified, 1 IPv4, 2 IPv6, 3 unix; proto 0 unspecified, 1 stream, 2 datagram; either both or none is 0
//
// Families without addresses that mean something here count as unspecified, as the protocol asks.

import { canonicalIp } from '../../../base/ip-number.ts';
import type { RestoredAddresses } from '../../network/downstream-connection.ts';
import { plainAddress } from '../../network/peer-address.ts';
import { BROKEN, compareSignature, INCOMPLETE, type ProxyHeaderResult } from './proxy-header.ts';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const FIXED_LENGTH = 16;
const VERSION = 2;
const LOCAL = 0;
const PROXY = 1;
const UNSPECIFIED = 0;
const IPV4 = 1;
const IPV6 = 2;
const STREAM = 1;
const DATAGRAM = 2;

/** Least length of the addresses by family: none, two IPv4 or IPv6 addresses with ports, two unix paths. */
const ADDRESSES_LENGTH: readonly number[] = [0, 12, 36, 216];

export function parseProxyV2(bytes: Buffer, start: number, end: number): ProxyHeaderResult {
  const signature = compareSignature(bytes, start, end, SIGNATURE);
  if (signature !== 'equal') return signature;
  const at = start + SIGNATURE.length;
  if (at < end && !isKnownCommand(bytes[at]!)) return BROKEN;
  if (start + FIXED_LENGTH > end) return INCOMPLETE;
  const command = bytes[at]! & 0xf;
  const family = bytes[at + 1]! >>> 4;
  const protocol = bytes[at + 1]! & 0xf;
  const contentLength = bytes.readUInt16BE(at + 2);
  if (command === PROXY && !isValidBlock(family, protocol, contentLength)) return BROKEN;
  const length = FIXED_LENGTH + contentLength;
  if (start + length > end) return INCOMPLETE;
  const isTold = command === PROXY && protocol === STREAM;
  const addresses = isTold ? readAddresses(bytes, start + FIXED_LENGTH, family) : null;
  const tlvsAt = FIXED_LENGTH + (ADDRESSES_LENGTH[family] ?? 0);
  return command === PROXY && tlvsAt < length ? { length, addresses, tlvsAt } : { length, addresses };
}

function isKnownCommand(byte: number): boolean {
  const command = byte & 0xf;
  return byte >>> 4 === VERSION && (command === LOCAL || command === PROXY);
}

function isValidBlock(family: number, protocol: number, contentLength: number): boolean {
  const least = ADDRESSES_LENGTH[family];
  if (least === undefined || protocol > DATAGRAM || contentLength < least) return false;
  return (family === UNSPECIFIED) === (protocol === UNSPECIFIED);
}

function readAddresses(bytes: Buffer, at: number, family: number): RestoredAddresses | null {
  switch (family) {
    case IPV4:
      return {
        remoteAddress: bytes.subarray(at, at + 4).join('.'),
        localAddress: bytes.subarray(at + 4, at + 8).join('.'),
        remotePort: bytes.readUInt16BE(at + 8),
        localPort: bytes.readUInt16BE(at + 10),
      };
    case IPV6:
      return {
        remoteAddress: readIpv6(bytes, at),
        localAddress: readIpv6(bytes, at + 16),
        remotePort: bytes.readUInt16BE(at + 32),
        localPort: bytes.readUInt16BE(at + 34),
      };
    default:
      return null;
  }
}

function readIpv6(bytes: Buffer, at: number): string {
  const groups = [0, 2, 4, 6, 8, 10, 12, 14].map((offset) => bytes.readUInt16BE(at + offset).toString(16));
  return plainAddress(canonicalIp(groups.join(':')));
}
