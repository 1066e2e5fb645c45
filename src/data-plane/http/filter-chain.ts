// The filters of a connection manager before its router: compiled once per snapshot, opened for each request. Step 3
// of the request flow. A manager without filters has no chain, and its streams go straight to the router.

import { WeirError } from '../../base/errors.ts';
import type { HttpFilterSettings } from '../../snapshot/index.ts';
import { codecError, FIELD_LIMIT, HEAD_LIMIT_BYTES, type HeadLimits } from '../../wasm/http1.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { CreateFilter, FilterCallbacks, FilterStatus, HttpFilter, Trailers } from './filter.ts';
import { ChainContext } from './filter-context.ts';
import { FilterPass } from './filter-pass.ts';
import {
  type LocalReply,
  mayHaveBody,
  REQUEST_HELD_TOO_LARGE,
  RESPONSE_HELD_TOO_LARGE,
  REWRITE_FAILED,
} from './local-reply.ts';

/** A head that was written before has passed all limits of its connection. */
const NO_LIMITS: HeadLimits = { maxHeadBytes: HEAD_LIMIT_BYTES, maxFields: FIELD_LIMIT };

/** What filters need of the stream that they run for. */
export interface FilteredStream {
  readonly methodId: number;
  readonly bufferLimitBytes: number;
  readonly hasEnded: boolean;
  readonly hasResponse: boolean;
  forward(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean;
  forwardBody(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean;
  respond(bytes: Buffer, start: number, end: number, isEnd: boolean, isEdited: boolean, nowMs: number): boolean;
  respondBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;
  refuseResponse(reason: string): void;
  noteHeldHead(head: string): void;
  markHealthCheck(): void;
  giveUp(reply: LocalReply): void;
}

export class FilterChain {
  readonly create: readonly CreateFilter[];
  readonly readsRequestBody: boolean;
  readonly encodes: boolean;
  readonly readsResponseBody: boolean;

  /** @returns null when there are none. @throws WeirError for a filter that this build lacks. */
  static compile(
    context: WorkerContext,
    clusters: ClusterMap,
    filters: readonly HttpFilterSettings[],
  ): FilterChain | null {
    return filters.length === 0 ? null : new FilterChain(context, clusters, filters);
  }

  private constructor(context: WorkerContext, clusters: ClusterMap, filters: readonly HttpFilterSettings[]) {
    const chainContext = new ChainContext(context, clusters);
    const kinds = filters.map(({ name }) => {
      const kind = context.httpFilters[name];
      if (kind === undefined) throw new WeirError('WEIR_UNKNOWN_FILTER', `no HTTP filter is called ${name}`);
      return kind;
    });
    this.create = kinds.map((kind, index) => kind.compile(filters[index]!.settings, chainContext));
    this.readsRequestBody = kinds.some((kind) => kind.readsRequestBody);
    this.encodes = kinds.some((kind) => kind.encodes);
    this.readsResponseBody = kinds.some((kind) => kind.readsResponseBody);
  }

  open(context: WorkerContext, stream: FilteredStream): StreamFilters {
    return new StreamFilters(context, this, stream);
  }
}

/** The filters of one request, and how far its messages have come through them. */
export class StreamFilters {
  readonly encodes: boolean;
  readonly decoding: DecodingPass;
  readonly encoding: EncodingPass;
  readonly #filters: readonly HttpFilter[];

  constructor(context: WorkerContext, chain: FilterChain, stream: FilteredStream) {
    this.encodes = chain.encodes;
    this.#filters = chain.create.map((create, index) => create(this.#callbacksOf(stream, index)));
    this.decoding = new DecodingPass(context, chain, stream, this.#filters);
    this.encoding = new EncodingPass(context, chain, stream, this.#filters);
  }

  /** The request's head as it was when a filter stopped it; empty if none did. */
  get heldRequestHead(): string {
    return this.decoding.heldHead;
  }

  /** Lets filters edit a reply of the proxy's own. */
  encodeLocalReply(head: EditableHead, { status, body }: LocalReply): void {
    const isEnd = body === '' || !mayHaveBody(status);
    for (const filter of this.#filters.toReversed()) filter.encodeHeaders?.(head, status, isEnd);
  }

  /** There is another answer than the one that was on its way: nothing moves on. */
  abandon(): void {
    this.decoding.abandon();
    this.encoding.abandon();
  }

  destroy(): void {
    this.abandon();
    for (const filter of this.#filters) filter.onDestroy?.();
  }

  #callbacksOf(stream: FilteredStream, index: number): FilterCallbacks {
    return {
      reply: (reply) => {
        if (!stream.hasEnded && !stream.hasResponse) stream.giveUp(reply);
      },
      continueDecoding: () => this.decoding.goOn(index),
      continueEncoding: () => this.encoding.goOn(this.#filters.length - 1 - index),
      markHealthCheck: () => stream.markHealthCheck(),
    };
  }
}

class DecodingPass extends FilterPass {
  readonly #context: WorkerContext;
  readonly #stream: FilteredStream;
  readonly #filters: readonly HttpFilter[];
  #heldHead = '';

  constructor(context: WorkerContext, chain: FilterChain, stream: FilteredStream, filters: readonly HttpFilter[]) {
    super(filters.length, chain.readsRequestBody, stream.bufferLimitBytes);
    this.#context = context;
    this.#stream = stream;
    this.#filters = filters;
  }

  get heldHead(): string {
    return this.#heldHead;
  }

  protected override visitHead(index: number, isEnd: boolean): FilterStatus {
    return this.#filters[index]!.decodeHeaders?.(this.#context.codec.request, isEnd) ?? 'continue';
  }

  protected override visitData(index: number, bytes: Buffer, isEnd: boolean): FilterStatus | undefined {
    return this.#filters[index]!.decodeData?.(bytes, isEnd);
  }

  protected override visitTrailers(index: number, trailers: Trailers): FilterStatus | undefined {
    return this.#filters[index]!.decodeTrailers?.(trailers);
  }

  protected override saveHead(): boolean {
    const { codec, logs } = this.#context;
    const length = codec.writeRequest();
    if (length < 0) {
      logs.router.warning(`cannot rewrite a request: ${codecError(length).reason}`);
      this.#stream.giveUp(REWRITE_FAILED);
      return false;
    }
    this.#heldHead = codec.requestText(length);
    this.#stream.noteHeldHead(this.#heldHead);
    return true;
  }

  protected override restoreHead(): void {
    const bytes = Buffer.from(this.#heldHead, 'latin1');
    this.#context.codec.parseRequest(bytes, 0, bytes.length, NO_LIMITS);
  }

  protected override deliver(withHead: boolean, bytes: Buffer, isEnd: boolean): boolean {
    if (withHead) return this.#stream.forward(bytes, 0, bytes.length, isEnd);
    return this.#stream.forwardBody(bytes, 0, bytes.length, isEnd, this.#context.clock.monotonicMs());
  }

  protected override onOverflow(): void {
    this.#stream.giveUp(REQUEST_HELD_TOO_LARGE);
  }
}

/** The filters in reverse: index 0 is the one next to the router. */
class EncodingPass extends FilterPass {
  readonly #context: WorkerContext;
  readonly #stream: FilteredStream;
  readonly #filters: readonly HttpFilter[];
  #heldHead = '';

  constructor(context: WorkerContext, chain: FilterChain, stream: FilteredStream, filters: readonly HttpFilter[]) {
    super(filters.length, chain.readsResponseBody, stream.bufferLimitBytes);
    this.#context = context;
    this.#stream = stream;
    this.#filters = filters.toReversed();
  }

  protected override visitHead(index: number, isEnd: boolean): FilterStatus {
    const { response } = this.#context.codec;
    return this.#filters[index]!.encodeHeaders?.(response, response.status, isEnd) ?? 'continue';
  }

  protected override visitData(index: number, bytes: Buffer, isEnd: boolean): FilterStatus | undefined {
    return this.#filters[index]!.encodeData?.(bytes, isEnd);
  }

  protected override visitTrailers(index: number, trailers: Trailers): FilterStatus | undefined {
    return this.#filters[index]!.encodeTrailers?.(trailers);
  }

  protected override saveHead(): boolean {
    const { codec } = this.#context;
    const length = codec.writeResponse();
    if (length < 0) {
      this.#stream.refuseResponse(codecError(length).reason);
      return false;
    }
    this.#heldHead = codec.responseText(length);
    return true;
  }

  protected override restoreHead(): void {
    const bytes = Buffer.from(this.#heldHead, 'latin1');
    this.#context.codec.parseResponse(bytes, 0, bytes.length, NO_LIMITS, this.#stream.methodId);
  }

  protected override deliver(withHead: boolean, bytes: Buffer, isEnd: boolean): boolean {
    const nowMs = this.#context.clock.monotonicMs();
    if (withHead) return this.#stream.respond(bytes, 0, bytes.length, isEnd, true, nowMs);
    return this.#stream.respondBody(bytes, 0, bytes.length, isEnd, false, nowMs);
  }

  protected override onOverflow(): void {
    this.#stream.giveUp(RESPONSE_HELD_TOO_LARGE);
  }
}
