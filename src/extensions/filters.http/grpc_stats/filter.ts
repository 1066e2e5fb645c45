// Counts calls of gRPC, how they ended, and the messages of both bodies. Worker thread; step 3 of the request flow. Requests of
// anything else go past it.

import type {
  BodyData,
  EditableHead,
  FilterCallbacks,
  FilterContext,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
  Trailers,
} from '../../../data-plane/index.ts';
import { HEADER_ID, type RequestHead } from '../../../wasm/http1.ts';
import { FrameCounter } from '../grpc/frames.ts';
import { GrpcStats, methodOf } from '../grpc/method-stats.ts';
import type { GrpcStatsSettings } from './settings.ts';

/** What all requests of a connection manager share. */
class Counting {
  readonly stats = new GrpcStats('grpc');
  readonly context: FilterContext;
  readonly countsTimes: boolean;
  readonly #countsAll: boolean;
  readonly #listed: ReadonlySet<string>;

  constructor({ countsAllMethods, methods, countsTimes }: GrpcStatsSettings, context: FilterContext) {
    this.context = context;
    this.countsTimes = countsTimes;
    this.#countsAll = countsAllMethods;
    this.#listed = new Set(methods);
  }

  /** Under which name a method is counted; empty for together with others, undefined for not at all. */
  nameOf(path: string): string | undefined {
    const method = methodOf(path);
    return method === undefined || this.#countsAll || this.#listed.has(method) ? method : '';
  }
}

class GrpcStatsFilter implements HttpFilter {
  readonly #counting: Counting;
  readonly #callbacks: FilterCallbacks;
  readonly #requests = new FrameCounter();
  readonly #responses = new FrameCounter();
  #method: string | undefined = undefined;
  #isAnswerOfGrpc = false;
  /** Monotonic time of the request's end; 0 before. */
  #requestEndMs = 0;

  constructor(counting: Counting, callbacks: FilterCallbacks) {
    this.#counting = counting;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    if (this.#callbacks.isGrpc) this.#method = this.#counting.nameOf(head.path());
    if (isEnd) this.#noteRequestEnd();
    return 'continue';
  }

  decodeData({ bytes, isEnd }: BodyData): FilterStatus {
    if (this.#method !== undefined) this.#requests.see(bytes);
    if (isEnd) this.#noteRequestEnd();
    return 'continue';
  }

  decodeTrailers(): FilterStatus {
    this.#noteRequestEnd();
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
    this.#isAnswerOfGrpc = status === 200;
    this.#noteStatus(head.headerByName('grpc-status'));
    if (isEnd) this.#noteResponseEnd();
    return 'continue';
  }

  encodeData({ bytes, isEnd }: BodyData): FilterStatus {
    if (this.#method !== undefined && this.#isAnswerOfGrpc) this.#responses.see(bytes);
    if (isEnd) this.#noteResponseEnd();
    return 'continue';
  }

  encodeTrailers(trailers: Trailers): FilterStatus {
    this.#noteStatus(trailers.get('grpc-status'));
    this.#noteResponseEnd();
    return 'continue';
  }

  onDestroy(): void {
    const requests = this.#requests.count;
    const responses = this.#responses.count;
    if (requests + responses > 0) this.#stats()?.messages(requests, responses);
  }

  #stats(): ReturnType<GrpcStats['of']> | undefined {
    const { cluster } = this.#callbacks;
    if (cluster === null || this.#method === undefined) return undefined;
    return this.#counting.stats.of(cluster, this.#method);
  }

  #noteStatus(status: string | undefined): void {
    if (status !== undefined) this.#stats()?.ended(status);
  }

  #noteRequestEnd(): void {
    if (this.#counting.countsTimes) this.#requestEndMs = this.#counting.context.clock.monotonicMs();
  }

  #noteResponseEnd(): void {
    if (this.#requestEndMs === 0) return;
    this.#stats()?.took(this.#counting.context.clock.monotonicMs() - this.#requestEndMs);
    this.#requestEndMs = 0;
  }
}

const CONTENT_TYPE = HEADER_ID['content-type'];
const AWAITED = /^application\/(?:grpc|x-protobuf)/;

export const GRPC_STATS_FILTER: HttpFilterKind = {
  requestBody: 'reads',
  encodes: true,
  responseBody: 'reads',
  // Filters before it may make gRPC of other types.
  isAwake: (_settings, _context, head) => {
    const index = head.indexOf(CONTENT_TYPE);
    return index >= 0 && AWAITED.test(head.valueAt(index));
  },
  compile(settings, context) {
    const counting = new Counting(settings as GrpcStatsSettings, context);
    return (callbacks) => new GrpcStatsFilter(counting, callbacks);
  },
};
