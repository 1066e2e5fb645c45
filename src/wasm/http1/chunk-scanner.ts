// Finds the end of a chunked body (RFC 9112 section 7.1) in the buffers where it lies. The raw bytes are handed
// on unchanged, so this validates the framing strictly and otherwise only counts: data is skipped arithmetically.
// TypeScript, not WASM: framing is some ten bytes per chunk, and copying them into linear memory and calling in
// costs more than reading them here (bench/http1-chunked.ts).
//
//                 ┌────────────── data, CRLF ◄──────────────┐
//   SIZE_START ─► SIZE ─► (extensions) ─► SIZE_LF ─ size > 0 ┘
//                                            └─ size 0 ─► TRAILER_START ─► END_LF ─► DONE
//                                                             └─ line ─┘

import * as layout from '../../../assembly/layout/http1.ts';
import type { HeadLimits } from './codes.ts';
import { ForbiddenNameMatch } from './forbidden-trailers.ts';

/** What the bytes are that next() passed. */
export const ChunkSpan = {
  /** Chunk sizes, extensions and the line ends around them. */
  FRAMING: 0,
  /** Body bytes. */
  DATA: 1,
  /** Trailer lines and the final empty line. */
  TRAILERS: 2,
} as const;

const SIZE_START = 0;
const SIZE = 1;
const EXTENSION_NAME_START = 2;
const EXTENSION_NAME = 3;
const EXTENSION_VALUE_START = 4;
const EXTENSION_VALUE = 5;
const QUOTED = 6;
const QUOTED_ESCAPE = 7;
const QUOTED_END = 8;
const SIZE_LF = 9;
const DATA = 10;
const DATA_CR = 11;
const DATA_LF = 12;
const TRAILER_START = 13;
const TRAILER_NAME = 14;
const TRAILER_VALUE = 15;
const TRAILER_LF = 16;
const END_LF = 17;
const DONE = 18;
const FAILED = 19;

const HTAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const COLON = 0x3a;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const BACKSLASH = 0x5c;
const DEL = 0x7f;

/** Hex digits of a chunk size, leading zeros included: sizes stay below 2^52, exact in a number. */
const SIZE_DIGITS = 13;
/** Bytes of one chunk's extensions. */
const EXTENSION_BYTES = 1024;
/** For bodies whose trailers have been measured before, or are measured by nobody. */
const WIDEST: HeadLimits = { maxHeadBytes: layout.HEAD_LIMIT_BYTES, maxFields: layout.FIELD_CAPACITY };
const NO_TRAILERS = -1;

const IS_TOKEN = new Uint8Array(256);
for (const char of "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
  IS_TOKEN[char.charCodeAt(0)] = 1;
}

/** Value of a hex digit, -1 for any other byte. */
const HEX_VALUE = new Int8Array(256).fill(-1);
for (let value = 0; value < 16; value += 1) {
  HEX_VALUE[value.toString(16).charCodeAt(0)] = value;
  HEX_VALUE[value.toString(16).toUpperCase().charCodeAt(0)] = value;
}

/**
 * State of one chunked body, in either direction. Owned by the connection and reset for each body; allocates
 * nothing while it scans. Bytes are borrowed until return and never written.
 */
export class ChunkScanner {
  #state = SIZE_START;
  /** The chunk's size while it is read, then its bytes still to come. */
  #remaining = 0;
  /** Size digits, extension bytes or trailer bytes so far. */
  #count = 0;
  #span: number = ChunkSpan.FRAMING;
  #limits: HeadLimits = WIDEST;
  #trailerCount = 0;
  #trailersAt = NO_TRAILERS;
  readonly #forbidden = new ForbiddenNameMatch();

  /** Prepares for a new body. @param limits of its trailers: their names and values together, and their lines. */
  reset(limits: HeadLimits = WIDEST): void {
    this.#state = SIZE_START;
    this.#remaining = 0;
    this.#count = 0;
    this.#span = ChunkSpan.FRAMING;
    this.#limits = limits;
    this.#trailerCount = 0;
    this.#trailersAt = NO_TRAILERS;
  }

