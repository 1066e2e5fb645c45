// A request through the filters, on its way to the router.

import { codecError, Framing, HEADER_ID, type RequestHead } from '../../wasm/http1.ts';
import type { WorkerContext } from '../worker-context.ts';
import { announceBody } from './body-announcement.ts';
import type { BodyPlan } from './body-uses.ts';
import type { BodyData, FilterStatus, HttpFilter } from './filter.ts';
import { FilterPass } from './filter-pass.ts';
import { type FilteredStream, NO_LIMITS } from './filtered-stream.ts';
import { REQUEST_HELD_TOO_LARGE, REWRITE_FAILED } from './local-reply.ts';
import type { Trailers } from './trailers.ts';

export class DecodingPass extends FilterPass {
  protected readonly isCopiedOnDelivery = false;
  readonly #context: WorkerContext;
  readonly #stream: FilteredStream;
  readonly #filters: readonly HttpFilter[];
  #heldHead = '';

  constructor(context: WorkerContext, stream: FilteredStream, filters: readonly HttpFilter[], plan: BodyPlan) {
    super(plan, stream.bufferLimitBytes);
    this.#context = context;
    this.#stream = stream;
    this.#filters = filters;
  }

  get heldHead(): string {
    return this.#heldHead;
  }

  /** As FilterCallbacks.heldRequestHead. */
  editHeldHead(index: number, method: string | undefined): RequestHead {
    this.reviveHeadFor(index);
    if (method !== undefined && this.saveHead()) {
      this.#heldHead = this.#heldHead.replace(/^\S+/, method);
      this.restoreHead();
    }
    return this.#context.codec.request;
  }

  /** As FilterCallbacks.settleEditedHead. @returns false when the request has been given up. */
  settleHead(): boolean {
    const length = this.#write();
    if (length < 0) return false;
    const error = this.#context.codec.reparseRequest(length, NO_LIMITS);
    if (error > 0) return true;
    this.#refuse(error);
    return false;
  }

  protected override visitHead(index: number, isEnd: boolean): FilterStatus {
    return this.#filters[index]!.decodeHeaders?.(this.#context.codec.request, isEnd) ?? 'continue';
  }

  protected override visitData(index: number, data: BodyData): FilterStatus | undefined {
    return this.#filters[index]!.decodeData?.(data);
  }

  protected override visitTrailers(index: number, trailers: Trailers): FilterStatus | undefined {
    return this.#filters[index]!.decodeTrailers?.(trailers);
  }

  protected override visitWithRoom(index: number): void {
    this.#filters[index]!.onRequestRoom?.();
  }

  protected override saveHead(): boolean {
    const length = this.#write();
    if (length < 0) return false;
    this.#heldHead = this.#context.codec.requestText(length);
    this.#stream.noteHeldHead(this.#heldHead);
    return true;
  }

  /** Of the head with its edits. @returns its length in the codec; negative once the request has been given up. */
  #write(): number {
    const { codec } = this.#context;
    // The router passes it on where trailers can pass.
    codec.request.keepKnown(HEADER_ID.te);
    const length = codec.writeRequest();
    if (length < 0) this.#refuse(length);
    return length;
  }

  #refuse(error: number): void {
    this.#context.logs.router.warning(`cannot rewrite a request: ${codecError(error).reason}`);
    this.#stream.giveUp(REWRITE_FAILED);
  }

  protected override restoreHead(): void {
    const bytes = Buffer.from(this.#heldHead, 'latin1');
    this.#context.codec.parseRequest(bytes, 0, bytes.length, NO_LIMITS);
  }

  protected override mayHaveBody(): boolean {
    return true;
  }

  protected override reframe(length: number | null): void {
    if (this.framing === Framing.NONE && length === 0) return;
    this.#stream.requestFraming = announceBody(this.#context.codec.request, length);
  }

  /** It has been given away. */
  protected override keepBytes(bytes: Buffer, start: number, end: number): Buffer {
    return bytes.subarray(start, end);
  }

  protected override deliver(
    withHead: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    trailers: Trailers | null,
  ): boolean {
    this.#stream.requestTrailers = trailers;
    if (withHead) return this.#stream.forward(bytes, start, end, isEnd);
    return this.#stream.forwardBody(bytes, start, end, isEnd, this.#context.clock.monotonicMs());
  }

  protected override resumeReading(): void {
    this.#stream.resumeRequest();
  }

  protected override onOverflow(): void {
    this.#stream.giveUp(REQUEST_HELD_TOO_LARGE);
  }
}
