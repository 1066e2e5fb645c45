// Clients of HTTP and JSON call methods of gRPC: what path, query and body say becomes a message, and the answer JSON. Worker
// thread; step 3 of the request flow. Requests that no method fits, and those of gRPC, go past it as they came.

import { GrpcStatus, httpStatusOfGrpc, INVALID_GRPC_STATUS, readGrpcStatus } from '../../../base/grpc-status.ts';
import type { JsonValue } from '../../../base/json.ts';
import {
  type BodyData,
  type EditableHead,
  type FilterCallbacks,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  isGrpc,
  ReplyForm,
  replaceField,
  type Trailers,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { frameHead } from '../grpc/frames.ts';
import { FrameReader } from './frame-reader.ts';
import { JsonArrayReader } from './json-messages.ts';
import type { TranscoderSettings } from './settings.ts';
import { type MatchedCall, RequestFault, Transcoder } from './transcoder.ts';

const NO_BYTES = Buffer.alloc(0);
const GRPC_ANSWER = /^application\/grpc(?:\+proto)?(?:$|[; ])/;
const JSON_TYPE = 'application/json';
const EVENTS_TYPE = 'text/event-stream';
const DETAILS = 'grpc-status-details-bin';

class TranscoderFilter implements HttpFilter {
  readonly #own: Transcoder;
  readonly #callbacks: FilterCallbacks;
  readonly #originalPathHeader: string;
  #transcoder: Transcoder;
  /** Null for a request that goes past. */
  #call: MatchedCall | null = null;
  #contentType = '';
  /** Of a client that sends several messages. */
  #elements: JsonArrayReader | null = null;
  #hasSentFirst = false;
  #parts: Buffer[] = [];
  #heldBytes = 0;
  readonly #frames = new FrameReader();
  #isAnswer = false;
  /** Of the answer. */
  #messageCount = 0;
  #answer: Buffer | null = null;

  constructor(own: Transcoder, originalPathHeader: string, callbacks: FilterCallbacks) {
    this.#own = own;
    this.#transcoder = own;
    this.#originalPathHeader = originalPathHeader;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    const callbacks = this.#callbacks;
    [this.#transcoder = this.#own] = callbacks.routeSettings as readonly Transcoder[];
    if (isGrpc(head) || callbacks.awaitsTunnel) return this.#pass();
    try {
      this.#call = this.#transcoder.match(head.method, head.path());
      if (this.#call === null) return this.#pass();
      this.#contentType = head.headerByName('content-type') ?? '';
      const { method } = this.#call.binding;
      if (method.isClientStreaming && !this.#call.takesRaw) this.#elements = new JsonArrayReader();
      this.#editHead(head, method.path);
      // Logs, retries and filters behind see a call, while its client goes on to be answered by HTTP.
      callbacks.becomeGrpc(ReplyForm.http);
      if (!isEnd) return method.isClientStreaming ? 'continue' : 'stop';
      callbacks.addRequestData(this.#first(NO_BYTES));
      return 'continue';
    } catch (error) {
      return this.#refuse(error);
    }
  }

  decodeData(data: BodyData): FilterStatus {
    const call = this.#call;
    if (call === null) return 'continue';
    try {
      if (call.binding.method.isClientStreaming) return this.#stream(call, data);
      this.#parts.push(Buffer.from(data.bytes));
      this.#heldBytes += data.bytes.length;
      data.bytes = NO_BYTES;
      if (this.#isAbove(this.#heldBytes, this.#transcoder.settings.maxRequestBytes)) {
        throw new RequestFault(413, 'the body is too large');
      }
      if (!data.isEnd) return 'stop';
      data.bytes = this.#first(Buffer.concat(this.#parts.splice(0)));
      return 'continue';
    } catch (error) {
      return this.#refuse(error);
    }
  }

  decodeTrailers(): FilterStatus {
    const call = this.#call;
    if (call === null) return 'continue';
    try {
      if (this.#elements !== null) this.#elements.end();
      const isMissing = !call.binding.method.isClientStreaming || (call.takesRaw && !this.#hasSentFirst);
      if (isMissing) this.#callbacks.addRequestData(this.#first(Buffer.concat(this.#parts.splice(0))));
      return 'continue';
    } catch (error) {
      return this.#refuse(error);
    }
  }

  encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
    const call = this.#call;
    const callbacks = this.#callbacks;
    const type = head.headerByName('content-type') ?? '';
    this.#isAnswer = call !== null && !callbacks.isLocalReply && status === 200 && GRPC_ANSWER.test(type);
    if (!this.#isAnswer) {
      if (!callbacks.isLocalReply) callbacks.leaveResponse();
      return 'continue';
    }
    const { isServerStreaming } = call!.binding.method;
    const { streams } = this.#transcoder.settings.print;
    replaceField(head, 'content-type', isServerStreaming && streams === 'events' ? EVENTS_TYPE : JSON_TYPE);
    if (isEnd) {
      const text = head.headerByName('grpc-status');
      const body = this.#conclude(text, head.headerByName('grpc-message'), head.headerByName(DETAILS));
      if (body !== null) callbacks.addResponseData(body);
      else if (isServerStreaming && text === '0') callbacks.addResponseData(this.#streamEnd());
      return 'continue';
    }
    return isServerStreaming && !call!.givesRaw ? 'continue' : 'stop';
  }

  encodeData(data: BodyData): FilterStatus {
    if (!this.#isAnswer) return 'continue';
    const call = this.#call!;
    try {
      const messages = this.#frames.read(data.bytes);
      data.bytes = NO_BYTES;
      const largest = Math.max(this.#frames.heldBytes, ...messages.map(({ length }) => length));
      if (this.#isAbove(largest, this.#transcoder.settings.maxResponseBytes))
        throw new RangeError('a message is too large');
      const texts = messages.map((message) => this.#printed(call, message));
      if (call.binding.method.isServerStreaming) {
        data.bytes = Buffer.concat(texts);
        if (data.isEnd) data.bytes = Buffer.concat([data.bytes, this.#streamEnd()]);
        return this.#messageCount === 0 && call.givesRaw && !data.isEnd ? 'stop' : 'continue';
      }
      if (texts.length > 0) this.#answer = texts.at(-1)!;
      if (!data.isEnd) return 'stop';
      // A call that says nothing of its end has not ended well.
      data.bytes = this.#conclude(undefined, undefined, undefined) ?? NO_BYTES;
      return 'continue';
    } catch (error) {
      return this.#breakOff(error);
    }
  }

  encodeTrailers(trailers: Trailers): FilterStatus {
    if (!this.#isAnswer) return 'continue';
    const callbacks = this.#callbacks;
    const call = this.#call!;
    // The head of a raw stream waits for its first message: where there is none, it can still tell how the call has ended.
    const hasBegun = this.#messageCount > 0 || !call.givesRaw;
    if (call.binding.method.isServerStreaming && hasBegun) {
      const end = this.#streamEnd();
      if (end.length > 0) callbacks.addResponseData(end);
      return 'continue';
    }
    const body = this.#conclude(trailers.get('grpc-status'), trailers.get('grpc-message'), trailers.get(DETAILS));
    for (const [name] of trailers.entries()) trailers.remove(name);
    if (body !== null) callbacks.addResponseData(body);
    return 'continue';
  }

  #pass(): FilterStatus {
    this.#callbacks.leaveRequest();
    return 'continue';
  }

  #editHead(live: RequestHead, path: string): void {
    const callbacks = this.#callbacks;
    const original = live.path();
    const head = callbacks.heldRequestHead('POST');
    replaceField(head, this.#originalPathHeader, original);
    replaceField(head, 'content-type', 'application/grpc');
    replaceField(head, 'te', 'trailers');
    replaceField(head, 'grpc-accept-encoding', 'identity');
    head.removeField('accept-encoding');
    head.replaceTarget(path);
    if (this.#transcoder.settings.keepsRoute) callbacks.settleEditedHead();
    else callbacks.settleRequestHead();
  }

  /** The frame of the first message, or of the only one. @param body whole. */
  #first(body: Buffer): Buffer {
    const call = this.#call!;
    this.#hasSentFirst = true;
    const json = call.takesRaw ? this.#rawJson(body) : parsed(body);
    return framed(this.#transcoder.first(call, json));
  }

  #stream(call: MatchedCall, data: BodyData): FilterStatus {
    const elements = this.#elements;
    const found =
      elements === null
        ? this.#rawPieces(data.bytes, data.isEnd)
        : elements.read(data.bytes).map((text) => parsed(text));
    if (data.isEnd) elements?.end();
    if (this.#isAbove(elements?.heldBytes ?? 0, this.#transcoder.settings.maxRequestBytes)) {
      throw new RequestFault(413, 'an element of the body is too large');
    }
    const frames = found.map((json) => {
      const message = this.#hasSentFirst ? this.#transcoder.next(call, json!) : this.#transcoder.first(call, json);
      this.#hasSentFirst = true;
      return framed(message);
    });
    data.bytes = Buffer.concat(frames);
    return 'continue';
  }

  /** What has come goes on at once, as a message of its own; of a body without any there is an empty one. */
  #rawPieces(bytes: Buffer, isEnd: boolean): JsonValue[] {
    if (bytes.length > 0 || (isEnd && !this.#hasSentFirst)) return [this.#rawJson(bytes)];
    return [];
  }

  #rawJson(bytes: Buffer): JsonValue {
    return { content_type: this.#contentType, data: bytes.toString('base64') };
  }

  #printed(call: MatchedCall, message: Buffer): Buffer {
    const { messages, settings } = this.#transcoder;
    const { responseBody, method } = call.binding;
    const isFirst = this.#messageCount === 0;
    this.#messageCount += 1;
    if (call.givesRaw) {
      const { contentType, data } = messages.raw(call.responseType, message, responseBody);
      const head = isFirst ? this.#callbacks.heldResponseHead() : null;
      if (head !== null && contentType !== '') replaceField(head, 'content-type', contentType);
      return data;
    }
    const text = messages.text(call.responseType, message, responseBody);
    if (!method.isServerStreaming) return Buffer.from(text);
    const { streams } = settings.print;
    if (streams === 'lines') return Buffer.from(`${text}\n`);
    if (streams === 'events') return Buffer.from(`data: ${text}\n\n`);
    return Buffer.from(`${isFirst ? '[' : ','}${text}`);
  }

  #streamEnd(): Buffer {
    if (this.#call!.givesRaw || this.#transcoder.settings.print.streams !== 'array') return NO_BYTES;
    return Buffer.from(this.#messageCount === 0 ? '[]' : ']');
  }

  /** The status of the call becomes that of the response. @returns its body; null for none. */
  #conclude(text: string | undefined, message: string | undefined, details: string | undefined): Buffer | null {
    const told = readGrpcStatus(text ?? '');
    const status = told === INVALID_GRPC_STATUS ? GrpcStatus.unknown : told;
    const isGood = status === GrpcStatus.ok;
    const head = this.#callbacks.heldResponseHead(isGood ? undefined : httpStatusOfGrpc(status));
    if (head !== null) {
      replaceField(head, 'grpc-status', String(status));
      if (message !== undefined) replaceField(head, 'grpc-message', message);
      head.removeField(DETAILS);
    }
    if (isGood || this.#answer !== null || !this.#transcoder.settings.convertsStatus) return this.#answer;
    return Buffer.from(JSON.stringify(this.#statusJson(status, message, details)));
  }

  #statusJson(status: number, message: string | undefined, details: string | undefined): JsonValue {
    const known = details === undefined ? undefined : this.#transcoder.messages.status(Buffer.from(details, 'base64'));
    if (known !== undefined) return known;
    const text = message === undefined ? '' : unescaped(message);
    return { code: status, ...(text === '' ? {} : { message: text }) };
  }

  #isAbove(bytes: number, limit: number): boolean {
    return bytes > (limit === 0 ? this.#callbacks.bufferLimitBytes : limit);
  }

  #refuse(error: unknown): FilterStatus {
    const isFault = error instanceof RequestFault || error instanceof SyntaxError;
    if (!isFault) throw error;
    const status = error instanceof RequestFault ? error.status : 400;
    this.#call = null;
    this.#callbacks.reply({ status, body: error.message, flag: '-', details: 'grpc_transcoding_request_failed' });
    return 'stop';
  }

  #breakOff(error: unknown): FilterStatus {
    this.#isAnswer = false;
    const body = `the answer of the service cannot be read: ${String((error as Error).message)}`;
    this.#callbacks.reply({ status: 502, body, flag: '-', details: 'grpc_transcoding_response_failed' });
    return 'stop';
  }
}

function framed(message: Uint8Array): Buffer {
  return Buffer.concat([frameHead(0, message.length), message]);
}

/** @returns undefined for a body that is empty. @throws SyntaxError. */
function parsed(body: Buffer | string): JsonValue | undefined {
  const text = body.toString();
  return text.trim() === '' ? undefined : (JSON.parse(text) as JsonValue);
}

/** A grpc-message, whose bytes beyond ASCII are escaped. */
function unescaped(message: string): string {
  const bytes = message.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString();
}

export const GRPC_JSON_TRANSCODER_FILTER: HttpFilterKind = {
  requestBody: 'edits',
  encodes: true,
  responseBody: 'edits',
  remakesRequests: true,
  compileForRoute: (settings) => new Transcoder(settings as TranscoderSettings),
  compile(settings, context) {
    const transcoder = new Transcoder(settings as TranscoderSettings);
    const { originalPath } = context.headerNames;
    return (callbacks) => new TranscoderFilter(transcoder, originalPath, callbacks);
  },
};
