// The SIMD build, the scalar build and the plain reference agree on damaged heads and bodies.
// WEIR_FUZZ_HEADS sets how many each test tries.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as layout from '../../assembly/layout/http1.ts';
import { Trailers } from '../../src/data-plane/http/trailers.ts';
import { writeKnownHeaders } from '../../src/wasm/http1/known-headers.ts';
import { CodecMemory } from '../../src/wasm/http1/memory.ts';
import { ChunkScanner, ChunkSpan, codecError, Http1Codec, type MessageHead, Method } from '../../src/wasm/http1.ts';
import { compileModule, instantiateModule, type WasmExports } from '../../src/wasm/instantiate.ts';
import { CHUNKED_SEEDS, mutate, REQUEST_SEEDS, RESPONSE_SEEDS, SeededRandom } from '../support/http1-mutation.ts';
import * as reference from '../support/reference/http1.ts';
import { decodeChunked } from '../support/reference/http1-chunked.ts';

const HEADS = Number(process.env.WEIR_FUZZ_HEADS ?? 20_000);
const LIMITS = { maxHeadBytes: 700, maxFields: 12 };
const METHODS = ['GET', 'HEAD', 'CONNECT'] as const;

interface RawExports extends WasmExports {
  parseRequest(base: number, length: number, maxHeadBytes: number, maxFields: number, takesBoth: number): number;
  parseResponse(
    base: number,
    length: number,
    maxHeadBytes: number,
    maxFields: number,
    method: number,
    takesBoth: number,
  ): number;
  writeRequest(keepsEdits: number): number;
  writeResponse(): number;
}

/** One build with its memory laid open. */
class RawBuild {
  readonly bytes: Buffer;
  readonly #exports: RawExports;

  constructor(name: 'http1' | 'http1-scalar') {
    const { memory, bytes } = new CodecMemory();
    this.bytes = bytes;
    this.#exports = instantiateModule<RawExports>(name, compileModule(name), memory, layout.LAYOUT_VERSION);
    writeKnownHeaders(this.bytes);
  }

  /** Everything that one parse and one write leave behind, results first. */
  run(direction: 'request' | 'response', text: string, base: number, method: number): Buffer {
    const isRequest = direction === 'request';
    const record = isRequest ? layout.REQUEST_RECORD : layout.RESPONSE_RECORD;
    const fields = isRequest ? layout.REQUEST_FIELDS : layout.RESPONSE_FIELDS;
    const out = isRequest ? layout.REQUEST_OUT : layout.RESPONSE_OUT;
    this.bytes.fill(0, record, record + layout.RECORD_BYTES);
    this.bytes.fill(0, fields, fields + LIMITS.maxFields * layout.FIELD_BYTES);
    // What lies behind the head must not matter: a good head's end would tempt.
    this.bytes.write(`${text}: x\r\n\r\n\r\n\r\n`, base, 'latin1');
    const { maxHeadBytes, maxFields } = LIMITS;
    const result = isRequest
      ? this.#exports.parseRequest(base, text.length, maxHeadBytes, maxFields, text.length & 1)
      : this.#exports.parseResponse(base, text.length, maxHeadBytes, maxFields, method, text.length & 1);
    const table = Buffer.from(this.bytes.subarray(record, record + layout.RECORD_BYTES));
    const entries = Buffer.from(this.bytes.subarray(fields, fields + LIMITS.maxFields * layout.FIELD_BYTES));
    const length = isRequest ? this.#exports.writeRequest(text.length & 1) : this.#exports.writeResponse();
    const written = this.bytes.subarray(out, out + Math.max(length, 0));
    return Buffer.concat([Buffer.from(`${result} ${length} `), table, entries, written]);
  }
}

const FRAMINGS = ['none', 'length', 'chunked', 'until-close', 'tunnel'];

function describeHead(head: MessageHead): object {
  const fields = Array.from({ length: head.fieldCount }, (_, index) => ({
    name: head.nameAt(index).toLowerCase(),
    value: head.valueAt(index),
    dropped: head.isDropped(index),
  }));
  return {
    length: head.headLength,
    minor: head.minorVersion,
    fields,
    framing: FRAMINGS[head.framing],
    contentLength: head.contentLength,
    persistent: head.isPersistent,
    upgrade: (head.flags & layout.FLAG_UPGRADE) !== 0,
  };
}

function expectationOf(flags: number): string {
  if ((flags & layout.FLAG_EXPECT_CONTINUE) !== 0) return 'continue';
  return (flags & layout.FLAG_EXPECT_OTHER) !== 0 ? 'other' : '';
}

function describeRequest({ request }: Http1Codec): object {
  return {
    ...describeHead(request),
    method: request.method,
    target: request.target(),
    path: request.path(),
    authority: request.authority(),
    expect: expectationOf(request.flags),
  };
}

function describeResponse({ response }: Http1Codec): object {
  return { ...describeHead(response), status: response.status, reason: response.reason() };
}

/** A parse result in the reference's terms. */
function outcome(result: number, head: () => object): object | undefined {
  if (result < 0) return { error: codecError(result).reason };
  return result === 0 ? undefined : head();
}

