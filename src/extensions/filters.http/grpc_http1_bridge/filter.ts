// Lets clients of HTTP/1.1 make unary calls of gRPC: what the trailers say comes in the head, and a call that fails is a 503.
// Where it is asked to, it makes a message of gRPC of a bare one and the other way round. Worker thread; step 3 of the request
// flow. Requests over HTTP/2, and those of anything else, go past it.

import {
  type BodyData,
  type EditableHead,
  type FilterCallbacks,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  isGrpc,
  REQUEST_HELD_TOO_LARGE,
  ReplyForm,
  replaceField,
  type Trailers,
} from '../../../data-plane/index.ts';
import { HEADER_ID, type RequestHead } from '../../../wasm/http1.ts';
import { FRAME_HEAD_BYTES, frameHead } from '../grpc/frames.ts';
import type { GrpcBridgeSettings } from './settings.ts';

const CONTENT_TYPE = HEADER_ID['content-type'];
const PROTOBUF = 'application/x-protobuf';
const NO_BYTES = Buffer.alloc(0);

class GrpcBridgeFilter implements HttpFilter {
  readonly #settings: GrpcBridgeSettings;
  readonly #callbacks: FilterCallbacks;
  #isBridging = false;
  /** The client knows nothing of what stands before messages. */
  #isFraming = false;
  readonly #request: Buffer[] = [];
  #requestBytes = 0;
  /** Bytes before the response's message that are still to be taken off. */
  #headBytes = 0;

  constructor(settings: GrpcBridgeSettings, callbacks: FilterCallbacks) {
    this.#settings = settings;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    if (!this.#callbacks.protocol.startsWith('HTTP/1')) return 'continue';
    this.#isBridging = true;
    this.#isFraming = isProtobuf(head);
    if (this.#isFraming) replaceField(head, 'content-type', 'application/grpc');
    const path = head.path();
    const query = this.#settings.dropsQuery ? path.indexOf('?') : -1;
    if (query !== -1) head.replaceTarget(path.slice(0, query));
    this.#callbacks.becomeGrpc(ReplyForm.both);
    if (query !== -1 || this.#isFraming) this.#callbacks.settleRequestHead();
    if (!this.#isFraming) return 'continue';
    if (!isEnd) return 'stop';
    this.#callbacks.addRequestData(frameHead(0, 0));
    return 'continue';
  }

  decodeData(data: BodyData): FilterStatus {
    if (!this.#isFraming) return 'continue';
    this.#request.push(Buffer.from(data.bytes));
    this.#requestBytes += data.bytes.length;
    data.bytes = NO_BYTES;
    if (this.#requestBytes > this.#callbacks.bufferLimitBytes) {
      this.#callbacks.reply(REQUEST_HELD_TOO_LARGE);
      return 'stop';
    }
    if (!data.isEnd) return 'stop';
    data.bytes = this.#framed();
    return 'continue';
  }

  decodeTrailers(): FilterStatus {
    if (this.#isFraming) this.#callbacks.addRequestData(this.#framed());
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
    if (!this.#isBridging) return 'continue';
    const isAnswer = status === 200 && (head.headerByName('content-type') ?? '').startsWith('application/grpc');
    if (this.#isFraming && isAnswer) {
      replaceField(head, 'content-type', PROTOBUF);
      if (!isEnd) this.#headBytes = FRAME_HEAD_BYTES;
    }
    if (!isEnd) return 'stop';
    if ((head.headerByName('grpc-status') ?? '0') !== '0') this.#callbacks.heldResponseHead(503);
    return 'continue';
  }

  encodeData(data: BodyData): FilterStatus {
    if (!this.#isBridging) return 'continue';
    const taken = Math.min(this.#headBytes, data.bytes.length);
    this.#headBytes -= taken;
    if (taken > 0) data.bytes = data.bytes.subarray(taken);
    return data.isEnd ? 'continue' : 'stop';
  }

  encodeTrailers(trailers: Trailers): FilterStatus {
    if (!this.#isBridging) return 'continue';
    const status = trailers.get('grpc-status');
    const message = trailers.get('grpc-message');
    const head = this.#callbacks.heldResponseHead(status === undefined || status === '0' ? undefined : 503);
    if (head !== null) {
      if (status !== undefined) replaceField(head, 'grpc-status', status);
      if (message !== undefined) replaceField(head, 'grpc-message', message);
    }
    // Its length is known without them, and the client needs no chunks.
    for (const [name] of trailers.entries()) trailers.remove(name);
    return 'continue';
  }

  #framed(): Buffer {
    return Buffer.concat([frameHead(0, this.#requestBytes), ...this.#request.splice(0)]);
  }
}

function isProtobuf(head: RequestHead): boolean {
  return head.header(CONTENT_TYPE) === PROTOBUF;
}

export const GRPC_BRIDGE_FILTER: HttpFilterKind = {
  requestBody: 'edits',
  encodes: true,
  responseBody: 'edits',
  isAwake: (settings, _context, head) =>
    isGrpc(head) || ((settings as GrpcBridgeSettings).upgradesProtobuf && isProtobuf(head)),
  compile: (settings) => (callbacks) => new GrpcBridgeFilter(settings as GrpcBridgeSettings, callbacks),
};
