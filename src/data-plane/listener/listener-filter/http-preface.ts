// How an HTTP client without TLS begins: with a request line, or with the preface of HTTP/2.
// Source: RFC 9112 sections 2.2 and 3, RFC 9113 section 3.4.

import { NEED_MORE } from './filter.ts';

export const HTTP_1_0 = 0;
export const HTTP_1_1 = 1;
export const HTTP_2 = 2;
export const NOT_HTTP = 3;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** Longest beginning in which a version is looked for. */
const MAX_LENGTH = 8192;
const VERSION = Buffer.from(' HTTP/1.');
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const DELETE = 127;
const ZERO = 48;
const ONE = 49;

/** By byte: what a method may consist of. */
const IS_TOKEN = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
  IS_TOKEN[character.charCodeAt(0)] = 1;
}

/** @returns one of the above, or NEED_MORE while they are all possible. */
export function httpVersionOf(bytes: Buffer, start: number, end: number): number {
  const shared = Math.min(end - start, PREFACE.length);
  if (bytes.compare(PREFACE, 0, shared, start, start + shared) === 0) {
    return shared === PREFACE.length ? HTTP_2 : NEED_MORE;
  }
  const limit = Math.min(end, start + MAX_LENGTH);
  const version = versionOfLine(bytes, start, limit);
  return version === NEED_MORE && limit === start + MAX_LENGTH ? NOT_HTTP : version;
}

function versionOfLine(bytes: Buffer, start: number, end: number): number {
  let at = start;
  // Some clients send an empty line behind a body.
  while (at < end && (bytes[at] === CARRIAGE_RETURN || bytes[at] === LINE_FEED)) at += 1;
  const method = at;
  while (at < end && IS_TOKEN[bytes[at]!] === 1) at += 1;
  if (at === end) return NEED_MORE;
  if (at === method || bytes[at] !== SPACE) return NOT_HTTP;
  const target = at + 1;
  for (at = target; at < end && bytes[at] !== LINE_FEED; at++) {
    const byte = bytes[at]!;
    if ((byte < SPACE && byte !== CARRIAGE_RETURN) || byte === DELETE) return NOT_HTTP;
  }
  if (at === end) return NEED_MORE;
  return versionBefore(bytes, target, bytes[at - 1] === CARRIAGE_RETURN ? at - 1 : at);
}

/** Of a line without its end. */
function versionBefore(bytes: Buffer, target: number, lineEnd: number): number {
  const from = lineEnd - VERSION.length - 1;
  if (from <= target || bytes.compare(VERSION, 0, VERSION.length, from, lineEnd - 1) !== 0) return NOT_HTTP;
  const minor = bytes[lineEnd - 1];
  if (minor === ONE) return HTTP_1_1;
  return minor === ZERO ? HTTP_1_0 : NOT_HTTP;
}
