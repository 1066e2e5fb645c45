// HPACK and HTTP/2's rules of heads for one worker: header blocks to the heads of its Http1Codec, and those heads, with
// their edits, to header blocks. RFC 7541, RFC 9113 section 8. Frames, streams and bodies are not known here.
//
// A request:   const n = heads.decodeRequest(decoder, block, 0, block.length, limits, BlockFlag.END_STREAM);
//              codec.request.path() … as if parseRequest had read it: n > 0 is the length of its text
//              const length = heads.encodeRequest(encoder, EncodeFlag.HUFFMAN); heads.copyBlock(length, slab, at)
//
// Every block of a connection has to be decoded, in order, even when its stream is of no interest any more: the table
// has to stay in step. After 'compression_invalid' (isCompressionError) the connection cannot go on; any other error is
// the message's own, and the table is in step.

import * as http1Layout from '../../assembly/layout/http1.ts';
import * as layout from '../../assembly/layout/http2.ts';
import { WeirError } from '../base/errors.ts';
import type { HeadLimits } from './http1/codes.ts';
import type { CodecMemory } from './http1/memory.ts';
import type { Http1Codec } from './http1.ts';
import { writeHuffmanCode } from './http2/huffman.ts';
import { writeReasons } from './http2/reasons.ts';
import { writeStaticTable } from './http2/static-table.ts';
import { bodySizes, headerBytes, TABLE_LIMIT_BYTES, TableArena } from './http2/table-arena.ts';
import { compileModule, instantiateModule, type WasmExports } from './instantiate.ts';

export { blockFault, HTTP2_FAULTS } from './http2/codes.ts';
export { TABLE_LIMIT_BYTES } from './http2/table-arena.ts';

/** What a block's frame says of it. */
export const BlockFlag = {
  END_STREAM: layout.BLOCK_END_STREAM,
  /** SETTINGS_ENABLE_CONNECT_PROTOCOL has been announced to this peer. */
  CONNECT_PROTOCOL: layout.BLOCK_CONNECT_PROTOCOL,
} as const;

export const EncodeFlag = {
  /** Strings are Huffman-coded where that is shorter. */
  HUFFMAN: layout.ENCODE_HUFFMAN,
  /** An upgrade goes out as extended CONNECT, its 101 as 200 (RFC 8441). */
  CONNECT_PROTOCOL: layout.ENCODE_CONNECT_PROTOCOL,
  /** `:scheme` is this one. */
  SCHEME_HTTP: layout.ENCODE_SCHEME_HTTP,
  SCHEME_HTTPS: layout.ENCODE_SCHEME_HTTPS,
} as const;

/** Longest header block that can be decoded; of a longer one, the longest part. */
export const BLOCK_LIMIT_BYTES = layout.BLOCK_LIMIT_BYTES;
/** Between name and value of a line whose field no table may hold, whatever its name (RFC 7541 section 6.2.3). Usually one blank follows the colon. */
export const NEVER_INDEXED_SEPARATOR = `:${' '.repeat(layout.NEVER_INDEXED_GAP - 1)}`;

/** Which part of a block is decoded; bits. */
export const PartFlag = {
  OPENS: layout.PART_OPENS,
  /** The block is a request's, whose method is of interest. */
  OPENS_REQUEST: layout.PART_OPENS | layout.PART_OPENS_REQUEST,
  ENDS: layout.PART_ENDS,
} as const;
/** What a block is that is read in parts. */
export const BLOCK_TOO_LARGE = http1Layout.ERROR_HEAD_TOO_LARGE;
/** Octets of a dynamic table before any settings (RFC 9113 section 6.5.2), and what this side's encoder uses. */
export const DEFAULT_TABLE_BYTES = 4096;

/** The functions of assembly/http2. */
interface Http2Exports extends WasmExports {
  initTable(table: number, capacity: number, max: number, encodes: number): void;
  moveTable(table: number, body: number, slots: number, textBytes: number): void;
  setPeerLimit(table: number, octets: number): void;
  limitTable(table: number, octets: number): void;
  decodeRequest(table: number, length: number, maxBytes: number, maxFields: number, flags: number): number;
  decodeResponse(
    table: number,
    length: number,
    maxBytes: number,
    maxFields: number,
    flags: number,
    requestMethod: number,
  ): number;
  decodeTrailers(table: number, length: number, maxBytes: number, maxFields: number): number;
  decodePart(table: number, length: number, flags: number): number;
  encodeRequest(table: number, flags: number): number;
  encodeResponse(table: number, flags: number): number;
  encodeLines(table: number, length: number, status: number, flags: number): number;
}

export type Http2Build = 'http2' | 'http2-scalar';

/** The compiled module; main compiles it once and posts it to the workers. */
export interface Http2Module {
  readonly name: Http2Build;
  readonly module: WebAssembly.Module;
}

