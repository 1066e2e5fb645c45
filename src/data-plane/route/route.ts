// One route, ready to match and to act. Made once per snapshot.

import { isWithin, type RuntimeValues } from '../../base/runtime.ts';
import type { StringTest } from '../../base/string-match.ts';
import type {
  FiltersOfRoute,
  Metadata,
  PathMatch,
  RouteAction,
  RouteConditions,
  RouteRateLimits,
  RouteSnapshot,
  VirtualHostSnapshot,
} from '../../snapshot/index.ts';
import { compileBodyFormat } from '../http/body-format.ts';
import { directResponse, type LocalReply } from '../http/local-reply.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { RouteTrace } from '../tracing/route-trace.ts';
import { AttemptEdits } from './attempt-edits.ts';
import {
  compileCertificateMatch,
  compileCookieMatch,
  compileMetadataCondition,
  compileStateCondition,
} from './client-conditions.ts';
import { compileForward, type ForwardPlan } from './forward-plan.ts';
import { compileHeaderEdits, type HeaderEditor } from './header-editor.ts';
import { compileHeaderMatch, type RequestTest } from './header-matcher.ts';
import { compilePathMatch } from './path-matcher.ts';
import { compileQueryParameterMatch } from './query-matcher.ts';
import { compileRedirect, type RedirectLocation } from './redirect.ts';
import type { ChooseTally } from './request-tally.ts';
import type { RouteRequest } from './route-request.ts';

/** What the route does, with all that can be prepared. */
export type RoutePlan =
  | ForwardPlan
  | { readonly kind: 'direct-response'; readonly reply: LocalReply }
  | { readonly kind: 'redirect'; readonly status: number; readonly location: RedirectLocation };

type VirtualHostOfRoute = Pick<VirtualHostSnapshot, 'name' | 'metadata'>;

export class Route {
  readonly name: string;
  readonly virtualHostName: string;
  /** For formats. */
  readonly metadata: Metadata | undefined;
  readonly virtualHostMetadata: Metadata | undefined;
  readonly plan: RoutePlan;
  readonly requestEditor: HeaderEditor | null;
  readonly responseEditor: HeaderEditor | null;
  /** What it says to HTTP filters; null for nothing. */
  readonly filters: FiltersOfRoute | null;
  /** What it says of its traces; null for nothing. */
  readonly trace: RouteTrace | null;
  /** For filters that limit requests; null for nothing. */
  readonly rateLimits: RouteRateLimits | null;
  /** Where its requests are counted beside their cluster; null for nowhere. */
  readonly tally: ChooseTally | null;
  readonly countsAttemptsInRequest: boolean;
  readonly countsAttemptsInResponse: boolean;
  readonly attemptEdits: AttemptEdits | null;
  /** The path that alone decides for this route; undefined when a look-up cannot find it. */
  readonly exactPath: string | undefined;
  readonly match: PathMatch;
  /** Made when it is asked: an index may know without. */
  #testOfPath: StringTest | null = null;
  readonly #conditions: readonly RequestTest[];

  /** @param tally of its requests; null where they have no stats of their own. */
  constructor(
    snapshot: RouteSnapshot,
    virtualHost: VirtualHostOfRoute,
    names: ProxyHeaders,
    runtime: RuntimeValues,
    tally: ChooseTally | null = null,
  ) {
    const { match, conditions } = snapshot;
    this.name = snapshot.name;
    this.virtualHostName = virtualHost.name;
    this.metadata = snapshot.metadata;
    this.tally = tally;
    this.virtualHostMetadata = virtualHost.metadata;
    this.plan = compileAction(snapshot.action, match, names, runtime);
    this.requestEditor = compileHeaderEdits(snapshot.requestEdits);
    this.responseEditor = compileHeaderEdits(snapshot.responseEdits);
    this.filters = snapshot.filters ?? null;
    this.trace = snapshot.tracing === undefined ? null : new RouteTrace(snapshot.tracing, runtime);
    this.rateLimits = snapshot.rateLimits ?? null;
    this.countsAttemptsInRequest = snapshot.countsAttemptsInRequest;
    this.countsAttemptsInResponse = snapshot.countsAttemptsInResponse;
    const usesUpstreamHostname = this.plan.kind === 'cluster' && this.plan.usesUpstreamHostname;
    this.attemptEdits =
      usesUpstreamHostname || this.countsAttemptsInRequest
        ? new AttemptEdits(usesUpstreamHostname, this.countsAttemptsInRequest ? names.attemptCount : '')
        : null;
    this.exactPath = match.kind === 'path' && match.caseSensitive && conditions === null ? match.value : undefined;
    this.match = match;
    this.#conditions = conditions === null ? [] : compileConditions(conditions, runtime);
  }

  matches(request: RouteRequest): boolean {
    // Only CONNECT requests match what is meant for them, and match nothing else.
    if ((this.match.kind === 'connect') !== request.isConnect) return false;
    return this.matchesPath(request.matchedPath) && this.meets(request);
  }

  /** Nothing but the path. */
  matchesPath(path: string): boolean {
    this.#testOfPath ??= compilePathMatch(this.match);
    return this.#testOfPath(path);
  }

  /** Whatever the path. */
  meets(request: RouteRequest): boolean {
    for (const holds of this.#conditions) if (!holds(request)) return false;
    return true;
  }
}

/** Whether a request is one that a route would be chosen for, for others than routes. */
export function compileMatch(
  match: PathMatch,
  conditions: RouteConditions | null,
  runtime: RuntimeValues,
): (request: RouteRequest) => boolean {
  const isConnect = match.kind === 'connect';
  const matchesPath = compilePathMatch(match);
  const tests = conditions === null ? [] : compileConditions(conditions, runtime);
  return (request) =>
    request.isConnect === isConnect && matchesPath(request.matchedPath) && tests.every((holds) => holds(request));
}

function compileAction(action: RouteAction, match: PathMatch, names: ProxyHeaders, runtime: RuntimeValues): RoutePlan {
  switch (action.kind) {
    case 'cluster':
      return compileForward(action, match, names, runtime);
    case 'redirect':
      return { kind: 'redirect', status: action.status, location: compileRedirect(action, match) };
    case 'direct-response':
      return {
        kind: 'direct-response',
        reply: directResponse(action.status, action.body, compileBodyFormat(action.format ?? null)),
      };
  }
}

function compileConditions(
  {
    headers,
    queryParameters,
    cookies = [],
    clientCertificate,
    metadata = [],
    filterState = [],
    fraction,
  }: RouteConditions,
  runtime: RuntimeValues,
): readonly RequestTest[] {
  const tests = [
    ...headers.map(compileHeaderMatch),
    ...queryParameters.map(compileQueryParameterMatch),
    ...cookies.map(compileCookieMatch),
    ...metadata.map(compileMetadataCondition),
    ...filterState.map(compileStateCondition),
  ];
  if (clientCertificate !== undefined) tests.push(compileCertificateMatch(clientCertificate));
  if (fraction !== null) {
    const share = runtime.share(fraction);
    tests.push((request) => isWithin(share.value, request.random));
  }
  return tests;
}
