// What kind of program a TLS client is, by what it announces and in which order: JA3 and JA4, as published. Values that clients make
// up at random (GREASE, RFC 8701) are left out.
//
//   JA3   MD5 of  version,ciphers,extensions,groups,point formats   in decimal digits, each joined by "-", as they come
//   JA4   t13d1516h2_8daaf6152771_e5627efa2ab1
//         │││ │ │ │  │            └ extensions but names and protocols, sorted; then signature algorithms as they come
//         │││ │ │ │  └ ciphers, sorted; both the first 12 digits of the SHA-256 of four hexadecimal digits each
//         │││ │ │ └ first and last character of the first protocol, 00 for none
//         │││ │ └ extensions, 99 at most
//         │││ └ ciphers, 99 at most
//         ││└ d with a server name, i without
//         │└ the highest version
//         └ over TCP
//
// Source: github.com/salesforce/ja3; github.com/FoxIO-LLC/ja4, technical_details/JA4.md.

import { hash } from 'node:crypto';
import type { ClientAnnouncement } from './client-hello.ts';

const SERVER_NAME = 0;
const APPLICATION_PROTOCOLS = 16;
const NONE = '000000000000';
const MAX_COUNT = 99;
const VERSION_NAMES: Readonly<Record<number, string>> = {
  772: '13',
  771: '12',
  770: '11',
  769: '10',
  768: 's3',
  2: 's2',
};
const ALPHANUMERIC = /[0-9A-Za-z]/;

/** 32 hexadecimal digits. */
export function ja3Fingerprint({ version, ciphers, extensions, groups, pointFormats }: ClientAnnouncement): string {
  const lists = [ciphers, extensions, groups].map((codes) => codes.filter(isMeant).join('-'));
  const text = [version, ...lists, pointFormats.join('-')].join(',');
  return hash('md5', text);
}

/** 36 characters. */
export function ja4Fingerprint(client: ClientAnnouncement): string {
  const ciphers = client.ciphers.filter(isMeant);
  const extensions = client.extensions.filter(isMeant);
  const highest = Math.max(0, ...client.versions.filter(isMeant)) || client.version;
  const name = extensions.includes(SERVER_NAME) ? 'd' : 'i';
  const first = `t${VERSION_NAMES[highest] ?? '00'}${name}${count(ciphers)}${count(extensions)}${protocolOf(client)}`;
  const hashed = extensions.filter((type) => type !== SERVER_NAME && type !== APPLICATION_PROTOCOLS);
  const algorithms = client.signatureAlgorithms.filter(isMeant).map(hex);
  const listed = [sorted(hashed), algorithms.join(',')].filter((text) => text !== '').join('_');
  return `${first}_${digest(sorted(ciphers))}_${digest(listed)}`;
}

/** 0x0a0a, 0x1a1a, …, 0xfafa say nothing. */
function isMeant(code: number): boolean {
  return (code & 0x0f0f) !== 0x0a0a || code >>> 8 !== (code & 0xff);
}

function count(codes: readonly number[]): string {
  return String(Math.min(codes.length, MAX_COUNT)).padStart(2, '0');
}

function protocolOf({ applicationProtocols: [protocol] }: ClientAnnouncement): string {
  if (protocol === undefined) return '00';
  const [first, last] = [protocol.at(0)!, protocol.at(-1)!];
  if (ALPHANUMERIC.test(first) && ALPHANUMERIC.test(last)) return first + last;
  const digits = Buffer.from(protocol, 'latin1').toString('hex');
  return digits.at(0)! + digits.at(-1)!;
}

function hex(code: number): string {
  return code.toString(16).padStart(4, '0');
}

function sorted(codes: readonly number[]): string {
  return codes.map(hex).sort().join(',');
}

function digest(text: string): string {
  return text === '' ? NONE : hash('sha256', text).slice(0, NONE.length);
}