/** Compiles the SIMD build, or the scalar one on a machine whose engine has no SIMD. */
export function compileHttp2(): Http2Module {
  try {
    return { name: 'http2', module: compileModule('http2') };
  } catch (error) {
    if (!(error instanceof WeirError) || error.code !== 'WEIR_WASM_INVALID') throw error;
    return { name: 'http2-scalar', module: compileModule('http2-scalar') };
  }
}

/** True when a negative result means that the tables of both sides differ from now on. */
export function isCompressionError(code: number): boolean {
  return code === layout.ERROR_COMPRESSION;
}

/** True when a negative result means that a head goes beyond its bounds, in bytes or fields; nothing else is wrong with it. */
export function isTooLarge(code: number): boolean {
  return code === http1Layout.ERROR_HEAD_TOO_LARGE || code === http1Layout.ERROR_TOO_MANY_FIELDS;
}

export class Http2Heads {
  readonly #codec: Http1Codec;
  readonly #memory: CodecMemory;
  readonly #arena: TableArena;
  readonly #exports: Http2Exports;

  /** @param codec  whose heads are filled and written. @throws WeirError WEIR_WASM_LAYOUT for another layout's module. */
  constructor({ name, module }: Http2Module, codec: Http1Codec) {
    const { memory } = codec;
    this.#codec = codec;
    this.#memory = memory;
    this.#exports = instantiateModule<Http2Exports>(name, module, memory.memory, http1Layout.LAYOUT_VERSION);
    this.#arena = new TableArena(memory);
    writeStaticTable(memory);
    writeHuffmanCode(memory);
    writeReasons(memory);
  }

  /** Bytes of all dynamic tables. */
  get tableBytes(): number {
    return this.#arena.usedBytes;
  }

  /**
   * A connection's decoding table, to be given back by release().
   * @param limit  SETTINGS_HEADER_TABLE_SIZE as announced, at most TABLE_LIMIT_BYTES. A peer may use the default until it
   *   has read that, so no table is smaller.
   * @returns its address, 0 when there is no memory for one more.
   */
  createDecoder(limit: number): number {
    return this.#create(Math.max(limit, DEFAULT_TABLE_BYTES), false);
  }

  /**
   * The peer has acknowledged the limit of a decoding table: it uses no more from now on, and where that is less than the default
   * its next block says so first (RFC 9113 section 4.3.1).
   */
  enforceLimit(decoder: number, limit: number): void {
    this.#exports.limitTable(decoder, limit);
  }

  /** A connection's encoding table; made with the first block that it sends. */
  createEncoder(): number {
    return this.#create(DEFAULT_TABLE_BYTES, true);
  }

  release(table: number): void {
    const body = this.#word(table, layout.TABLE_OUTGROWN) || this.#word(table, layout.TABLE_ENTRIES);
    this.#arena.release(table);
    this.#arena.release(body);
  }

  /** SETTINGS_HEADER_TABLE_SIZE of the peer, which the next block of this encoder takes notice of. */
  setPeerTableSize(encoder: number, octets: number): void {
    this.#exports.setPeerLimit(encoder, Math.min(octets, TABLE_LIMIT_BYTES));
  }

  /**
   * Decodes the block bytes[start..end) to `codec.request`. Bytes are borrowed until return.
   * @param flags  BlockFlag bits
   * @returns length of the head's text, or a negative code for blockFault(). A body of no announced length has
   *   Framing.UNTIL_CLOSE, in requests too: END_STREAM ends it.
   */
  decodeRequest(decoder: number, bytes: Buffer, start: number, end: number, limits: HeadLimits, flags: number): number {
    const length = this.#copyIn(bytes, start, end);
    const result = this.#exports.decodeRequest(decoder, length, limits.maxHeadBytes, maxFields(limits), flags);
    this.#codec.renewPrepared();
    return this.#settle(decoder) ? result : layout.ERROR_COMPRESSION;
  }

  /** The same to `codec.response`. @param requestMethod  Method id of the request that it answers. */
  decodeResponse(
    decoder: number,
    bytes: Buffer,
    start: number,
    end: number,
    limits: HeadLimits,
    flags: number,
    requestMethod: number,
  ): number {
    const length = this.#copyIn(bytes, start, end);
    const { maxHeadBytes } = limits;
    const fields = maxFields(limits);
    const result = this.#exports.decodeResponse(decoder, length, maxHeadBytes, fields, flags, requestMethod);
    this.#codec.renewPrepared();
    return this.#settle(decoder) ? result : layout.ERROR_COMPRESSION;
  }

  /** Decodes the fields behind a body, for linesText(): bytes of their text, 0 for none, or a negative code. */
  decodeTrailers(decoder: number, bytes: Buffer, start: number, end: number, limits: HeadLimits): number {
    const length = this.#copyIn(bytes, start, end);
    const result = this.#exports.decodeTrailers(decoder, length, limits.maxHeadBytes, maxFields(limits));
    return this.#settle(decoder) ? result : layout.ERROR_COMPRESSION;
  }

