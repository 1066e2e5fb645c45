// Has requests without a route wait for what they lack (a virtual host, the table of their scope) until it has been discovered, and then
// meet all filters anew, so that each hears what the route says to it. Worker thread; step 3 of the request flow.

import type {
  FilterCallbacks,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
  LocalReply,
} from '../../../data-plane/index.ts';

/** A filter before this one has changed what has come of the body: it cannot be shown to all of them again. */
const EDITED_BODY: LocalReply = { status: 503, body: '', flag: 'NR', details: 'on_demand_body_already_edited' };

class OnDemandFilter implements HttpFilter {
  readonly #callbacks: FilterCallbacks;
  #leave: (() => void) | undefined;

  constructor(callbacks: FilterCallbacks) {
    this.#callbacks = callbacks;
  }

  decodeHeaders(): FilterStatus {
    if (this.#callbacks.hasRoute) return 'continue';
    this.#leave = this.#callbacks.awaitRoute((isThere) => {
      this.#leave = undefined;
      // Without it the router answers that there is no route.
      if (!isThere) this.#callbacks.continueDecoding();
      else if (!this.#callbacks.beginAgain()) this.#callbacks.reply(EDITED_BODY);
    });
    return this.#leave === undefined ? 'continue' : 'stop-and-pause';
  }

  onDestroy(): void {
    this.#leave?.();
  }
}

export const ON_DEMAND_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile: () => (callbacks) => new OnDemandFilter(callbacks),
};
