// One virtual host: whether its clients need TLS, and which of its routes a request takes.

import type { RuntimeValues } from '../../base/runtime.ts';
import type { RouteSnapshot, VirtualHostSnapshot } from '../../snapshot/index.ts';
import type { LbKernel } from '../../wasm/lb.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { compileMatchTree, type FindMatch } from '../matching/match-tree.ts';
import { REQUEST_INPUTS } from '../matching/request-inputs.ts';
import type { TallyScopes } from './request-tally.ts';
import { Route } from './route.ts';
import { RouteList } from './route-list.ts';
import type { RouteRequest } from './route-request.ts';

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

export interface RouteTools {
  /** Null where nobody counts. */
  readonly tallies?: TallyScopes | null;
  /** Hashes what matchers choose by; null where none does so by hashes. */
  readonly kernel?: LbKernel | null;
}

export class VirtualHost {
  readonly name: string;
  readonly #routes: RouteList;
  /** Chooses the routes in place of all of them; null where all are tried. */
  readonly #choose: FindMatch<RouteRequest, RouteList> | null;
  /** Null where no TLS is required. */
  readonly #tlsRedirect: Route | null;
  readonly #letsInternalPass: boolean;

  constructor(
    snapshot: VirtualHostSnapshot,
    names: ProxyHeaders,
    runtime: RuntimeValues,
    { tallies = null, kernel = null }: RouteTools = {},
  ) {
    this.name = snapshot.name;
    const { requiresTls } = snapshot;
    this.#tlsRedirect = requiresTls === undefined ? null : new Route(TO_TLS, snapshot, names, runtime);
    this.#letsInternalPass = requiresTls === 'external';
    const tally = tallies?.ofHost(snapshot);
    const routes = snapshot.routes.map(
      (route) => new Route(route, snapshot, names, runtime, tally?.(route.statPrefix) ?? null),
    );
    const { matcher } = snapshot;
    this.#routes = new RouteList(matcher === undefined ? routes : []);
    this.#choose =
      matcher === undefined
        ? null
        : compileMatchTree(
            matcher,
            REQUEST_INPUTS,
            { runtime, kernel },
            (places) => new RouteList(places.map((place) => routes[place]!)),
          );
  }

  find(request: RouteRequest): Route | undefined {
    if (this.#tlsRedirect !== null && this.#lacksTls(request)) return this.#tlsRedirect;
    if (this.#choose !== null) return this.#choose(request)?.find(request);
    return this.#routes.find(request);
  }

  /** A trusted proxy in front may say that the client came by HTTPS. */
  #lacksTls(request: RouteRequest): boolean {
    return request.forwardedProto !== 'https' && !(this.#letsInternalPass && request.isInternal);
  }
}