  /**
   * Decodes a part of a block that is longer than BLOCK_LIMIT_BYTES, of which nobody gets anything: the table is in step then.
   * `codec.request.methodId` is known behind the part that opens a request, as far as it has come.
   * @param flags  PartFlag bits
   * @returns how many bytes have been read: the rest belongs to the beginning of the next part, `skippedBytes` behind it to none.
   *   0 for a field that is longer than a part and cannot be left out; negative for an error of the connection.
   */
  decodePart(decoder: number, bytes: Buffer, start: number, end: number, flags: number): number {
    const result = this.#exports.decodePart(decoder, this.#copyIn(bytes, start, end), flags);
    return this.#settle(decoder) ? result : layout.ERROR_COMPRESSION;
  }

  /** Bytes behind the part that was decoded last which belong to its last value. */
  get skippedBytes(): number {
    return this.#word(layout.STATE, layout.STATE_SKIP);
  }

  /** Lines of decoded trailers, `name: value` CRLF each, as latin1 text; before the next block. */
  linesText(length: number): string {
    return this.#memory.text(layout.FIELD_LINES, length);
  }

  /**
   * Writes `codec.request` with its edits as a block, and clears the edits; :scheme is what `x-forwarded-proto` says, or the flags do. Every block that has been written has to be
   * sent, in this order.
   * @param flags  EncodeFlag bits
   * @returns its length, for copyBlock() before the next one, or a negative code.
   */
  encodeRequest(encoder: number, flags: number): number {
    return this.#encoded(encoder, this.#exports.encodeRequest(encoder, flags));
  }

  /** The same for `codec.response`. */
  encodeResponse(encoder: number, flags: number): number {
    return this.#encoded(encoder, this.#exports.encodeResponse(encoder, flags));
  }

  /**
   * Writes whole lines, each with its CRLF, as a block: trailers, or with a status a head of its own.
   * @param lines  latin1 text, at most 64 KiB
   */
  encodeLines(encoder: number, lines: string, status: number, flags: number): number {
    if (lines.length > layout.FIELD_LINES_BYTES) return http1Layout.ERROR_EDITS_TOO_LARGE;
    const length = this.#memory.bytes.write(lines, layout.FIELD_LINES, 'latin1');
    return this.#encoded(encoder, this.#exports.encodeLines(encoder, length, status, flags));
  }

  /** Copies bytes [from, to) of the written block to target[at…]; returns the index behind them. */
  copyBlock(from: number, to: number, target: Buffer, at: number): number {
    return at + this.#memory.bytes.copy(target, at, layout.BLOCK_OUT + from, layout.BLOCK_OUT + to);
  }

  #create(capacity: number, encodes: boolean): number {
    const table = this.#arena.allocate(headerBytes(encodes));
    if (table === 0) return 0;
    this.#exports.initTable(table, Math.min(capacity, TABLE_LIMIT_BYTES), DEFAULT_TABLE_BYTES, encodes ? 1 : 0);
    if (this.#giveBody(table)) return table;
    this.#arena.release(table);
    return 0;
  }

  /** @returns the result of a call that encodes. @throws RangeError when the table has outgrown the memory. */
  #encoded(encoder: number, result: number): number {
    if (!this.#settle(encoder)) throw new RangeError('no memory for a larger table of an HTTP/2 connection');
    return result;
  }

  /** A table that has outgrown its body gets a larger one. @returns false when there is no memory for it. */
  #settle(table: number): boolean {
    const outgrown = this.#word(table, layout.TABLE_OUTGROWN);
    if (outgrown === 0) return true;
    if (!this.#giveBody(table)) return false;
    this.#arena.release(outgrown);
    return true;
  }

  #giveBody(table: number): boolean {
    const bytes = this.#word(table, layout.TABLE_NEXT_POSITION) - this.#word(table, layout.TABLE_FIRST_POSITION);
    const sizes = bodySizes(
      this.#word(table, layout.TABLE_CAPACITY),
      this.#word(table, layout.TABLE_COUNT),
      bytes >>> 0,
    );
    const body = this.#arena.allocate(sizes.blockBytes);
    if (body === 0) return false;
    this.#exports.moveTable(table, body, sizes.slots, sizes.textBytes);
    return true;
  }

  #word(table: number, field: number): number {
    return this.#memory.u32[(table + field) >>> 2]!;
  }

  #copyIn(bytes: Buffer, start: number, end: number): number {
    const length = end - start;
    if (length > BLOCK_LIMIT_BYTES) throw new RangeError(`a header block of ${length} bytes`);
    bytes.copy(this.#memory.bytes, layout.BLOCK_IN, start, end);
    return length;
  }
}

function maxFields(limits: HeadLimits): number {
  return Math.min(limits.maxFields, http1Layout.FIELD_CAPACITY);
}
