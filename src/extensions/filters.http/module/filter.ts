// Runs a filter of the user's own: tells it of its request, waits for what it promises, and answers for what it throws. Worker
// thread; step 3 of the request flow.

import { errorMessage, stackFrames, WeirError } from '../../../base/errors.ts';
import {
  type BodyData,
  type EditableHead,
  FILTER_FAULT,
  type FilterCallbacks,
  type FilterContext,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  replaceField,
  type Trailers,
} from '../../../data-plane/index.ts';
import { loadDefinition } from '../../../filter-modules/definition.ts';
import type {
  AwaitedResult,
  CreateHttpFilter,
  FilterResult,
  HttpFilter as ModuleFilter,
} from '../../../filter-modules/interface.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { ModuleContext } from './context.ts';
import { RequestHeadView, ResponseHeadView } from './headers.ts';
import type { ModuleSettings } from './settings.ts';
import { ModuleStream, type StreamOwner } from './stream.ts';

const STATUSES: ReadonlySet<unknown> = new Set<FilterStatus>(['continue', 'stop', 'stop-and-pause']);

/** What the filters of all requests have in common. */
interface Shared {
  readonly name: string;
  readonly create: CreateHttpFilter;
  readonly context: FilterContext;
}

/** One direction of a stream. */
class Direction {
  /** Promises that are not settled yet. */
  promises = 0;
  readonly goOn: () => void;

  constructor(goOn: () => void) {
    this.goOn = goOn;
  }
}

class RunningFilter implements HttpFilter, StreamOwner {
  decodeData?: (data: BodyData) => FilterStatus;
  decodeTrailers?: (trailers: Trailers) => FilterStatus;
  encodeData?: (data: BodyData) => FilterStatus;
  encodeTrailers?: (trailers: Trailers) => FilterStatus;
  replyHeaders: readonly (readonly [name: string, value: string])[] = [];
  readonly #shared: Shared;
  readonly #callbacks: FilterCallbacks;
  readonly #stream: ModuleStream;
  readonly #filter: ModuleFilter;
  readonly #decoding = new Direction(() => this.goOnDecoding());
  readonly #encoding = new Direction(() => this.goOnEncoding());
  /** While the filter has them. */
  #request: RequestHeadView | null = null;
  #response: ResponseHeadView | null = null;
  #choosesRoute = false;
  #isOver = false;

  constructor(shared: Shared, callbacks: FilterCallbacks) {
    this.#shared = shared;
    this.#callbacks = callbacks;
    this.#stream = new ModuleStream(callbacks, this);
    this.#filter = this.#make();
    const filter = this.#filter;
    if (filter.decodeData !== undefined) this.decodeData = (data) => this.#decodeData(data);
    if (filter.decodeTrailers !== undefined) this.decodeTrailers = (trailers) => this.#decodeTrailers(trailers);
    if (filter.encodeData !== undefined) this.encodeData = (data) => this.#encodeData(data);
    if (filter.encodeTrailers !== undefined) this.encodeTrailers = (trailers) => this.#encodeTrailers(trailers);
  }

