// Has requests wait for what they lack until it has been discovered. One without a route (its virtual host, or the table of its scope, is
// missing) then meets all filters anew, so that each hears what the route says to it; one whose cluster is missing goes on. Worker thread;
// step 3 of the request flow.

import type {
  FilterCallbacks,
  FilterContext,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
  LocalReply,
} from '../../../data-plane/index.ts';
import type { ClusterDemandSettings } from '../../../snapshot/index.ts';
import type { OnDemandSettings } from './settings.ts';

/** A filter before this one has changed what has come of the body: it cannot be shown to all of them again. */
const EDITED_BODY: LocalReply = { status: 503, body: '', flag: 'NR', details: 'on_demand_body_already_edited' };

class OnDemandFilter implements HttpFilter {
  readonly #settings: OnDemandSettings;
  readonly #context: FilterContext;
  readonly #callbacks: FilterCallbacks;
  #leave: (() => void) | undefined;

  constructor(settings: OnDemandSettings, context: FilterContext, callbacks: FilterCallbacks) {
    this.#settings = settings;
    this.#context = context;
    this.#callbacks = callbacks;
  }

  decodeHeaders(): FilterStatus {
    if (!this.#callbacks.hasRoute) this.#awaitRoute();
    else if (this.#callbacks.isForwarded) this.#awaitCluster();
    return this.#leave === undefined ? 'continue' : 'stop-and-pause';
  }

  onDestroy(): void {
    this.#leave?.();
  }

  #awaitRoute(): void {
    this.#leave = this.#callbacks.awaitRoute((isThere) => {
      this.#leave = undefined;
      // Without it the router answers that there is no route.
      if (!isThere) this.#callbacks.continueDecoding();
      else if (!this.#callbacks.beginAgain()) this.#callbacks.reply(EDITED_BODY);
    });
  }

  #awaitCluster(): void {
    const [{ clusters } = this.#settings] = this.#callbacks.routeSettings as readonly OnDemandSettings[];
    if (clusters === null) return;
    const leave = this.#callbacks.awaitCluster(clusters.source, clusters.timeoutMs, () => this.#goOn());
    if (leave !== undefined) this.#limit(leave, clusters);
  }

  /** Those who have asked before may wait for longer. */
  #limit(leave: () => void, { timeoutMs }: ClusterDemandSettings): void {
    const endTimer = timeoutMs === 0 ? (): void => {} : this.#context.clock.after(timeoutMs, () => this.#goOn());
    this.#leave = () => {
      endTimer();
      leave();
    };
  }

  /** Without it the router answers that there is no cluster. */
  #goOn(): void {
    this.#leave?.();
    this.#leave = undefined;
    this.#callbacks.continueDecoding();
  }
}

export const ON_DEMAND_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile: (settings, context) => (callbacks) => new OnDemandFilter(settings as OnDemandSettings, context, callbacks),
};
