// What the first bytes of a connection that is to be secured are good for. OpenSSL is asked only when it can answer: what waits for
// the rest of a first record, and what has never been TLS, costs a look at five bytes.

/** Of a record (RFC 8446 section 5.1). */
const PREFIX_BYTES = 5;
const HANDSHAKE = 22;
const MAJOR_VERSION = 3;
/** What OpenSSL still takes as a ClientHello: the form of SSL 2, which the oldest clients begin with. */
const SSL2_LENGTH_FLAG = 0x80;
const SSL2_CLIENT_HELLO = 1;
/** A record of this version gets an alert; others of a foreign one get nothing. */
const SSL2_VERSION = 2;
/** Longer ones are refused by their head (RFC 5246 section 6.2.3). */
const MAX_RECORD_BYTES = 2 ** 14 + 2048;

const HTTP_METHODS = ['GET ', 'HEAD ', 'POST ', 'PUT ', 'DELETE ', 'OPTIONS ', 'PATCH ', 'TRACE '];
const PROXY_METHOD = 'CONNECT ';

/** `whole` is for OpenSSL, whatever it may think of it; the others are its names for what has never been TLS. */
export type FirstRecord =
  | 'incomplete'
  | 'whole'
  | 'ERR_SSL_HTTP_REQUEST'
  | 'ERR_SSL_HTTPS_PROXY_REQUEST'
  | 'ERR_SSL_WRONG_VERSION_NUMBER';

/** OpenSSL's words for them. */
export const FIRST_RECORD_FAULTS: Readonly<Record<Exclude<FirstRecord, 'incomplete' | 'whole'>, string>> = {
  ERR_SSL_HTTP_REQUEST: 'http request',
  ERR_SSL_HTTPS_PROXY_REQUEST: 'https proxy request',
  ERR_SSL_WRONG_VERSION_NUMBER: 'wrong version number',
};

/** @param bytes all that has come so far. */
export function firstRecordOf(bytes: Buffer): FirstRecord {
  if (bytes.length < PREFIX_BYTES) return 'incomplete';
  if ((bytes[0]! & SSL2_LENGTH_FLAG) !== 0 && bytes[2] === SSL2_CLIENT_HELLO) return 'whole';
  if (bytes.readUInt16BE(1) === SSL2_VERSION) return 'whole';
  if (bytes[1] !== MAJOR_VERSION) return faultOf(bytes);
  const length = bytes.readUInt16BE(3);
  if (bytes[0] !== HANDSHAKE || length > MAX_RECORD_BYTES) return 'whole';
  return bytes.length >= PREFIX_BYTES + length ? 'whole' : 'incomplete';
}

function faultOf(bytes: Buffer): FirstRecord {
  const text = bytes.toString('latin1', 0, PROXY_METHOD.length);
  const begins = (method: string): boolean => method.startsWith(text) || text.startsWith(method);
  if (begins(PROXY_METHOD)) return 'ERR_SSL_HTTPS_PROXY_REQUEST';
  return HTTP_METHODS.some(begins) ? 'ERR_SSL_HTTP_REQUEST' : 'ERR_SSL_WRONG_VERSION_NUMBER';
}