  /** True once the final empty line has been seen. */
  get isDone(): boolean {
    return this.#state === DONE;
  }

  /**
   * Where, in the range of the last scan(), the lines of the trailers begin; -1 while there are none. What follows
   * there, the final empty line included, is no part of the body as it would be without trailers.
   */
  get trailersAt(): number {
    return this.#trailersAt;
  }

  /** One of ChunkSpan: what the bytes are that the last next() passed. */
  get span(): number {
    return this.#span;
  }

  /** Body bytes of the current chunk that are still to come; 0 outside chunk data. */
  get remainingInChunk(): number {
    return this.#state === DATA ? this.#remaining : 0;
  }

  /**
   * Passes over the body's bytes in bytes[start..end).
   * @returns the index behind the last byte of the body: `end` while it goes on; up to `end` with isDone true when it
   *   ended there, and what follows belongs to the next message; or a negative code for codecError(). After an error
   *   every further call gives an error as well.
   */
  scan(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    if (this.#trailersAt !== NO_TRAILERS) this.#trailersAt = start;
    while (at < end && this.#state !== DONE) {
      at = this.#state === DATA ? this.#skipData(at, end) : this.#readFraming(bytes, at, end);
      if (at < 0) return at;
    }
    return at;
  }

  /**
   * Like scan, but also stops where framing, data and trailers meet, for callers that want the decoded body or drop
   * the trailers: call again from the result until it reaches `end` or isDone; `span` names what was passed.
   * A span may come in several pieces, and with start < end each call passes at least one byte.
   */
  next(bytes: Uint8Array, start: number, end: number): number {
    if (start >= end || this.#state === DONE) return start;
    if (this.#state === DATA) {
      this.#span = ChunkSpan.DATA;
      return this.#skipData(start, end);
    }
    this.#span = this.#state >= TRAILER_START ? ChunkSpan.TRAILERS : ChunkSpan.FRAMING;
    return this.#readFraming(bytes, start, end);
  }

  #skipData(at: number, end: number): number {
    const passed = Math.min(this.#remaining, end - at);
    this.#remaining -= passed;
    if (this.#remaining === 0) this.#state = DATA_CR;
    return at + passed;
  }

  /** Reads on until data, the trailers or the end of the body begin. */
  #readFraming(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    while (at < end) {
      const state = this.#state;
      const byte = bytes[at]!;
      at += 1;
      // The four states that every chunk passes come first and stay in this function.
      if (state === SIZE && HEX_VALUE[byte]! >= 0) {
        if (this.#count === SIZE_DIGITS) return this.#fail(layout.ERROR_CHUNK_SIZE);
        this.#count += 1;
        this.#remaining = this.#remaining * 16 + HEX_VALUE[byte]!;
        continue;
      }
      const next = state < SIZE_LF ? this.#readSizeLine(state, byte) : this.#readLineEnd(state, byte);
      if (next < 0) return this.#fail(next);
      this.#state = next;
      if (state === TRAILER_START && this.#trailersAt === NO_TRAILERS && next !== END_LF) this.#trailersAt = at - 1;
      if (next === DATA || next === DONE || (next === TRAILER_START && state === SIZE_LF)) break;
    }
    return at;
  }

  /** One byte of size and extensions: the next state or an error. No white space is allowed around either. */
  #readSizeLine(state: number, byte: number): number {
    if (state === SIZE_START) {
      const value = HEX_VALUE[byte]!;
      if (value < 0) return layout.ERROR_CHUNK_SIZE;
      this.#remaining = value;
      this.#count = 1;
      return SIZE;
    }
    if (state === SIZE) {
      if (byte === CR) return SIZE_LF;
      if (byte !== SEMICOLON) return layout.ERROR_CHUNK_SIZE;
      this.#count = 0;
      return EXTENSION_NAME_START;
    }
    this.#count += 1;
    return this.#count > EXTENSION_BYTES ? layout.ERROR_CHUNK_EXTENSION_TOO_LARGE : readExtension(state, byte);
  }

  /** One byte of a line end or of the trailers: the next state or an error. */
  #readLineEnd(state: number, byte: number): number {
    switch (state) {
      case SIZE_LF:
        if (byte !== LF) return layout.ERROR_CHUNK_SIZE;
        this.#count = 0;
        return this.#remaining > 0 ? DATA : TRAILER_START;
      case DATA_CR:
        return byte === CR ? DATA_LF : layout.ERROR_CHUNK_END;
      case DATA_LF:
        return byte === LF ? SIZE_START : layout.ERROR_CHUNK_END;
      case END_LF:
        return byte === LF ? DONE : layout.ERROR_TRAILER;
      case TRAILER_START:
        if (byte === CR) return END_LF;
        this.#trailerCount += 1;
        if (this.#trailerCount > this.#limits.maxFields) return layout.ERROR_TOO_MANY_TRAILERS;
        this.#forbidden.begin();
        return this.#readTrailerName(byte);
      default:
        return this.#readTrailer(state, byte);
    }
  }

  #readTrailerName(byte: number): number {
    this.#count += 1;
    if (this.#count > this.#limits.maxHeadBytes) return layout.ERROR_TRAILERS_TOO_LARGE;
    if (IS_TOKEN[byte] === 0) return layout.ERROR_TRAILER;
    this.#forbidden.add(byte);
    return TRAILER_NAME;
  }

  #readTrailer(state: number, byte: number): number {
    if (state === TRAILER_LF) return byte === LF ? TRAILER_START : layout.ERROR_TRAILER;
    if (state === TRAILER_NAME) {
      if (byte !== COLON) return this.#readTrailerName(byte);
      return this.#forbidden.isForbidden() ? layout.ERROR_TRAILER_FORBIDDEN : TRAILER_VALUE;
    }
    if (state !== TRAILER_VALUE) return layout.ERROR_CHUNK_SIZE;
    if (byte === CR) return TRAILER_LF;
    this.#count += 1;
    if (this.#count > this.#limits.maxHeadBytes) return layout.ERROR_TRAILERS_TOO_LARGE;
    return (byte < 0x20 && byte !== HTAB) || byte === DEL ? layout.ERROR_TRAILER : TRAILER_VALUE;
  }

  #fail(code: number): number {
    this.#state = FAILED;
    return code;
  }
}

/** One byte of `;name`, `;name=token` or `;name="quoted"`: the next state or an error. */
function readExtension(state: number, byte: number): number {
  switch (state) {
    case EXTENSION_NAME_START:
      return IS_TOKEN[byte] === 1 ? EXTENSION_NAME : layout.ERROR_CHUNK_EXTENSION;
    case EXTENSION_NAME:
      if (IS_TOKEN[byte] === 1) return EXTENSION_NAME;
      return byte === EQUALS ? EXTENSION_VALUE_START : endExtension(byte);
    case EXTENSION_VALUE_START:
      if (byte === QUOTE) return QUOTED;
      return IS_TOKEN[byte] === 1 ? EXTENSION_VALUE : layout.ERROR_CHUNK_EXTENSION;
    case EXTENSION_VALUE:
      return IS_TOKEN[byte] === 1 ? EXTENSION_VALUE : endExtension(byte);
    case QUOTED:
      if (byte === QUOTE) return QUOTED_END;
      if (byte === BACKSLASH) return QUOTED_ESCAPE;
      return isQuotable(byte) ? QUOTED : layout.ERROR_CHUNK_EXTENSION;
    case QUOTED_ESCAPE:
      return isQuotable(byte) ? QUOTED : layout.ERROR_CHUNK_EXTENSION;
    default:
      return endExtension(byte);
  }
}

/** What may follow a whole extension: another one or the line's end. */
function endExtension(byte: number): number {
  if (byte === CR) return SIZE_LF;
  return byte === SEMICOLON ? EXTENSION_NAME_START : layout.ERROR_CHUNK_EXTENSION;
}

function isQuotable(byte: number): boolean {
  return byte === HTAB || (byte >= 0x20 && byte < DEL);
}
