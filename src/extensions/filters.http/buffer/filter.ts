// Collects each request before it goes on, so that slow clients cost the upstream nothing: it gets the whole body at once,
// with its length. Worker thread; step 3 of the request flow.

import {
  type BodyData,
  type FilterCallbacks,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  REQUEST_HELD_TOO_LARGE,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { BufferSettings } from './settings.ts';

class BufferFilter implements HttpFilter {
  readonly #settings: BufferSettings;
  readonly #callbacks: FilterCallbacks;
  #limitBytes = 0;
  #heldBytes = 0;

  constructor(settings: BufferSettings, callbacks: FilterCallbacks) {
    this.#settings = settings;
    this.#callbacks = callbacks;
  }

  decodeHeaders(_head: RequestHead, isEnd: boolean): FilterStatus {
    const [ofRoute = this.#settings] = this.#callbacks.routeSettings as readonly BufferSettings[];
    const { maxRequestBytes } = ofRoute;
    if (isEnd) return 'continue';
    this.#limitBytes = maxRequestBytes;
    this.#callbacks.limitHeldRequest(maxRequestBytes);
    return 'stop';
  }

  decodeData({ bytes, isEnd }: BodyData): FilterStatus {
    this.#heldBytes += bytes.length;
    // What comes at once was never held, and is as long.
    if (this.#heldBytes > this.#limitBytes) {
      this.#callbacks.reply(REQUEST_HELD_TOO_LARGE);
      return 'stop';
    }
    return isEnd ? 'continue' : 'stop';
  }

  decodeTrailers(): FilterStatus {
    return 'continue';
  }
}

export const BUFFER_FILTER: HttpFilterKind = {
  // It changes nothing, but what leaves at once is announced with its length.
  requestBody: 'edits',
  encodes: false,
  responseBody: 'none',
  compile: (settings) => (callbacks) => new BufferFilter(settings as BufferSettings, callbacks),
};
