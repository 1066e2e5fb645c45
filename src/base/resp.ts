// The protocol of Redis (RESP 2), in both directions: where messages end, what requests say, how answers are written, and what those
// of servers mean that a proxy looks at.
// Strict and bounded: what is not exactly a message is an error, which ends its connection.

const CR = 13;
const LF = 10;
const DOLLAR = 36;
const PLUS = 43;
const MINUS = 45;
const ASTERISK = 42;
const COLON = 58;
const DIGIT_0 = 48;
const DIGIT_9 = 57;

/** Of a simple string, an error or a number. */
const MAX_LINE_BYTES = 64 * 1024;
/** Arrays in arrays. */
const MAX_DEPTH = 16;
const MAX_ITEMS = 1024 * 1024;
const MAX_DIGITS = 19;
const LEAST_CAPACITY = 4096;
const MOST_KEPT_BYTES = 64 * 1024;
const NO_BYTES = Buffer.alloc(0);

/** What has come is no message, or a larger one than is taken. */
export class RespError extends Error {}

/** Cuts what comes into messages. */
export class RespReader {
  readonly #maxBytes: () => number;
  #buffer = NO_BYTES;
  /** Of what is buffered. */
  #start = 0;
  #end = 0;
  /** How far it has been looked at; behind the start of a message. */
  #at = 0;
  /** Items that arrays of the message at hand lack, outermost first. */
  readonly #missing: number[] = [];

  /** @param maxBytes of one message, asked while it comes. */
  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of a message that is not complete. */
  get bufferedBytes(): number {
    return this.#end - this.#start;
  }