describe('HTTP/1 builds and reference', () => {
  const simd = new RawBuild('http1');
  const scalar = new RawBuild('http1-scalar');
  const codec = new Http1Codec({ name: 'http1', module: compileModule('http1') });

  it('simd and scalar leave the same bytes behind for damaged requests and responses', () => {
    const random = new SeededRandom(1);
    for (let round = 0; round < HEADS; round += 1) {
      const isRequest = round % 2 === 0;
      const text = mutate(isRequest ? REQUEST_SEEDS : RESPONSE_SEEDS, random);
      const base = layout.REQUEST_IN + random.below(16);
      const method = Method[random.of(METHODS)];
      const direction = isRequest ? 'request' : 'response';
      const a = simd.run(direction, text, base, method);
      const b = scalar.run(direction, text, base, method);
      if (!a.equals(b)) assert.fail(`round ${round}: ${JSON.stringify(text)}`);
    }
  });

  it('the reference reads damaged requests alike', () => {
    const random = new SeededRandom(2);
    let accepted = 0;
    for (let round = 0; round < HEADS; round += 1) {
      const bytes = Buffer.from(mutate(REQUEST_SEEDS, random), 'latin1');
      const limits = { ...LIMITS, takesChunkedLength: random.of([false, true]) };
      const result = codec.parseRequest(bytes, 0, bytes.length, limits);
      if (result > 0) accepted += 1;
      const seen = outcome(result, () => describeRequest(codec));
      assert.deepEqual(seen, reference.parseRequest(bytes, limits), JSON.stringify(bytes.toString('latin1')));
    }
    assert.ok(accepted > HEADS / 10 && accepted < HEADS * 0.9, `${accepted} of ${HEADS} accepted`);
  });

  it('the reference reads damaged responses alike', () => {
    const random = new SeededRandom(3);
    let accepted = 0;
    for (let round = 0; round < HEADS; round += 1) {
      const bytes = Buffer.from(mutate(RESPONSE_SEEDS, random), 'latin1');
      const method = random.of(METHODS);
      const limits = { ...LIMITS, takesChunkedLength: random.of([false, true]) };
      const result = codec.parseResponse(bytes, 0, bytes.length, limits, Method[method]);
      if (result > 0) accepted += 1;
      const seen = outcome(result, () => describeResponse(codec));
      assert.deepEqual(seen, reference.parseResponse(bytes, limits, method), JSON.stringify(bytes.toString('latin1')));
    }
    assert.ok(accepted > HEADS / 10 && accepted < HEADS * 0.9, `${accepted} of ${HEADS} accepted`);
  });

  it('a rewritten head is read as the same message again, with nothing of this hop left', () => {
    const random = new SeededRandom(4);
    let accepted = 0;
    for (let round = 0; round < HEADS; round += 1) {
      const bytes = Buffer.from(mutate(REQUEST_SEEDS, random), 'latin1');
      if (codec.parseRequest(bytes, 0, bytes.length, LIMITS) <= 0) continue;
      if (codec.request.authority() === '') codec.request.replaceHost('default.example');
      accepted += 1;
      const { path, authority, framing, contentLength, method } = reference.parseRequest(
        bytes,
        LIMITS,
      ) as reference.Request;
      const written = Buffer.from(codec.requestText(codec.writeRequest()), 'latin1');
      const again = reference.parseRequest(written, { maxHeadBytes: 2000, maxFields: 20 }) as reference.Request;
      const expected = { path, authority: authority || 'default.example', framing, contentLength, method };
      const seen = { path: again.path, authority: again.authority, framing: again.framing };
      assert.deepEqual({ ...seen, contentLength: again.contentLength, method: again.method }, expected);
      assert.equal(again.length, written.length);
      assert.equal(again.minor, 1);
      assert.deepEqual(
        again.fields.filter((field) => field.dropped),
        [],
      );
    }
    assert.ok(accepted > HEADS / 10);
  });

  it('the chunk scanner passes what the reference decodes, however the bytes are cut, and nothing else', () => {
    const random = new SeededRandom(5);
    const scanner = new ChunkScanner();
    let accepted = 0;
    for (let round = 0; round < HEADS; round += 1) {
      const text = mutate(CHUNKED_SEEDS, random);
      const expected = decodeChunked(text);
      if (expected !== undefined) accepted += 1;
      assert.deepEqual(scanInPieces(scanner, text, random), expected, JSON.stringify(text));
    }
    assert.ok(accepted > HEADS / 10);
  });
});

function scanInPieces(scanner: ChunkScanner, text: string, random: SeededRandom): object | undefined {
  const bytes = Buffer.from(text, 'latin1');
  scanner.reset();
  let data = '';
  let trailers = '';
  let at = 0;
  while (at < bytes.length) {
    const end = Math.min(bytes.length, at + 1 + random.below(20));
    const next = scanner.next(bytes, at, end);
    if (next < 0) return undefined;
    if (scanner.span === ChunkSpan.DATA) data += text.slice(at, next);
    else if (scanner.span === ChunkSpan.TRAILERS) trailers += text.slice(at, next);
    at = next;
    if (scanner.isDone) return { length: at, data, trailers: Trailers.parse(trailers).entries() };
  }
  return undefined;
}
