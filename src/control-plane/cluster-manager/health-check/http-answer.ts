// One answer of a host to a check by HTTP/1, as it comes in, up to its end. The size of its head and the number of interim
// answers are bounded here, the length of all of it by the connection. RFC 9112.

import {
  ChunkScanner,
  ChunkSpan,
  codecError,
  Framing,
  HEADER_ID,
  type HeadLimits,
  type Http1Codec,
} from '../../../wasm/http1.ts';

const HEAD_LIMITS: HeadLimits = { maxHeadBytes: 60 * 1024, maxFields: 100 };
const MAX_INTERIM_ANSWERS = 10;

export interface AnswerFacts {
  readonly status: number;
  readonly isDegraded: boolean;
  readonly isImmediateFailure: boolean;
  /** Which cluster answers, where it says so. */
  readonly cluster: string | undefined;
}

/** Where an answer stands: whether more has to come, and if not, what became of it. */
export type AnswerState =
  | { readonly kind: 'reading' }
  | { readonly kind: 'complete'; readonly isReusable: boolean }
  | { readonly kind: 'broken'; readonly reason: string };

const READING: AnswerState = { kind: 'reading' };

export class HttpAnswer {
  readonly #codec: Http1Codec;
  readonly #method: number;
  readonly #onBody: (bytes: Buffer) => void;
  /** A head whose end has not come yet. */
  #partialHead: Buffer | undefined;
  #facts: AnswerFacts | undefined;
  #framing: number = Framing.NONE;
  /** Bytes to come under Framing.LENGTH. */
  #remaining = 0;
  #chunks: ChunkScanner | undefined;
  #isPersistent = false;
  #interimAnswers = 0;

  /** @param method of the request, one of Method. @param onBody is lent the bytes of the body. */
  constructor(codec: Http1Codec, method: number, onBody: (bytes: Buffer) => void) {
    this.#codec = codec;
    this.#method = method;
    this.#onBody = onBody;
  }

  /** Undefined before the end of the head. */
  get facts(): AnswerFacts | undefined {
    return this.#facts;
  }

  read(bytes: Buffer): AnswerState {
    if (this.#facts !== undefined) return this.#readBody(bytes, 0);
    const all = this.#partialHead === undefined ? bytes : Buffer.concat([this.#partialHead, bytes]);
    this.#partialHead = undefined;
    return this.#readHead(all);
  }

  /** The host has closed its side. */
  end(): AnswerState {
    if (this.#framing === Framing.UNTIL_CLOSE) return complete(false);
    return brokenBy(this.#facts === undefined ? 'closed before the answer' : 'closed in the middle of the answer');
  }

  #readHead(bytes: Buffer): AnswerState {
    let at = 0;
    for (;;) {
      const length = this.#codec.parseResponse(bytes, at, bytes.length, HEAD_LIMITS, this.#method);
      if (length < 0) return noHttp(length);
      if (length === 0) {
        // The buffer that the socket has lent is its own again.
        this.#partialHead = Buffer.from(bytes.subarray(at));
        return READING;
      }
      at += length;
      const { status } = this.#codec.response;
      if (status >= 200 || this.#codec.response.framing === Framing.TUNNEL) return this.#beginBody(bytes, at);
      this.#interimAnswers += 1;
      if (this.#interimAnswers > MAX_INTERIM_ANSWERS) return brokenBy('interim answers without end');
    }
  }

  #beginBody(bytes: Buffer, at: number): AnswerState {
    const head = this.#codec.response;
    this.#facts = {
      status: head.status,
      isDegraded: head.has(HEADER_ID['x-proxy-degraded']),
      isImmediateFailure: head.has(HEADER_ID['x-proxy-immediate-health-check-fail']),
      cluster: head.header(HEADER_ID['x-proxy-upstream-healthchecked-cluster']),
    };
    this.#framing = head.framing;
    this.#remaining = head.contentLength;
    this.#isPersistent = head.isPersistent;
    if (this.#framing === Framing.CHUNKED) {
      this.#chunks = new ChunkScanner();
      this.#chunks.reset(HEAD_LIMITS);
    }
    return this.#readBody(bytes, at);
  }

  #readBody(bytes: Buffer, start: number): AnswerState {
    switch (this.#framing) {
      case Framing.NONE:
        return this.#ended(bytes, start);
      case Framing.LENGTH: {
        const end = Math.min(bytes.length, start + this.#remaining);
        this.#remaining -= end - start;
        this.#onBody(bytes.subarray(start, end));
        return this.#remaining === 0 ? this.#ended(bytes, end) : READING;
      }
      case Framing.CHUNKED:
        return this.#readChunks(bytes, start);
      case Framing.UNTIL_CLOSE:
        this.#onBody(bytes.subarray(start));
        return READING;
      default:
        // A tunnel: what follows is no answer any more.
        return complete(false);
    }
  }

  #readChunks(bytes: Buffer, start: number): AnswerState {
    const chunks = this.#chunks!;
    let at = start;
    while (at < bytes.length && !chunks.isDone) {
      const next = chunks.next(bytes, at, bytes.length);
      if (next < 0) return noHttp(next);
      if (chunks.span === ChunkSpan.DATA) this.#onBody(bytes.subarray(at, next));
      at = next;
    }
    return chunks.isDone ? this.#ended(bytes, at) : READING;
  }

  /** What comes behind an answer belongs to no question. */
  #ended(bytes: Buffer, end: number): AnswerState {
    return complete(this.#isPersistent && end === bytes.length);
  }
}

function complete(isReusable: boolean): AnswerState {
  return { kind: 'complete', isReusable };
}

/** @param code of the codec, below 0. */
function noHttp(code: number): AnswerState {
  return brokenBy(`no HTTP: ${codecError(code).reason}`);
}

function brokenBy(reason: string): AnswerState {
  return { kind: 'broken', reason };
}
