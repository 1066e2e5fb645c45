// Lets browsers speak to gRPC services: their requests become those of gRPC, and trailers, which no script gets to see, the
// last message of the body; all of it in base64 for those that ask. Worker thread; step 3 of the request flow. Other requests
// go past it. The wire format is PROTOCOL-WEB.md of gRPC.

import { grpcMessage, grpcStatusOfHttp } from '../../../base/grpc-status.ts';
import {
  type BodyData,
  type EditableHead,
  type FilterCallbacks,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
  ReplyForm,
  replaceField,
  type Trailers,
} from '../../../data-plane/index.ts';
import { HEADER_ID, type RequestHead } from '../../../wasm/http1.ts';
import { FrameCounter, frameHead } from '../grpc/frames.ts';
import { GrpcStats, methodOf } from '../grpc/method-stats.ts';
import { Base64Reader, Base64Writer } from './base64.ts';

const CONTENT_TYPE = HEADER_ID['content-type'];
const TEXT_TYPES: ReadonlySet<string> = new Set(['application/grpc-web-text', 'application/grpc-web-text+proto']);
const TYPES: ReadonlySet<string> = new Set(['application/grpc-web', 'application/grpc-web+proto', ...TEXT_TYPES]);
const GRPC_ANSWER = /^application\/grpc(?:$|\+)/;
const WEB_ANSWER = /^application\/grpc-web(?:\+proto)? *(?:$|;)/i;

/** Flags of a message that is made of trailers. */
const TRAILERS = 0x80;
/** Of a body that becomes a message for people. */
const MAX_EXPLANATION_BYTES = 16 * 1024;
const NO_BYTES = Buffer.alloc(0);

const NO_BASE64: LocalReply = {
  status: 400,
  body: 'Bad gRPC-web request, invalid base64 data.',
  flag: '-',
  details: 'grpc_base_64_decode_failed',
};

class GrpcWebFilter implements HttpFilter {
  readonly #stats: GrpcStats;
  readonly #callbacks: FilterCallbacks;
  #method: string | undefined = undefined;
  /** Null for bodies of bytes. */
  #reader: Base64Reader | null = null;
  #writer: Base64Writer | null = null;
  readonly #frames = new FrameCounter();
  /** What an upstream has said in other words than those of gRPC; null while nothing. */
  #explanation: Buffer | null = null;
  #status = 0;

  constructor(stats: GrpcStats, callbacks: FilterCallbacks) {
    this.#stats = stats;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    this.#method = methodOf(head.path());
    if (TEXT_TYPES.has(head.header(CONTENT_TYPE) ?? '')) this.#reader = new Base64Reader();
    if (TEXT_TYPES.has(head.headerByName('accept') ?? '')) this.#writer = new Base64Writer();
    replaceField(head, 'content-type', 'application/grpc');
    replaceField(head, 'te', 'trailers');
    if (!head.hasField('grpc-accept-encoding')) head.append('grpc-accept-encoding', 'identity');
    this.#callbacks.becomeGrpc(ReplyForm.both);
    return 'continue';
  }

  decodeData(data: BodyData): FilterStatus {
    const reader = this.#reader;
    if (reader === null) return 'continue';
    const decoded = reader.read(data.bytes);
    if (decoded === undefined || (data.isEnd && !reader.isWhole)) {
      this.#callbacks.reply(NO_BASE64);
      return 'stop';
    }
    data.bytes = decoded;
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
    const type = head.headerByName('content-type') ?? '';
    const grpcStatus = head.headerByName('grpc-status');
    const isGrpc = isEnd
      ? grpcStatus !== undefined
      : status === 200 && (GRPC_ANSWER.test(type) || WEB_ANSWER.test(type));
    this.#count(grpcStatus);
    this.#status = status;
    replaceField(head, 'content-type', `application/grpc-web${this.#writer === null ? '' : '-text'}+proto`);
    if (isGrpc) return 'continue';
    this.#explanation = NO_BYTES;
    if (!isEnd) return 'stop';
    this.#explain(head);
    return 'continue';
  }

  encodeData(data: BodyData): FilterStatus {
    const { bytes, isEnd } = data;
    if (this.#explanation !== null) {
      const room = MAX_EXPLANATION_BYTES - this.#explanation.length;
      this.#explanation = Buffer.concat([this.#explanation, bytes.subarray(0, room)]);
      data.bytes = NO_BYTES;
      return isEnd ? this.#explainHeld() : 'stop';
    }
    if (this.#writer === null) return 'continue';
    this.#frames.see(bytes);
    data.bytes = this.#writer.write(bytes, isEnd || this.#frames.isBetween);
    return 'continue';
  }

  encodeTrailers(trailers: Trailers): FilterStatus {
    this.#count(trailers.get('grpc-status'));
    if (this.#explanation !== null) return this.#explainHeld();
    const lines = Buffer.from(
      trailers
        .entries()
        .map(([name, value]) => `${name}:${value}\r\n`)
        .join(''),
      'latin1',
    );
    for (const [name] of trailers.entries()) trailers.remove(name);
    const frame = Buffer.concat([frameHead(TRAILERS, lines.length), lines]);
    this.#callbacks.addResponseData(this.#writer === null ? frame : this.#writer.write(frame, true));
    return 'continue';
  }

  #explainHeld(): FilterStatus {
    const head = this.#callbacks.heldResponseHead();
    if (head !== null) this.#explain(head);
    return 'continue';
  }

  #explain(head: EditableHead): void {
    replaceField(head, 'grpc-status', String(grpcStatusOfHttp(this.#status)));
    const message = grpcMessage(this.#explanation!.toString());
    if (message !== '') replaceField(head, 'grpc-message', message);
  }

  #count(status: string | undefined): void {
    const { cluster } = this.#callbacks;
    if (status === undefined || cluster === null || this.#method === undefined) return;
    this.#stats.of(cluster, this.#method).ended(status);
  }
}

export const GRPC_WEB_FILTER: HttpFilterKind = {
  requestBody: 'edits',
  encodes: true,
  responseBody: 'edits',
  isAwake: (_settings, _context, head) => TYPES.has(head.header(CONTENT_TYPE) ?? ''),
  compile() {
    const stats = new GrpcStats('grpc-web');
    return (callbacks) => new GrpcWebFilter(stats, callbacks);
  },
};
