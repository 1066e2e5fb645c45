// The first message of a TLS client, as far as a filter chain is chosen by it: server name and application protocols. Who chooses
// among certificates is told what the client can verify, too, and whoever recognizes clients all that it announces.
//
//   record     22 │ 3 x │ length  │ a piece of the message, as many records as it takes
//   message    1 │ length (3 bytes) │ version │ random (32) │ session │ ciphers │ compressions │ extensions
//
// One reader serves a worker: what it has found is good until the next reading. Until the message is whole, only the heads
// of its records are looked at, so that a client that sends byte by byte does not have it read again each time.
// Source: RFC 8446 sections 4.1.2, 4.2 and 5.1; RFC 6066 section 3; RFC 7301 section 3.1.

/** The message goes on behind what has come. */
export const INCOMPLETE = 0;
export const CLIENT_HELLO = 1;
/** The bytes do not begin as TLS does. */
export const NOT_TLS = 2;
/** They begin as TLS does, but are no message that a server could understand. */
export const MALFORMED = 3;
/** The message is announced to be longer than the limit, or comes in more records than anybody needs. */
export const TOO_LARGE = 4;

const HANDSHAKE_RECORD = 22;
const MAJOR_VERSION = 3;
const RECORD_HEAD_LENGTH = 5;
const MAX_RECORD_LENGTH = 1 << 14;
/** Of one message: what has come is walked over with each arrival, and records of one byte would make that dear. */
const MAX_RECORDS = 64;
const CLIENT_HELLO_MESSAGE = 1;
const MESSAGE_HEAD_LENGTH = 4;
const VERSION_AND_RANDOM_LENGTH = 34;
const MAX_SESSION_LENGTH = 32;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const MAX_HOST_NAME_LENGTH = 255;
const STATUS_REQUEST = 5;
const SUPPORTED_GROUPS = 10;
const POINT_FORMATS = 11;
const SIGNATURE_ALGORITHMS = 13;
const APPLICATION_PROTOCOLS = 16;
const SUPPORTED_VERSIONS = 43;
const FIRST_VISIBLE = 0x21;
const LAST_VISIBLE = 0x7e;

const NO_PROTOCOLS: readonly string[] = [];
const NO_BYTES = Buffer.alloc(0);

/** What a client offers: codes of the registries of TLS, as far as they are well formed. */
export interface ClientOffers {
  /** The one that those before TLS 1.3 go by. */
  readonly version: number;
  readonly ciphers: readonly number[];
  readonly groups: readonly number[];
  readonly signatureAlgorithms: readonly number[];
  /** Empty before TLS 1.3. */
  readonly versions: readonly number[];
  readonly pointFormats: readonly number[];
  /** Types of all extensions, in the order of the client. */
  readonly extensions: readonly number[];
  /** It wants an OCSP response with the certificate. */
  readonly asksForStatus: boolean;
}

/** All that a client says of itself. */
export interface ClientAnnouncement extends ClientOffers {
  readonly applicationProtocols: readonly string[];
}

const NO_CODES: readonly number[] = [];
const NO_OFFERS: ClientOffers = {
  version: 0,
  ciphers: NO_CODES,
  groups: NO_CODES,
  signatureAlgorithms: NO_CODES,
  versions: NO_CODES,
  pointFormats: NO_CODES,
  extensions: NO_CODES,
  asksForStatus: false,
};

export class ClientHelloReader {
  /** In lower case; empty without one. Of visible ASCII characters only: it goes to logs. */
  serverName = '';
  /** In the order of the client. */
  applicationProtocols: readonly string[] = NO_PROTOCOLS;
  /** Bytes of the records that hold the message, or that have been looked at in vain. */
  length = 0;
  /** Of readers that look at them. */
  offers: ClientOffers = NO_OFFERS;
  readonly #seesOffers: boolean;

  /** What is read now: a message, its reading position, and the end of what may be read. */
  #bytes: Buffer = NO_BYTES;
  #at = 0;
  #end = 0;

  /** @param seesOffers also looks at `offers`. */
  constructor(seesOffers = false) {
    this.#seesOffers = seesOffers;
  }

