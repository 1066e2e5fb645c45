// Request headers where the codec has parsed them, for logs and header values of requests that have no head of their
// own, because they are answered without an upstream. Right only until the next request is parsed.

import type { Http1Codec } from '../../wasm/http1.ts';
import type { LiveHead } from '../format/stream-facts.ts';

export class CodecRequestHead implements LiveHead {
  readonly #codec: Http1Codec;

  constructor(codec: Http1Codec) {
    this.#codec = codec;
  }

  requestHeader(name: string): string | undefined {
    const head = this.#codec.request;
    switch (name) {
      case ':method':
        return head.method;
      case ':path':
        return head.path();
      case ':authority':
        return head.authority() || undefined;
      case ':scheme':
        return head.headerByName('x-forwarded-proto') ?? 'http';
      default:
        return head.valuesByName(name)[0];
    }
  }
}
