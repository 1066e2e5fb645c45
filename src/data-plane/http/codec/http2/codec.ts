// What the HTTP/2 sessions of one worker share, of both roles: the heads of its codec, memory for output, and the turn in
// which all of them write. Made with the first session.

import type { Http1Codec } from '../../../../wasm/http1.ts';
import { Http2Heads, type Http2Module } from '../../../../wasm/http2.ts';
import { FlushQueue } from './flush-queue.ts';
import { FrameSlabs } from './frame-output.ts';

export class Http2Codec {
  readonly codec: Http1Codec;
  readonly heads: Http2Heads;
  readonly slabs = new FrameSlabs();
  readonly flushes: FlushQueue;

  /** @param onFault told of what a flush has thrown. */
  constructor(module: Http2Module, codec: Http1Codec, onFault: (error: unknown) => void) {
    this.codec = codec;
    this.heads = new Http2Heads(module, codec);
    this.flushes = new FlushQueue(onFault);
  }
}
