// Changes headers, trailers and queries as its configuration says, and as the levels of a route add to it. Worker thread; step 3 of
// the request flow. The route stays: it has been chosen by the head as it came.

import {
  compileHeaderEdits,
  type EditableHead,
  type FactsSource,
  type FilterCallbacks,
  type FilterContext,
  type FilterStatus,
  type FormatFacts,
  type HeaderEditor,
  type HttpFilter,
  type HttpFilterKind,
  type Trailers,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { compileQueryMutations, type EditQuery } from './query.ts';
import type { HeaderMutationSettings, Mutations } from './settings.ts';
import { TrailerFields } from './trailer-fields.ts';

/** All that happens to the messages of one route. */
class Plan {
  readonly request: HeaderEditor | null;
  readonly query: EditQuery | null;
  readonly requestTrailers: HeaderEditor | null;
  readonly response: HeaderEditor | null;
  readonly responseTrailers: HeaderEditor | null;
  /** The filters behind and the router read by number what the edits may change. */
  readonly isSettled: boolean;

  /** @param levels in the order in which they happen. */
  constructor(levels: readonly Mutations[], { headerNames }: FilterContext) {
    this.request = compileHeaderEdits(levels.flatMap(({ request }) => request));
    this.query = compileQueryMutations(levels.flatMap(({ query }) => query));
    this.requestTrailers = compileHeaderEdits(levels.flatMap(({ requestTrailers }) => requestTrailers));
    this.response = compileHeaderEdits(levels.flatMap(({ response }) => response));
    this.responseTrailers = compileHeaderEdits(levels.flatMap(({ responseTrailers }) => responseTrailers));
    const touchesKnown = this.request?.names.some((name) => headerNames.isKnown(name)) ?? false;
    this.isSettled = touchesKnown || this.query !== null;
  }
}

/** The plan of each route; levels are the same array for the same route. */
class Plans {
  readonly #settings: HeaderMutationSettings;
  readonly #context: FilterContext;
  /** Of routes that say nothing. */
  readonly #own: Plan;
  readonly #byLevels = new WeakMap<readonly unknown[], Plan>();

  constructor(settings: HeaderMutationSettings, context: FilterContext) {
    this.#settings = settings;
    this.#context = context;
    this.#own = new Plan([settings.own], context);
  }

  of(levels: readonly unknown[]): Plan {
    if (levels.length === 0) return this.#own;
    let plan = this.#byLevels.get(levels);
    if (plan === undefined) {
      const ofRoute = levels as readonly Mutations[];
      const { own, mostSpecificLast } = this.#settings;
      plan = new Plan([own, ...(mostSpecificLast ? ofRoute.toReversed() : ofRoute)], this.#context);
      this.#byLevels.set(levels, plan);
    }
    return plan;
  }
}

class HeaderMutationFilter implements HttpFilter, FactsSource {
  protected readonly plan: Plan;
  readonly #callbacks: FilterCallbacks;
  #response: EditableHead | null = null;

  constructor(plan: Plan, callbacks: FilterCallbacks) {
    this.plan = plan;
    this.#callbacks = callbacks;
  }

  get facts(): FormatFacts {
    return this.#callbacks.facts(this.#response);
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const { request, query, isSettled } = this.plan;
    // Lines of filters before this one stay in front.
    request?.apply(head, this, true);
    if (query !== null) this.#editQuery(head, query);
    if (isSettled) this.#callbacks.settleEditedHead();
    return 'continue';
  }

  encodeHeaders(head: EditableHead): FilterStatus {
    this.#response = head;
    this.plan.response?.apply(head, this);
    this.#response = null;
    return 'continue';
  }

  #editQuery(head: RequestHead, edit: EditQuery): void {
    const path = head.path();
    // CONNECT and OPTIONS * have no query.
    if (!path.startsWith('/')) return;
    const edited = edit(path, this);
    if (edited !== path) head.replaceTarget(edited);
  }
}

/** For routes that change trailers: only these look at what comes behind the head. */
class TrailerMutationFilter extends HeaderMutationFilter {
  decodeTrailers(trailers: Trailers): FilterStatus {
    this.plan.requestTrailers?.apply(new TrailerFields(trailers), this);
    return 'continue';
  }

  encodeTrailers(trailers: Trailers): FilterStatus {
    this.plan.responseTrailers?.apply(new TrailerFields(trailers), this);
    return 'continue';
  }
}

export const HEADER_MUTATION_FILTER: HttpFilterKind = {
  requestBody: 'reads',
  encodes: true,
  responseBody: 'reads',
  compile(settings, context) {
    const plans = new Plans(settings as HeaderMutationSettings, context);
    return (callbacks) => {
      const plan = plans.of(callbacks.routeSettings);
      const hasTrailers = plan.requestTrailers !== null || plan.responseTrailers !== null;
      return hasTrailers ? new TrailerMutationFilter(plan, callbacks) : new HeaderMutationFilter(plan, callbacks);
    };
  },
};
