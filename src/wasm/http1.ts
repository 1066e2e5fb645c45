// HTTP/1.1 codec of one worker: parses a head in one WASM call, answers questions about it, writes the changed
// head in one more. Steps 2, 4 and 5 of the request flow; RFC 9112. Bodies never come in here (ChunkScanner reads
// chunked framing where it lies).
//
// A request:   const n = codec.parseRequest(chunk, 0, chunk.length, limits);   // > 0, 0 or < 0
//              codec.request.path(), .authority(), .header(HEADER_ID['x-request-id']) …     strings on demand
//              codec.request.drop…(), replaceTarget(), replaceHost(), append(), appendLine(), appendPrepared()
//              const length = codec.writeRequest();                             // > 0 or < 0
//              upstream.write(codec.requestText(length), 'latin1')              or copyRequest() before body bytes
// A response is the same with parseResponse, codec.response, writeResponse.
//
// Parse marks as dropped: Connection, Keep-Alive, Proxy-Connection, TE, Upgrade and all that Connection names,
// and what a framing rule makes meaningless (Content-Length: 0 of a 204). Content-Length and Transfer-Encoding
// stay, because raw body bytes are handed on as they are. The rewritten head is always HTTP/1.1.
// To go on with an upgrade: keep(indexOf(HEADER_ID.upgrade)) and append('connection', 'upgrade').

import * as layout from '../../assembly/layout/http1.ts';
import { WeirError } from '../base/errors.ts';
import type { HeadLimits } from './http1/codes.ts';
import { DEFAULT_HEADER_PREFIX, writeKnownHeaders } from './http1/known-headers.ts';
import { CodecMemory } from './http1/memory.ts';
import { PreparedRegion } from './http1/prepared-lines.ts';
import { RequestHead } from './http1/request-head.ts';
import { ResponseHead } from './http1/response-head.ts';
import { compileModule, instantiateModule, type WasmExports } from './instantiate.ts';

export { ChunkScanner, ChunkSpan } from './http1/chunk-scanner.ts';
export {
  CODEC_ERRORS,
  type CodecError,
  codecError,
  Framing,
  HeadFlag,
  type HeadLimits,
  Method,
} from './http1/codes.ts';
export {
  DEFAULT_HEADER_PREFIX,
  HEADER_ALIAS_PREFIX,
  HEADER_ID,
  type HeaderId,
  type KnownHeader,
  knownSpellings,
} from './http1/known-headers.ts';
export { type IdSet, idSet, type MessageHead } from './http1/message-head.ts';
export { PreparedLines } from './http1/prepared-lines.ts';
export { PathChange, PathStep, type RequestHead } from './http1/request-head.ts';
export type { ResponseHead } from './http1/response-head.ts';

/** Of the buffer that upstream connections read into. */
const READ_BYTES = 65536;

/** Largest head that any limit can allow: offsets are 16 bits wide. */
export const HEAD_LIMIT_BYTES = layout.HEAD_LIMIT_BYTES;
/** Most header lines that any limit can allow. */
export const FIELD_LIMIT = layout.FIELD_CAPACITY;

/** The functions of assembly/http1. Addresses and lengths in bytes, results as parse and write below. */
interface Http1Exports extends WasmExports {
  parseRequest(base: number, length: number, maxHeadBytes: number, maxFields: number, takesBoth: number): number;
  parseResponse(
    base: number,
    length: number,
    maxHeadBytes: number,
    maxFields: number,
    requestMethod: number,
    takesBoth: number,
  ): number;
  writeRequest(keepsEdits: number): number;
  writeResponse(): number;
}

export type Http1Build = 'http1' | 'http1-scalar';

/** A compiled codec; main compiles it once and posts it to the workers. */
export interface Http1Module {
  readonly name: Http1Build;
  readonly module: WebAssembly.Module;
}

/** Compiles the SIMD build, or the scalar one on a machine whose engine has no SIMD. */
export function compileHttp1(): Http1Module {
  try {
    return { name: 'http1', module: compileModule('http1') };
  } catch (error) {
    if (!(error instanceof WeirError) || error.code !== 'WEIR_WASM_INVALID') throw error;
    return { name: 'http1-scalar', module: compileModule('http1-scalar') };
  }
}

