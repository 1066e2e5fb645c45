// The header that tells the other end of a connection whose connection it carries on: PROXY protocol, version 1 in text or 2
// in binary. Written by the two kinds of thread; src/data-plane/listener/listener-filter/ reads it.
//
//   version 2:  signature (12) │ 2, command │ family, stream │ length (2) │ both addresses │ both ports │ TLVs

import { parseIp } from './ip-number.ts';

export interface ProxyHeaderSettings {
  readonly version: 1 | 2;
  /** Behind the addresses of version 2: type, length and value of each, in hexadecimal digits. */
  readonly tlvs: string;
  /** Which of those that go along with a connection are written before them; none when absent. */
  readonly passes?: TlvSelection;
}

/** Types of TLVs, 0 to 255. */
export type TlvSelection = 'all' | readonly number[];

/** IP literals; empty for a pipe. */
export interface ProxiedConnection {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** TLVs that go along with it, one behind the other; nothing for none. */
  readonly passedTlvs?: Buffer | null;
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
const TLV_HEAD_LENGTH = 3;
const NO_BYTES = Buffer.alloc(0);

/** Of all TLVs: their length and that of the longest addresses share 16 bits. */
export const MAX_TLV_BYTES = 0xffff - IPV6_ENDS_LENGTH;

/**
 * @param proxied null for a connection of this proxy's own, such as a health check.
 * @returns fresh memory, or memory that nobody writes to.
 */
export function proxyHeader(settings: ProxyHeaderSettings, proxied: ProxiedConnection | null): Buffer {
  const { version } = settings;
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
  const content = Buffer.concat([Buffer.alloc(length), ...tlvsFor(settings, proxied.passedTlvs ?? NO_BYTES)]);
  let at = 0;
  for (const { words } of [source, destination]) {
    const written = isIpv4 || words.length > 1 ? words : [...MAPPED_PREFIX, ...words];
    for (const word of written) at = content.writeUInt32BE(word >>> 0, at);
  }
  content.writeUInt16BE(remotePort, at);
  content.writeUInt16BE(localPort, at + 2);
  return binary(PROXY_COMMAND, isIpv4 ? TCP_OVER_IPV4 : TCP_OVER_IPV6, content);
}

/** In one piece each. What is added is said instead of what is passed of the same type, and goes first where there is no room for all. */
function tlvsFor({ tlvs, passes }: ProxyHeaderSettings, passed: Buffer): readonly Buffer[] {
  const added = Buffer.from(tlvs, 'hex');
  if (passes === undefined || passed.length === 0) return [added];
  const addedTypes = new Set<number>();
  readTlvs(added, 0, added.length, (type) => addedTypes.add(type));
  const kept: Buffer[] = [];
  let room = MAX_TLV_BYTES - added.length;
  readTlvs(passed, 0, passed.length, (type, value) => {
    if (!selects(passes, type) || addedTypes.has(type) || TLV_HEAD_LENGTH + value.length > room) return;
    kept.push(tlv(type, value));
    room -= TLV_HEAD_LENGTH + value.length;
  });
  return [...kept, added];
}

export function selects(selection: TlvSelection, type: number): boolean {
  return selection === 'all' || selection.includes(type);
}

/** @param value of at most MAX_TLV_BYTES with its head. @returns fresh memory: type (1), length (2), value. */
export function tlv(type: number, value: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([type, value.length >>> 8, value.length & 0xff]), value]);
}

/**
 * @param visit is given each TLV; its value is borrowed.
 * @returns false where their lengths do not fit what there is.
 */
export function readTlvs(
  bytes: Buffer,
  start: number,
  end: number,
  visit: (type: number, value: Buffer) => void,
): boolean {
  let at = start;
  while (at < end) {
    if (at + TLV_HEAD_LENGTH > end) return false;
    const valueAt = at + TLV_HEAD_LENGTH;
    const valueEnd = valueAt + bytes.readUInt16BE(at + 1);
    if (valueEnd > end) return false;
    visit(bytes[at]!, bytes.subarray(valueAt, valueEnd));
    at = valueEnd;
  }
  return true;
}

function binary(command: number, family: number, content: Buffer): Buffer {
  const fixed = Buffer.from([command, family, content.length >>> 8, content.length & 0xff]);
  return Buffer.concat([SIGNATURE, fixed, content]);
}