  /**
   * @param bytes all that has come, from `start` to `end`; borrowed until return.
   * @param maxLength of the records that hold the message.
   */
  read(bytes: Buffer, start: number, end: number, maxLength: number): number {
    this.serverName = '';
    this.applicationProtocols = NO_PROTOCOLS;
    this.offers = NO_OFFERS;
    this.length = Math.min(end - start, RECORD_HEAD_LENGTH);
    if (bytes[start] !== HANDSHAKE_RECORD) return NOT_TLS;
    if (end - start > 1 && bytes[start + 1] !== MAJOR_VERSION) return NOT_TLS;
    const state = this.#findMessage(bytes, start, end, maxLength);
    if (state !== CLIENT_HELLO) return state;
    const isRead = this.#readMessage();
    this.#bytes = NO_BYTES;
    return isRead ? CLIENT_HELLO : MALFORMED;
  }

  /** Leaves what is behind the head of the message to be read. */
  #findMessage(bytes: Buffer, start: number, end: number, maxLength: number): number {
    // Of the message, in the records that have been walked over.
    let found = 0;
    let needed = MESSAGE_HEAD_LENGTH;
    let at = start;
    for (let records = 0; found < needed; records++) {
      if (records === MAX_RECORDS) return TOO_LARGE;
      if (at - start + RECORD_HEAD_LENGTH + needed - found > maxLength) return TOO_LARGE;
      if (end - at < RECORD_HEAD_LENGTH) return needMore(bytes, at, end);
      const length = bytes.readUInt16BE(at + 3);
      if (bytes[at] !== HANDSHAKE_RECORD || bytes[at + 1] !== MAJOR_VERSION) return MALFORMED;
      if (length === 0 || length > MAX_RECORD_LENGTH) return MALFORMED;
      at += RECORD_HEAD_LENGTH;
      const first = found;
      found += length;
      for (let index = first; index < Math.min(found, MESSAGE_HEAD_LENGTH); index++) {
        const place = at + index - first;
        if (place >= end) return INCOMPLETE;
        if (index === 0 && bytes[place] !== CLIENT_HELLO_MESSAGE) return MALFORMED;
        if (index > 0) needed += bytes[place]! << (8 * (MESSAGE_HEAD_LENGTH - 1 - index));
      }
      at += length;
    }
    const messageEnd = at - (found - needed);
    if (messageEnd - start > maxLength) return TOO_LARGE;
    if (messageEnd > end) return INCOMPLETE;
    this.length = messageEnd - start;
    this.#bytes = bytes;
    this.#at = start + RECORD_HEAD_LENGTH + MESSAGE_HEAD_LENGTH;
    this.#end = messageEnd;
    if (bytes.readUInt16BE(start + 3) < needed) this.#join(bytes, start, needed);
    return CLIENT_HELLO;
  }

  /** A message of several records, in one piece. All of it has come. */
  #join(bytes: Buffer, start: number, needed: number): void {
    const message = Buffer.allocUnsafe(needed);
    let found = 0;
    let at = start;
    while (found < needed) {
      const length = Math.min(bytes.readUInt16BE(at + 3), needed - found);
      at += RECORD_HEAD_LENGTH;
      bytes.copy(message, found, at, at + length);
      found += length;
      at += length;
    }
    this.#bytes = message;
    this.#at = MESSAGE_HEAD_LENGTH;
    this.#end = needed;
  }

  /** @returns false for a message that is not well formed. */
  #readMessage(): boolean {
    const versionAt = this.#at;
    if (!this.#skip(VERSION_AND_RANDOM_LENGTH)) return false;
    const session = this.#number(1);
    if (session < 0 || session > MAX_SESSION_LENGTH || !this.#skip(session)) return false;
    const ciphers = this.#number(2);
    const ciphersAt = this.#at;
    if (ciphers < 2 || ciphers % 2 !== 0 || !this.#skip(ciphers)) return false;
    if (this.#seesOffers) {
      const version = this.#bytes.readUInt16BE(versionAt);
      this.offers = { ...NO_OFFERS, version, ciphers: this.#codes(ciphersAt, this.#at) };
    }
    const compressions = this.#number(1);
    if (compressions < 1 || !this.#skip(compressions)) return false;
    // Clients before TLS 1.3 may send none.
    if (this.#at === this.#end) return true;
    return this.#number(2) === this.#end - this.#at && this.#readExtensions();
  }

  #readExtensions(): boolean {
    let hasName = false;
    let hasProtocols = false;
    const types: number[] = [];
    const end = this.#end;
    while (this.#at < end) {
      const type = this.#number(2);
      const length = this.#number(2);
      if (length < 0 || length > end - this.#at) return false;
      const next = this.#at + length;
      this.#end = next;
      types.push(type);
      if (type === SERVER_NAME) {
        // Of two, another reader might take the other one.
        if (hasName || !this.#readServerName()) return false;
        hasName = true;
      } else if (type === APPLICATION_PROTOCOLS) {
        if (hasProtocols || !this.#readProtocols()) return false;
        hasProtocols = true;
      } else if (this.#seesOffers) this.#readOffer(type);
      this.#end = end;
      this.#at = next;
    }
    if (this.#seesOffers) this.offers = { ...this.offers, extensions: types };
    return true;
  }

  #readOffer(type: number): void {
    if (type === STATUS_REQUEST) this.offers = { ...this.offers, asksForStatus: true };
    else if (type === SUPPORTED_GROUPS) this.offers = { ...this.offers, groups: this.#list(2) };
    else if (type === POINT_FORMATS) this.offers = { ...this.offers, pointFormats: this.#formats() };
    else if (type === SIGNATURE_ALGORITHMS) this.offers = { ...this.offers, signatureAlgorithms: this.#list(2) };
    else if (type === SUPPORTED_VERSIONS) this.offers = { ...this.offers, versions: this.#list(1) };
  }

  /** Codes behind their length; none where that is wrong, of which OpenSSL will tell. */
  #list(lengthSize: 1 | 2): readonly number[] {
    const length = this.#number(lengthSize);
    return length === this.#end - this.#at && length % 2 === 0 ? this.#codes(this.#at, this.#end) : NO_CODES;
  }

  /** As #list, of one byte each. */
  #formats(): readonly number[] {
    return this.#number(1) === this.#end - this.#at ? [...this.#bytes.subarray(this.#at, this.#end)] : NO_CODES;
  }

  #codes(from: number, to: number): readonly number[] {
    return Array.from({ length: (to - from) / 2 }, (_, index) => this.#bytes.readUInt16BE(from + 2 * index));
  }

  /** A list of one host name: no other kind of name has ever been defined. */
  #readServerName(): boolean {
    if (this.#number(2) !== this.#end - this.#at || this.#number(1) !== HOST_NAME) return false;
    const length = this.#number(2);
    if (length < 1 || length > MAX_HOST_NAME_LENGTH || length !== this.#end - this.#at) return false;
    for (let place = this.#at; place < this.#end; place++) {
      const character = this.#bytes[place]!;
      if (character < FIRST_VISIBLE || character > LAST_VISIBLE) return false;
    }
    this.serverName = this.#bytes.toString('latin1', this.#at, this.#end).toLowerCase();
    return true;
  }

  #readProtocols(): boolean {
    if (this.#number(2) !== this.#end - this.#at || this.#at === this.#end) return false;
    const protocols: string[] = [];
    while (this.#at < this.#end) {
      const length = this.#number(1);
      const from = this.#at;
      if (length === 0 || !this.#skip(length)) return false;
      protocols.push(this.#bytes.toString('latin1', from, this.#at));
    }
    this.applicationProtocols = protocols;
    return true;
  }

  /** The next number, of one or two bytes; -1 behind the end, where nothing is read any more. */
  #number(size: 1 | 2): number {
    const at = this.#at;
    if (!this.#skip(size)) return -1;
    return size === 1 ? this.#bytes[at]! : this.#bytes.readUInt16BE(at);
  }

  #skip(length: number): boolean {
    if (length > this.#end - this.#at) return false;
    this.#at += length;
    return true;
  }
}

/** Looks at the part of a record's head that has come: nobody waits for the rest of what cannot become one. */
function needMore(bytes: Buffer, at: number, end: number): number {
  if (at < end && bytes[at] !== HANDSHAKE_RECORD) return MALFORMED;
  if (at + 1 < end && bytes[at + 1] !== MAJOR_VERSION) return MALFORMED;
  return INCOMPLETE;
}