  get name(): string {
    return this.#shared.name;
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    const filter = this.#filter;
    if (filter.decodeHeaders === undefined) return 'continue';
    const view = new RequestHeadView();
    view.show(head);
    this.#request = view;
    const { path, authority } = view;
    const status = this.#statusOf('decodeHeaders', this.#decoding, () => filter.decodeHeaders!(view, isEnd));
    if (status !== 'continue') {
      view.hide(true);
      return status;
    }
    this.#request = null;
    view.hide(false);
    if (this.#choosesRoute) this.#callbacks.settleRequestHead();
    else if (view.path !== path || view.authority !== authority) this.#callbacks.settleEditedHead();
    this.#choosesRoute = false;
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
    for (const [name, value] of this.replyHeaders) replaceField(head, name, value);
    this.replyHeaders = [];
    const filter = this.#filter;
    if (filter.encodeHeaders === undefined) return 'continue';
    const callbacks = this.#callbacks;
    const view = new ResponseHeadView(status, (other) => callbacks.heldResponseHead(other));
    view.show(head);
    this.#response = view;
    const outcome = this.#statusOf('encodeHeaders', this.#encoding, () => filter.encodeHeaders!(view, isEnd));
    // An answer of the proxy itself does not wait.
    const isHeld = outcome !== 'continue' && !callbacks.isLocalReply;
    view.hide(isHeld);
    if (!isHeld) this.#response = null;
    return outcome;
  }

  onDestroy(): void {
    this.#isOver = true;
    this.#stream.end();
    try {
      this.#filter.onDestroy?.();
    } catch (error) {
      this.#report('onDestroy', error);
    }
  }

  goOnDecoding(): void {
    if (this.#isOver) return;
    this.#releaseRequest();
    this.#callbacks.continueDecoding();
  }

  goOnEncoding(): void {
    if (this.#isOver) return;
    this.#releaseResponse();
    this.#callbacks.continueEncoding();
  }

  chooseRoute(): void {
    if (this.#request === null) throw new TypeError('clearRouteCache: the head of this request has gone on');
    this.#choosesRoute = true;
  }

  #make(): ModuleFilter {
    try {
      const filter: unknown = this.#shared.create(this.#stream);
      if (typeof filter === 'object' && filter !== null) return filter as ModuleFilter;
      throw new TypeError(`a filter is an object with methods, got ${filter === null ? 'null' : typeof filter}`);
    } catch (error) {
      // The request is answered when the filter is told of it.
      return {
        decodeHeaders() {
          throw error;
        },
      };
    }
  }

  #decodeData(data: BodyData): FilterStatus {
    const status = this.#statusOf('decodeData', this.#decoding, () => told(data, this.#filter.decodeData!(data)));
    if (this.#decoding.promises > 0) return 'stop-and-pause';
    if (status === 'continue') this.#releaseRequest();
    return status;
  }

  #decodeTrailers(trailers: Trailers): FilterStatus {
    const status = this.#statusOf('decodeTrailers', this.#decoding, () => this.#filter.decodeTrailers!(trailers));
    if (this.#decoding.promises > 0) return 'stop-and-pause';
    if (status === 'continue') this.#releaseRequest();
    return status;
  }

  #encodeData(data: BodyData): FilterStatus {
    const status = this.#statusOf('encodeData', this.#encoding, () => told(data, this.#filter.encodeData!(data)));
    if (this.#encoding.promises > 0) return 'stop-and-pause';
    if (status === 'continue') this.#releaseResponse();
    return status;
  }

  #encodeTrailers(trailers: Trailers): FilterStatus {
    const status = this.#statusOf('encodeTrailers', this.#encoding, () => this.#filter.encodeTrailers!(trailers));
    if (this.#encoding.promises > 0) return 'stop-and-pause';
    if (status === 'continue') this.#releaseResponse();
    return status;
  }

  /** Does what was done to the head while it waited. */
  #releaseRequest(): void {
    const view = this.#request;
    this.#request = null;
    if (view === null) return;
    const callbacks = this.#callbacks;
    const isChanged = view.isChanged;
    view.release(() => callbacks.heldRequestHead());
    if (this.#choosesRoute) {
      callbacks.heldRequestHead();
      callbacks.settleRequestHead();
    } else if (isChanged) callbacks.settleEditedHead();
    this.#choosesRoute = false;
  }

  #releaseResponse(): void {
    const view = this.#response;
    this.#response = null;
    view?.release(() => this.#callbacks.heldResponseHead());
  }

  #statusOf(method: keyof ModuleFilter, direction: Direction, tell: () => AwaitedResult): FilterStatus {
    try {
      const result = tell();
      return result instanceof Promise ? this.#wait(method, direction, result) : checked(method, result);
    } catch (error) {
      this.#fail(method, error);
      return 'stop';
    }
  }

  #wait(method: keyof ModuleFilter, direction: Direction, promise: Promise<FilterResult>): FilterStatus {
    direction.promises += 1;
    const settle = (result: FilterResult): void => {
      direction.promises -= 1;
      if (this.#isOver || checked(method, result) !== 'continue') return;
      direction.goOn();
    };
    promise.then(settle).catch((error: unknown) => {
      if (!this.#isOver) this.#fail(method, error);
    });
    return 'stop-and-pause';
  }

  #fail(method: keyof ModuleFilter, error: unknown): void {
    this.#report(method, error);
    // A reply of the proxy itself is the last that there is to say.
    if (this.#isOver || (method.startsWith('encode') && this.#callbacks.isLocalReply)) return;
    this.#callbacks.reply(FILTER_FAULT);
  }

  #report(method: keyof ModuleFilter, error: unknown): void {
    const { name, context } = this.#shared;
    context.log.error(`fault in ${method} of filter ${name}: ${errorMessage(error)}`, stackFrames(error));
  }
}

/** What a filter has put in the place of bytes may be any kind of them. */
function told(data: BodyData, result: FilterResult): FilterResult {
  const bytes: unknown = data.bytes;
  if (Buffer.isBuffer(bytes)) return result;
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`bytes of a body: expected a Buffer, got ${typeof bytes}`);
  data.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return result;
}

function checked(method: string, result: unknown): FilterStatus {
  if (result === undefined) return 'continue';
  if (STATUSES.has(result)) return result as FilterStatus;
  throw new TypeError(
    `${method} returned ${JSON.stringify(result)}; a filter returns ${[...STATUSES].join(', ')} or nothing`,
  );
}

function createOf({ name, source, config }: ModuleSettings, context: FilterContext): CreateHttpFilter {
  try {
    const create: unknown = loadDefinition(source).create(structuredClone(config), new ModuleContext(name, context));
    if (typeof create === 'function') return create as CreateHttpFilter;
    throw new TypeError(
      `create returned ${create === null ? 'null' : typeof create} where a function that makes filters was expected`,
    );
  } catch (error) {
    throw new WeirError('WEIR_FILTER_MODULE', `filter ${name}: ${errorMessage(error)}`, { cause: error });
  }
}

export const MODULE_FILTER: HttpFilterKind = {
  requestBody: 'edits',
  encodes: true,
  responseBody: 'edits',
  usesOf(settings) {
    const { requestBody, responseBody } = settings as ModuleSettings;
    return { requestBody, responseBody };
  },
  compile(settings, context) {
    const { name } = settings as ModuleSettings;
    const shared: Shared = { name, create: createOf(settings as ModuleSettings, context), context };
    return (callbacks) => new RunningFilter(shared, callbacks);
  },
};
