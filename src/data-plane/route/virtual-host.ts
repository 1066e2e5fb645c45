// The routes of one virtual host. The first that matches wins; but the many that an exact path alone decides are
// found by look-up, and only what stands before the one found there is tried in turn.

import type { RuntimeValues } from '../../base/runtime.ts';
import type { VirtualHostSnapshot } from '../../snapshot/index.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { Route } from './route.ts';
import type { RouteRequest } from './route-request.ts';

interface Ranked {
  readonly route: Route;
  /** Place in the configured order. */
  readonly rank: number;
}

export class VirtualHost {
  readonly name: string;
  readonly #exact = new Map<string, Ranked>();
  /** The others, in order. */
  readonly #scanned: Ranked[] = [];

  constructor(snapshot: VirtualHostSnapshot, names: ProxyHeaders, runtime: RuntimeValues) {
    this.name = snapshot.name;
    for (const [rank, routeSnapshot] of snapshot.routes.entries()) {
      const route = new Route(routeSnapshot, snapshot, names, runtime);
      const { exactPath } = route;
      if (exactPath === undefined) this.#scanned.push({ route, rank });
      // A second one of the same path can never be reached.
      else if (!this.#exact.has(exactPath)) this.#exact.set(exactPath, { route, rank });
    }
  }

  find(request: RouteRequest): Route | undefined {
    const exact = this.#exact.size === 0 || request.isConnect ? undefined : this.#exact.get(request.path);
    for (const { route, rank } of this.#scanned) {
      if (exact !== undefined && rank > exact.rank) break;
      if (route.matches(request)) return route;
    }
    return exact?.route;
  }
}
