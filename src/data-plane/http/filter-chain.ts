// The filters of a connection manager before its router: compiled once per snapshot, opened for each request. Step 3
// of the request flow. A manager without filters has no chain, and its streams go straight to the router.

import { WeirError } from '../../base/errors.ts';
import type { HttpFilterSettings } from '../../snapshot/index.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { DecodingPass } from './decoding-pass.ts';
import { EncodingPass } from './encoding-pass.ts';
import type { BodyUse, CreateFilter, FilterCallbacks, HttpFilter } from './filter.ts';
import { ChainContext } from './filter-context.ts';
import type { FilteredStream } from './filtered-stream.ts';
import { type LocalReply, mayHaveBody } from './local-reply.ts';

export class FilterChain {
  readonly create: readonly CreateFilter[];
  readonly encodes: boolean;
  /** What each filter does with bodies, in the order of each direction. */
  readonly requestUses: readonly BodyUse[];
  readonly responseUses: readonly BodyUse[];

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
    this.encodes = kinds.some((kind) => kind.encodes);
    this.requestUses = kinds.map((kind) => kind.requestBody);
    this.responseUses = kinds.map((kind) => kind.responseBody).toReversed();
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
    this.decoding = new DecodingPass(context, stream, this.#filters, chain.requestUses);
    this.encoding = new EncodingPass(context, stream, this.#filters, chain.responseUses);
  }

  /** The request's head as it was when a filter stopped it; empty if none did. */
  get heldRequestHead(): string {
    return this.decoding.heldHead;
  }

  /** Lets filters edit a reply of the proxy's own, unless they have begun with a response that it takes the place of. */
  encodeLocalReply(head: EditableHead, { status, body }: LocalReply): void {
    if (this.encoding.hasBegun) return;
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
        if (!stream.hasEnded) stream.giveUp(reply);
      },
      continueDecoding: () => this.decoding.goOn(index),
      continueEncoding: () => this.encoding.goOn(this.#filters.length - 1 - index),
      addRequestData: (bytes) => this.decoding.addData(index, bytes),
      addResponseData: (bytes) => this.encoding.addData(this.#filters.length - 1 - index, bytes),
      markHealthCheck: () => stream.markHealthCheck(),
    };
  }
}