/** Up to this many bytes of head and body together, one text of both is cheaper than any other way to write them. */
export const JOINED_LIMIT_BYTES = 2048;

/** Bytes copied in at first; nearly every head is shorter, and a body behind it need not be copied. */
const FIRST_COPY_BYTES = 4096;
/** The same of a response, behind whose head there mostly is a body. */
const FIRST_RESPONSE_BYTES = 2048;

export class Http1Codec {
  /** Refilled by parseRequest; see MessageHead for how long it is valid. */
  readonly request: RequestHead;
  /** Refilled by parseResponse. */
  readonly response: ResponseHead;
  /**
   * 64 KiB through which all connections of a worker read that have no buffer of their own. Nothing in it survives the
   * read callback: parse, copy out what is needed, return. It lies outside of the codec's memory, whose views are replaced when it grows.
   */
  readonly readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

  /** Shared with the HTTP/2 module, which fills and writes the same heads. */
  readonly memory: CodecMemory;
  readonly #memory: CodecMemory;
  readonly #prepared: PreparedRegion;
  readonly #exports: Http1Exports;
  #written = '';

  /**
   * @param headerPrefix  stands for `x-proxy` too when a request is read, without its final '-'.
   * @throws WeirError WEIR_WASM_LAYOUT when the module was built from another layout.
   */
  constructor({ name, module }: Http1Module, headerPrefix = DEFAULT_HEADER_PREFIX) {
    const memory = new CodecMemory();
    this.memory = memory;
    this.#memory = memory;
    this.#exports = instantiateModule<Http1Exports>(name, module, memory.memory, layout.LAYOUT_VERSION);
    writeKnownHeaders(memory.bytes, headerPrefix);
    this.#prepared = new PreparedRegion(memory);
    this.request = new RequestHead(memory, this.#prepared);
    this.response = new ResponseHead(memory, this.#prepared);
  }

  /**
   * Parses the request head that starts at bytes[start]; bytes are borrowed until return and never written.
   * @returns the head's length (the body starts at start + length), 0 when the head is not complete within
   *   bytes[start..end), or a negative code for codecError(). After an error nothing more may be read from that
   *   connection as HTTP. After 0: keep the bytes, and parse them all again when more have come.
   */
  parseRequest(bytes: Buffer, start: number, end: number, limits: HeadLimits): number {
    const maxBytes = Math.min(limits.maxHeadBytes, layout.HEAD_LIMIT_BYTES);
    const maxFields = Math.min(limits.maxFields, layout.FIELD_CAPACITY);
    const takesBoth = limits.takesChunkedLength === true ? 1 : 0;
    const available = Math.min(end - start, maxBytes);
    let length = Math.min(available, FIRST_COPY_BYTES);
    this.#copyIn(bytes, start, length, layout.REQUEST_IN);
    let result = this.#exports.parseRequest(layout.REQUEST_IN, length, maxBytes, maxFields, takesBoth);
    if (result === 0 && length < available) {
      length = available;
      this.#copyIn(bytes, start, length, layout.REQUEST_IN);
      result = this.#exports.parseRequest(layout.REQUEST_IN, length, maxBytes, maxFields, takesBoth);
    }
    this.renewPrepared();
    return result;
  }

  /** The same for a whole head that was kept as latin1 text. */
  parseRequestText(head: string, limits: HeadLimits): number {
    const { length } = head;
    const maxBytes = Math.min(limits.maxHeadBytes, layout.HEAD_LIMIT_BYTES);
    if (length > maxBytes) return layout.ERROR_HEAD_TOO_LARGE;
    const maxFields = Math.min(limits.maxFields, layout.FIELD_CAPACITY);
    this.#memory.bytes.write(head, layout.REQUEST_IN, 'latin1');
    const result = this.#exports.parseRequest(layout.REQUEST_IN, length, maxBytes, maxFields, 0);
    this.renewPrepared();
    return result;
  }

  /** Reads the request head that has just been written as if it had come like this. Edits may have made it too large for that. */
  reparseRequest(length: number, limits: HeadLimits): number {
    if (length > limits.maxHeadBytes) return layout.ERROR_HEAD_TOO_LARGE;
    this.#memory.bytes.copyWithin(layout.REQUEST_IN, layout.REQUEST_OUT, layout.REQUEST_OUT + length);
    const result = this.#exports.parseRequest(layout.REQUEST_IN, length, limits.maxHeadBytes, limits.maxFields, 0);
    this.renewPrepared();
    return result;
  }

  /**
   * The same for a response.
   * @param requestMethod  Method id of the request that this answers: HEAD and CONNECT change the framing.
   */
  parseResponse(bytes: Buffer, start: number, end: number, limits: HeadLimits, requestMethod: number): number {
    const maxBytes = Math.min(limits.maxHeadBytes, layout.HEAD_LIMIT_BYTES);
    const maxFields = Math.min(limits.maxFields, layout.FIELD_CAPACITY);
    const takesBoth = limits.takesChunkedLength === true ? 1 : 0;
    const available = Math.min(end - start, maxBytes);
    let length = Math.min(available, FIRST_RESPONSE_BYTES);
    this.#copyIn(bytes, start, length, layout.RESPONSE_IN);
    let result = this.#parseResponse(length, maxBytes, maxFields, requestMethod, takesBoth);
    if (result === 0 && length < available) {
      length = available;
      this.#copyIn(bytes, start, length, layout.RESPONSE_IN);
      result = this.#parseResponse(length, maxBytes, maxFields, requestMethod, takesBoth);
    }
    this.renewPrepared();
    return result;
  }

  /**
   * Writes the request head with its edits and clears them.
   * @returns its length, for requestText() or copyRequest() before the next write, or a negative code.
   */
  writeRequest(): number {
    return this.#exports.writeRequest(0);
  }

  /**
   * The same as text, once the head is as it will be sent. Its edits stay, so that HTTP/2 need not read the text again: see
   * `hasWritten`.
   * @returns a negative code instead when it cannot be written.
   */
  writeRequestText(): string | number {
    const length = this.#exports.writeRequest(1);
    if (length < 0) return length;
    this.#written = this.requestText(length);
    return this.#written;
  }

  /** `request` with its edits is what this text would be read as: it is of the request written last, and none has been read since. */
  hasWritten(head: string): boolean {
    return (this.request.flags & layout.FLAG_WRITTEN) !== 0 && head === this.#written;
  }

  /** The same for the response head. */
  writeResponse(): number {
    return this.#exports.writeResponse();
  }

  /** The written request head as latin1 text. */
  requestText(length: number): string {
    return this.#memory.text(layout.REQUEST_OUT, length);
  }

  /** The written response head as latin1 text. */
  responseText(length: number): string {
    return this.#memory.text(layout.RESPONSE_OUT, length);
  }

  /**
   * The written response head and the body bytes [start, end) behind it as one latin1 text. Together they must not be
   * longer than JOINED_LIMIT_BYTES.
   */
  responseTextWithBody(length: number, bytes: Buffer, start: number, end: number): string {
    const at = layout.RESPONSE_OUT + length;
    bytes.copy(this.#memory.bytes, at, start, end);
    return this.#memory.text(layout.RESPONSE_OUT, length + end - start);
  }

  /** Copies the written request head to target[at…]; returns the index behind it. */
  copyRequest(length: number, target: Buffer, at: number): number {
    return at + this.#memory.bytes.copy(target, at, layout.REQUEST_OUT, layout.REQUEST_OUT + length);
  }

  /** Copies the written response head to target[at…]; returns the index behind it. */
  copyResponse(length: number, target: Buffer, at: number): number {
    return at + this.#memory.bytes.copy(target, at, layout.RESPONSE_OUT, layout.RESPONSE_OUT + length);
  }

  /** Has room made for prepared lines when there was none, which each head that is read gives an occasion for. */
  renewPrepared(): void {
    if (this.#prepared.isFull && !this.request.hasPieces && !this.response.hasPieces) this.#prepared.restart();
  }

  #parseResponse(length: number, maxBytes: number, maxFields: number, method: number, takesBoth: number): number {
    return this.#exports.parseResponse(layout.RESPONSE_IN, length, maxBytes, maxFields, method, takesBoth);
  }

  #copyIn(bytes: Buffer, start: number, length: number, address: number): void {
    // For a whole short buffer set() costs a third of copy().
    if (start === 0 && length === bytes.length) this.#memory.bytes.set(bytes, address);
    else bytes.copy(this.#memory.bytes, address, start, start + length);
  }
}
