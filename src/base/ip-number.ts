// IP addresses as numbers, for everything that compares them with ranges. An IPv4 address that is written in IPv6
// (`::ffff:1.2.3.4`, as dual-stack sockets report it) is the IPv4 address: rules for one hold for the other.

import { isIPv4, isIPv6, SocketAddress } from 'node:net';

const IPV6_GROUPS = 8;
const MAPPED_PREFIX_WORD = 0xffff;
/** Bits in front of the IPv4 address in a mapped one. */
const MAPPED_PREFIX_LENGTH = 96;

export class IpNumber {
  /** 32-bit words in network order: one for IPv4, four for IPv6. */
  readonly words: readonly number[];

  constructor(words: readonly number[]) {
    this.words = words;
  }

  get isIpv4(): boolean {
    return this.words.length === 1;
  }

  /** Length in bits: 32 or 128. */
  get bitLength(): number {
    return this.words.length * 32;
  }

  /** @param index 0 is the most significant bit. */
  bit(index: number): 0 | 1 {
    return ((this.words[index >>> 5]! >>> (31 - (index & 31))) & 1) as 0 | 1;
  }

  get isLoopback(): boolean {
    const [first, second, third, fourth] = this.words;
    if (this.isIpv4) return first! >>> 24 === 127;
    return first === 0 && second === 0 && third === 0 && fourth === 1;
  }

  /** The literal of its first `length` bits, with zeros behind them. */
  masked(length: number): string {
    const words = this.words.map((word, index) => maskedWord(word, length - index * 32));
    if (this.isIpv4) return [24, 16, 8, 0].map((shift) => (words[0]! >>> shift) & 0xff).join('.');
    return canonicalIp(words.map((word) => `${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`).join(':'));
  }

  equals(other: IpNumber): boolean {
    return this.words.length === other.words.length && this.words.every((word, index) => word === other.words[index]);
  }
}

/** A block of addresses: those that share their first `length` bits with `ip`. */
export interface IpPrefix {
  readonly ip: IpNumber;
  readonly length: number;
}

/** @returns undefined for anything but an IP literal. A zone (`%eth0`) is left out: it says where, not who. */
export function parseIp(text: string): IpNumber | undefined {
  const words = parseIpWords(text);
  if (words === undefined) return undefined;
  return new IpNumber(isMapped(words) ? [words[3]!] : words);
}

/** @returns undefined for anything but an IP literal, and for a length beyond that of the address as written. */
export function parsePrefix(text: string, length: number): IpPrefix | undefined {
  const words = parseIpWords(text);
  if (words === undefined || length < 0 || length > words.length * 32) return undefined;
  if (isMapped(words) && length >= MAPPED_PREFIX_LENGTH) {
    return { ip: new IpNumber([words[3]!]), length: length - MAPPED_PREFIX_LENGTH };
  }
  return { ip: new IpNumber(words), length };
}

/** The words of an IP literal as it is written: four of an IPv4 address in IPv6, too. @returns undefined for anything else. */
export function parseIpWords(text: string): number[] | undefined {
  if (isIPv4(text)) return [ipv4Word(text)];
  if (!isIPv6(text)) return undefined;
  const zone = text.indexOf('%');
  return ipv6Words(zone === -1 ? text : text.slice(0, zone));
}

function isMapped(words: readonly number[]): boolean {
  return words.length === 4 && words[0] === 0 && words[1] === 0 && words[2] === MAPPED_PREFIX_WORD;
}

function ipv4Word(text: string): number {
  let word = 0;
  for (const octet of text.split('.')) word = word * 256 + Number(octet);
  return word;
}

/** @param text a valid literal. */
function ipv6Words(text: string): number[] {
  const gap = text.indexOf('::');
  const head = groupsOf(gap === -1 ? text : text.slice(0, gap));
  const tail = gap === -1 ? [] : groupsOf(text.slice(gap + 2));
  const zeros = new Array<number>(IPV6_GROUPS - head.length - tail.length).fill(0);
  const groups = [...head, ...zeros, ...tail];
  return [0, 2, 4, 6].map((index) => groups[index]! * 0x10000 + groups[index + 1]!);
}

function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const word = ipv4Word(group);
    return [word >>> 16, word & 0xffff];
  });
}

/** Equal for prefixes that hold the same addresses. */
export function prefixKey({ ip, length }: IpPrefix): string {
  const words = ip.words.map((word, index) => maskedWord(word, length - index * 32).toString(16));
  return `${words.join(':')}/${length}`;
}

/** The first `length` bits of a word; all of it from 32 on, none at 0 and below. */
function maskedWord(word: number, length: number): number {
  if (length <= 0) return 0;
  return length >= 32 ? word : word - (word % 2 ** (32 - length));
}

const MAPPED_IPV4 = '::ffff:';

/** The same with an IPv4 address in its own notation that is written in IPv6. For valid literals only. */
export function plainIp(literal: string): string {
  const canonical = canonicalIp(literal);
  const isMapped = canonical.startsWith(MAPPED_IPV4) && canonical.includes('.');
  return isMapped ? canonical.slice(MAPPED_IPV4.length) : canonical;
}

/** IPv6 in its shortest form, so that equal addresses are equal strings. For valid literals only. */
export function canonicalIp(literal: string): string {
  if (isIPv4(literal)) return literal;
  const zone = literal.indexOf('%');
  if (zone === -1) return new SocketAddress({ address: literal, family: 'ipv6' }).address;
  return new SocketAddress({ address: literal.slice(0, zone), family: 'ipv6' }).address + literal.slice(zone);
}
