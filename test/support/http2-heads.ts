// Both builds of the HTTP/2 module over a codec each, for tests: lists of fields in, readings out.

import { compileHttp1, Http1Codec, Method } from '../../src/wasm/http1.ts';
import { blockFault, type Http2Build, Http2Heads } from '../../src/wasm/http2.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { type Field, ReferenceEncoder } from './reference/hpack.ts';

export const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };
export const BUILDS: readonly Http2Build[] = ['http2', 'http2-scalar'];

const http1 = compileHttp1();

export class TestHeads {
  readonly codec = new Http1Codec(http1);
  readonly heads: Http2Heads;

  constructor(name: Http2Build = 'http2') {
    this.heads = new Http2Heads({ name, module: compileModule(name) }, this.codec);
  }

  /** The name of the fault of a request of these fields, or the request as lines. */
  request(fields: readonly Field[], flags = 1, limits = LIMITS): string | string[] {
    return this.#withDecoder((decoder) => {
      const block = plainBlock(fields);
      const result = this.heads.decodeRequest(decoder, block, 0, block.length, limits, flags);
      return result < 0 ? blockFault(result) : this.requestLines();
    });
  }

  response(fields: readonly Field[], flags = 1, method: number = Method.GET): string | string[] {
    return this.#withDecoder((decoder) => {
      const block = plainBlock(fields);
      const result = this.heads.decodeResponse(decoder, block, 0, block.length, LIMITS, flags, method);
      if (result < 0) return blockFault(result);
      return [String(this.codec.response.status), ...lines(this.codec.response.entries())];
    });
  }

  trailers(fields: readonly Field[], limits = LIMITS): string {
    return this.#withDecoder((decoder) => {
      const block = plainBlock(fields);
      const result = this.heads.decodeTrailers(decoder, block, 0, block.length, limits);
      return result < 0 ? blockFault(result) : this.heads.linesText(result);
    });
  }

  /** Method and target, then every field that goes on. */
  requestLines(): string[] {
    const { request } = this.codec;
    return [`${request.method} ${request.target()}`, ...lines(request.entries())];
  }

  /** The block written last. */
  block(length: number): Buffer {
    const block = Buffer.alloc(length);
    this.heads.copyBlock(0, length, block, 0);
    return block;
  }

  #withDecoder<Result>(run: (decoder: number) => Result): Result {
    const decoder = this.heads.createDecoder(4096);
    try {
      return run(decoder);
    } finally {
      this.heads.release(decoder);
    }
  }
}

function lines(entries: readonly (readonly [string, string])[]): string[] {
  return entries.map(([name, value]) => `${name}: ${value}`);
}

/** A block without compression. */
export function plainBlock(fields: readonly Field[]): Buffer {
  const encoder = new ReferenceEncoder();
  const choice = { form: 'plain', huffman: false, namesIndex: false } as const;
  return Buffer.from(fields.flatMap((field) => encoder.field(field, choice)));
}
