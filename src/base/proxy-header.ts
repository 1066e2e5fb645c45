// The header that tells the other end of a connection whose connection it carries on: PROXY protocol, version 1 in text or 2
// in binary. Written by the two kinds of thread; src/data-plane/listener/listener-filter/ reads it.
//
//   version 2:  signature (12) │ 2, command │ family, stream │ length (2) │ both addresses │ both ports │ TLVs

import { parseIp } from './ip-number.ts';

export interface ProxyHeaderSettings {
  readonly version: 1 | 2;
  /** Behind the addresses of version 2: type, length and value of each, in hexadecimal digits. */
  readonly tlvs: string;
}

/** IP literals; empty for a pipe. */
export interface ProxiedConnection {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const UNKNOWN = Buffer.from('PROXY UNKNOWN\r\n');
const LOCAL_COMMAND = 0x20;
const PROXY_COMMAND = 0x21;
const UNSPECIFIED = 0x00;
const TCP_OVER_IPV4 = 0x11;
const TCP_OVER_IPV6 = 0x21;
const IPV4_ENDS_LENGTH = 12;
const IPV6_ENDS_LENGTH = 36;
const MAPPED_PREFIX = [0, 0, 0xffff];

/** Of all TLVs: their length and that of the longest addresses share 16 bits. */
export const MAX_TLV_BYTES = 0xffff - IPV6_ENDS_LENGTH;

/**
 * @param proxied null for a connection of this proxy's own, such as a health check.
 * @returns fresh memory, or memory that nobody writes to.
 */
export function proxyHeader({ version, tlvs }: ProxyHeaderSettings, proxied: ProxiedConnection | null): Buffer {
  const source = proxied && parseIp(proxied.remoteAddress);
  const destination = proxied && parseIp(proxied.localAddress);
  if (!proxied || !source || !destination) {
    return version === 1 ? UNKNOWN : binary(LOCAL_COMMAND, UNSPECIFIED, Buffer.alloc(0));
  }
  const { remotePort, localPort } = proxied;
  // Families cannot be mixed: an IPv4 address has a form among those of IPv6.
  const isIpv4 = source.isIpv4 && destination.isIpv4;
  if (version === 1) {
    const text = (ip: string, isMapped: boolean): string => (isMapped && !isIpv4 ? `::ffff:${ip}` : ip);
    const ends = `${text(proxied.remoteAddress, source.isIpv4)} ${text(proxied.localAddress, destination.isIpv4)}`;
    return Buffer.from(`PROXY ${isIpv4 ? 'TCP4' : 'TCP6'} ${ends} ${remotePort} ${localPort}\r\n`);
  }
  const length = isIpv4 ? IPV4_ENDS_LENGTH : IPV6_ENDS_LENGTH;
  const content = Buffer.concat([Buffer.alloc(length), Buffer.from(tlvs, 'hex')]);
  let at = 0;
  for (const { words } of [source, destination]) {
    const written = isIpv4 || words.length > 1 ? words : [...MAPPED_PREFIX, ...words];
    for (const word of written) at = content.writeUInt32BE(word >>> 0, at);
  }
  content.writeUInt16BE(remotePort, at);
  content.writeUInt16BE(localPort, at + 2);
  return binary(PROXY_COMMAND, isIpv4 ? TCP_OVER_IPV4 : TCP_OVER_IPV6, content);
}

function binary(command: number, family: number, content: Buffer): Buffer {
  const fixed = Buffer.from([command, family, content.length >>> 8, content.length & 0xff]);
  return Buffer.concat([SIGNATURE, fixed, content]);
}
