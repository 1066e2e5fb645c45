// A response through the filters, on its way from the router: the one next to the router comes first.

import { codecError, Framing, Method } from '../../wasm/http1.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { announceBody } from './body-announcement.ts';
import type { BodyPlan } from './body-uses.ts';
import type { BodyData, FilterStatus, HttpFilter } from './filter.ts';
import { FilterPass } from './filter-pass.ts';
import { type FilteredStream, NO_LIMITS } from './filtered-stream.ts';
import { mayHaveBody, RESPONSE_HELD_TOO_LARGE, statusLine } from './local-reply.ts';
import type { Trailers } from './trailers.ts';

export class EncodingPass extends FilterPass {
  protected readonly isCopiedOnDelivery = true;
  readonly #context: WorkerContext;
  readonly #stream: FilteredStream;
  readonly #filters: readonly HttpFilter[];
  readonly #last: number;
  #heldHead = '';
  /** Of a body that filters have changed. */
  #newFraming: number | null = null;

  /** @param filters in the order of requests. @param first as for FilterPass. */
  constructor(
    context: WorkerContext,
    stream: FilteredStream,
    filters: readonly HttpFilter[],
    plan: BodyPlan,
    first = 0,
  ) {
    super(plan, stream.bufferLimitBytes, first);
    this.#context = context;
    this.#stream = stream;
    this.#filters = filters;
    this.#last = filters.length - 1;
  }

  /** As FilterCallbacks.heldResponseHead. */
  editHeldHead(index: number, status: number | undefined): EditableHead {
    this.reviveHeadFor(index);
    if (status !== undefined && this.saveHead()) {
      this.#stream.status = status;
      this.#heldHead = this.#heldHead.replace(/^[^\r]*\r\n/, statusLine(status));
      this.restoreHead();
    }
    return this.#context.codec.response;
  }

  protected override visitHead(index: number, isEnd: boolean): FilterStatus {
    const { response } = this.#context.codec;
    return this.#filters[this.#last - index]!.encodeHeaders?.(response, response.status, isEnd) ?? 'continue';
  }

  protected override visitData(index: number, data: BodyData): FilterStatus | undefined {
    return this.#filters[this.#last - index]!.encodeData?.(data);
  }

  protected override visitTrailers(index: number, trailers: Trailers): FilterStatus | undefined {
    return this.#filters[this.#last - index]!.encodeTrailers?.(trailers);
  }

  protected override visitWithRoom(index: number): void {
    this.#filters[this.#last - index]!.onResponseRoom?.();
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

  protected override mayHaveBody(): boolean {
    return this.#stream.methodId !== Method.HEAD && mayHaveBody(this.#context.codec.response.status);
  }

  protected override reframe(length: number | null): void {
    const { response } = this.#context.codec;
    // What follows is no HTTP any more.
    if (this.framing === Framing.TUNNEL) return;
    if (!this.mayHaveBody()) {
      // What length the body would have, if there were one, only the filters could say.
      response.removeField('content-length');
      return;
    }
    this.#newFraming = announceBody(response, length);
  }

  /** It came in a buffer that others use next. */
  protected override keepBytes(bytes: Buffer, start: number, end: number): Buffer {
    return Buffer.from(bytes.subarray(start, end));
  }

  protected override deliver(
    withHead: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    trailers: Trailers | null,
  ): boolean {
    this.#stream.responseTrailers = trailers;
    const nowMs = this.#context.clock.monotonicMs();
    if (withHead) {
      const framing = this.#newFraming ?? this.framing;
      return this.#stream.respond(bytes, start, end, isEnd, true, framing, nowMs);
    }
    return this.#stream.respondBody(bytes, start, end, isEnd, false, nowMs);
  }

  protected override resumeReading(): void {
    this.#stream.resumeResponse();
  }

  protected override onOverflow(): void {
    this.#stream.giveUp(RESPONSE_HELD_TOO_LARGE);
  }
}
