// Says something of requests, for filters behind, routes, balancers and logs to read. Worker thread; step 3 of the request flow.

import type { FilterCallbacks, FilterStatus, HttpFilter, HttpFilterKind } from '../../../data-plane/index.ts';
import { FilterStateValues } from '../../filter-state/values.ts';
import type { SetFilterStateSettings } from './settings.ts';

/** What one level of the configuration says. */
class Level {
  readonly values: FilterStateValues;
  readonly choosesRouteAgain: boolean;

  constructor({ values, choosesRouteAgain }: SetFilterStateSettings) {
    this.values = new FilterStateValues(values);
    this.choosesRouteAgain = choosesRouteAgain;
  }
}

class SetFilterStateFilter implements HttpFilter {
  readonly #own: Level;
  readonly #callbacks: FilterCallbacks;

  constructor(own: Level, callbacks: FilterCallbacks) {
    this.#own = own;
    this.#callbacks = callbacks;
  }

  decodeHeaders(): FilterStatus {
    const callbacks = this.#callbacks;
    const ofRoute = callbacks.routeSettings as readonly Level[];
    const facts = callbacks.facts(null);
    this.#own.values.sayTo(callbacks, facts);
    // What is nearer to the request is said later, and counts.
    for (let at = ofRoute.length - 1; at >= 0; at -= 1) ofRoute[at]!.values.sayTo(callbacks, facts);
    const choosesAgain = this.#own.choosesRouteAgain || ofRoute.some((level) => level.choosesRouteAgain);
    if (choosesAgain) callbacks.settleRequestHead();
    return 'continue';
  }
}

export const SET_FILTER_STATE_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compileForRoute: (settings) => new Level(settings as SetFilterStateSettings),
  compile(settings) {
    const own = new Level(settings as SetFilterStateSettings);
    return (callbacks) => new SetFilterStateFilter(own, callbacks);
  },
};