  /** @param bytes borrowed until return. */
  push(bytes: Buffer): void {
    if (this.#start === this.#end) {
      this.#at -= this.#start;
      this.#start = 0;
      this.#end = 0;
      // One large message is no reason to keep its memory.
      if (this.#buffer.length > MOST_KEPT_BYTES) this.#buffer = NO_BYTES;
    }
    if (this.#end + bytes.length > this.#buffer.length) this.#grow(bytes.length);
    bytes.copy(this.#buffer, this.#end);
    this.#end += bytes.length;
  }

  /**
   * @returns the next message, borrowed until the next push; null when it is not complete.
   * @throws RespError
   */
  next(): Buffer | null {
    while (this.#at < this.#end) {
      const after = this.#value();
      if (after === -1) break;
      this.#at = after;
      if (!this.#countDown()) continue;
      const message = this.#buffer.subarray(this.#start, this.#at);
      this.#start = this.#at;
      return message;
    }
    const maxBytes = this.#maxBytes();
    if (this.bufferedBytes > maxBytes) throw new RespError(`a message of more than ${maxBytes} bytes`);
    return null;
  }

  /** @returns where the value ends, or the head of an array; -1 when that has not come. */
  #value(): number {
    const buffer = this.#buffer;
    const kind = buffer[this.#at];
    if (kind !== DOLLAR && kind !== ASTERISK && kind !== PLUS && kind !== MINUS && kind !== COLON) {
      throw new RespError('a message of no known type');
    }
    const lineEnd = this.#lineEnd();
    if (lineEnd === -1) return -1;
    if (kind === COLON) numberIn(buffer, this.#at + 1, lineEnd - 2, true);
    if (kind === DOLLAR) return this.#bulk(lineEnd);
    if (kind === ASTERISK) {
      const items = numberIn(buffer, this.#at + 1, lineEnd - 2, true);
      if (items < -1 || items > MAX_ITEMS) throw new RespError(`an array of ${items} items`);
      if (items > 0) {
        if (this.#missing.length === MAX_DEPTH) throw new RespError(`arrays deeper than ${MAX_DEPTH}`);
        // The head itself is counted down like a value, once it is behind.
        this.#missing.push(items + 1);
      }
    }
    return lineEnd;
  }

  #bulk(lineEnd: number): number {
    const length = numberIn(this.#buffer, this.#at + 1, lineEnd - 2, true);
    if (length === -1) return lineEnd;
    if (length < -1 || length > this.#maxBytes()) throw new RespError(`a string of ${length} bytes`);
    const after = lineEnd + length + 2;
    if (after > this.#end) return -1;
    if (this.#buffer[after - 2] !== CR || this.#buffer[after - 1] !== LF)
      throw new RespError('a string without its end');
    return after;
  }

  /** @returns where the line at hand ends, behind its CRLF; -1 when that has not come. */
  #lineEnd(): number {
    const end = this.#buffer.indexOf(LF, this.#at);
    const isThere = end !== -1 && end < this.#end;
    if ((isThere ? end : this.#end) - this.#at > MAX_LINE_BYTES) throw new RespError('a line that is too long');
    if (!isThere) return -1;
    if (this.#buffer[end - 1] !== CR) throw new RespError('a line without its end');
    return end + 1;
  }

  /** A value is behind. @returns whether the whole message is. */
  #countDown(): boolean {
    const missing = this.#missing;
    while (missing.length > 0) {
      const left = missing[missing.length - 1]! - 1;
      missing[missing.length - 1] = left;
      if (left > 0) return false;
      // A whole array is a value of the one around it.
      missing.pop();
    }
    return true;
  }

  #grow(by: number): void {
    const held = this.#end - this.#start;
    const needed = held + by;
    let capacity = Math.max(LEAST_CAPACITY, this.#buffer.length);
    while (capacity < needed) capacity *= 2;
    const grown = Buffer.allocUnsafeSlow(capacity);
    this.#buffer.copy(grown, 0, this.#start, this.#end);
    this.#buffer = grown;
    this.#at -= this.#start;
    this.#start = 0;
    this.#end = held;
  }
}

function numberIn(bytes: Buffer, start: number, end: number, isSigned: boolean): number {
  const isNegative = isSigned && bytes[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  if (end <= first || end - first > MAX_DIGITS) throw new RespError('a number that is none');
  let value = 0;
  for (let at = first; at < end; at += 1) {
    const digit = bytes[at]!;
    if (digit < DIGIT_0 || digit > DIGIT_9) throw new RespError('a number that is none');
    value = value * 10 + (digit - DIGIT_0);
  }
  return isNegative ? -value : value;
}

/**
 * The arguments of a request, an array of strings.
 * @param message whole; the arguments are parts of it. @throws RespError for anything else.
 */
export function requestArguments(message: Buffer): Buffer[] {
  if (message[0] !== ASTERISK) throw new RespError('a request that is no array');
  let at = message.indexOf(LF) + 1;
  const given: Buffer[] = [];
  while (at < message.length) {
    if (message[at] !== DOLLAR) throw new RespError('a request with something else than strings');
    const lineEnd = message.indexOf(LF, at) + 1;
    const length = numberIn(message, at + 1, lineEnd - 2, true);
    if (length < 0) throw new RespError('a request with something else than strings');
    given.push(message.subarray(lineEnd, lineEnd + length));
    at = lineEnd + length + 2;
  }
  if (given.length === 0) throw new RespError('an empty request');
  return given;
}

/** The parts of an answer that is an array; null for anything else. @param message whole. */
export function arrayItems(message: Buffer): Buffer[] | null {
  if (message[0] !== ASTERISK) return null;
  const reader = new RespReader(() => Number.POSITIVE_INFINITY);
  reader.push(message.subarray(message.indexOf(LF) + 1));
  const items: Buffer[] = [];
  for (let item = reader.next(); item !== null; item = reader.next()) items.push(item);
  return items;
}

/** The number that an answer is; undefined for anything else. */
export function integerOf(message: Buffer): number | undefined {
  return message[0] === COLON ? numberIn(message, 1, message.length - 2, true) : undefined;
}

/** The text that an answer is; undefined for anything else, and nothing for none. */
export function stringOf(message: Buffer): string | undefined {
  if (message[0] === PLUS) return lineOf(message).slice(1);
  if (message[0] !== DOLLAR) return undefined;
  const start = message.indexOf(LF) + 1;
  return message.subarray(start, Math.max(start, message.length - 2)).toString('latin1');
}

export function isErrorAnswer(message: Buffer): boolean {
  return message[0] === MINUS;
}

export function simple(text: string): Buffer {
  return Buffer.from(`+${text}\r\n`);
}

export function failure(text: string): Buffer {
  return Buffer.from(`-${text}\r\n`);
}

export function integer(value: number): Buffer {
  return Buffer.from(`:${value}\r\n`);
}

/** An array whose items are written already. */
export function arrayOf(items: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(`*${items.length}\r\n`), ...items]);
}

export function request(given: readonly (Buffer | string)[]): Buffer {
  return arrayOf(given.map(bulk));
}

export function bulk(value: Buffer | string): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** The first line of an answer: all of it, unless that is a string or an array. */
export function lineOf(message: Buffer): string {
  return message.subarray(0, message.indexOf(LF) - 1).toString('latin1');
}

/** @param username empty for the default user. */
export function requestToAuth({
  username,
  password,
}: {
  readonly username: string;
  readonly password: string;
}): Buffer {
  return request(username === '' ? ['AUTH', password] : ['AUTH', username, password]);
}

/** The answer to an AUTH keeps out who has sent it; a server that has no password lets everybody in. */
export function isRefusal(message: Buffer): boolean {
  return isErrorAnswer(message) && !/no password is set|without any password/.test(lineOf(message));
}

/** Where a key is to be asked for instead, as an answer of a cluster's member says. */
export interface Redirection {
  /** For this command only, and the host asks to be told so. */
  readonly isAsk: boolean;
  /** Empty: that of the host that says so. */
  readonly host: string;
  readonly port: number;
}

const REDIRECTION = /^-(MOVED|ASK) \d{1,5} (\S{0,255}):(\d{1,5})$/;

/** @returns null for any other answer. */
export function redirectionOf(message: Buffer): Redirection | null {
  if (message[0] !== MINUS) return null;
  const found = REDIRECTION.exec(lineOf(message));
  if (found === null) return null;
  const [, kind, host, port] = found;
  return { isAsk: kind === 'ASK', host: host!, port: Number(port) };
}
