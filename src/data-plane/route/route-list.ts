// Routes in their order. The first that matches wins; but the many that an exact path alone decides are found by look-up, and
// only what stands before the one found there is tried in turn. Where that are many, too, all are found by an index.

import type { Route } from './route.ts';
import { RouteIndex } from './route-index.ts';
import type { RouteRequest } from './route-request.ts';

interface Ranked {
  readonly route: Route;
  /** Place in the configured order. */
  readonly rank: number;
}

/** Trying so many in turn takes no longer than an index. */
const MAX_SCANNED = 8;

export class RouteList {
  readonly #exact = new Map<string, Ranked>();
  /** The others, in order. */
  readonly #scanned: Ranked[] = [];
  /** In place of both, where there are many; else null. */
  readonly #index: RouteIndex | null;

  constructor(routes: readonly Route[]) {
    const isScanned = routes.filter(({ exactPath }) => exactPath === undefined).length <= MAX_SCANNED;
    this.#index = isScanned ? null : new RouteIndex(routes);
    if (!isScanned) return;
    for (const [rank, route] of routes.entries()) {
      const { exactPath } = route;
      if (exactPath === undefined) this.#scanned.push({ route, rank });
      // A second one of the same path can never be reached.
      else if (!this.#exact.has(exactPath)) this.#exact.set(exactPath, { route, rank });
    }
  }

  find(request: RouteRequest): Route | undefined {
    if (this.#index !== null) return this.#index.find(request);
    const exact = this.#exact.size === 0 || request.isConnect ? undefined : this.#exact.get(request.matchedPath);
    for (const { route, rank } of this.#scanned) {
      if (exact !== undefined && rank > exact.rank) break;
      if (route.matches(request)) return route;
    }
    return exact?.route;
  }
}
