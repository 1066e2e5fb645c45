// The routes of one virtual host. The first that matches wins; but the many that an exact path alone decides are
// found by look-up, and only what stands before the one found there is tried in turn. Where that are many, too, all are found
// by an index.

import type { RuntimeValues } from '../../base/runtime.ts';
import type { RouteSnapshot, VirtualHostSnapshot } from '../../snapshot/index.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import type { TallyScopes } from './request-tally.ts';
import { Route } from './route.ts';
import { RouteIndex } from './route-index.ts';
import type { RouteRequest } from './route-request.ts';

interface Ranked {
  readonly route: Route;
  /** Place in the configured order. */
  readonly rank: number;
}

/** Trying so many in turn takes no longer than an index. */
const MAX_SCANNED = 8;

/** The same place, secured: what clients are told that came without TLS where it is required. */
const TO_TLS: RouteSnapshot = {
  name: '',
  match: { kind: 'prefix', value: '', caseSensitive: true },
  conditions: null,
  action: {
    kind: 'redirect',
    status: 301,
    scheme: 'https',
    host: '',
    port: 0,
    path: '',
    pathRewrite: null,
    stripQuery: false,
  },
  requestEdits: [],
  responseEdits: [],
  countsAttemptsInRequest: false,
  countsAttemptsInResponse: false,
};

export class VirtualHost {
  readonly name: string;
  readonly #exact = new Map<string, Ranked>();
  /** The others, in order. */
  readonly #scanned: Ranked[] = [];
  /** In place of both, where there are many; else null. */
  readonly #index: RouteIndex | null;
  /** Null where no TLS is required. */
  readonly #tlsRedirect: Route | null;
  readonly #letsInternalPass: boolean;

  /** @param tallies null where nobody counts. */
  constructor(
    snapshot: VirtualHostSnapshot,
    names: ProxyHeaders,
    runtime: RuntimeValues,
    tallies: TallyScopes | null = null,
  ) {
    this.name = snapshot.name;
    const { requiresTls } = snapshot;
    this.#tlsRedirect = requiresTls === undefined ? null : new Route(TO_TLS, snapshot, names, runtime);
    this.#letsInternalPass = requiresTls === 'external';
    const tally = tallies?.ofHost(snapshot);
    const routes = snapshot.routes.map(
      (route) => new Route(route, snapshot, names, runtime, tally?.(route.statPrefix) ?? null),
    );
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
    if (this.#tlsRedirect !== null && this.#lacksTls(request)) return this.#tlsRedirect;
    if (this.#index !== null) return this.#index.find(request);
    const exact = this.#exact.size === 0 || request.isConnect ? undefined : this.#exact.get(request.matchedPath);
    for (const { route, rank } of this.#scanned) {
      if (exact !== undefined && rank > exact.rank) break;
      if (route.matches(request)) return route;
    }
    return exact?.route;
  }

  /** A trusted proxy in front may say that the client came by HTTPS. */
  #lacksTls(request: RouteRequest): boolean {
    return request.forwardedProto !== 'https' && !(this.#letsInternalPass && request.isInternal);
  }
}
