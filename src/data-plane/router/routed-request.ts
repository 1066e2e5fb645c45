// A request as the router sees it: what is known of it, what the router finds out, and how it is answered without an
// upstream.

import type { RequestHead } from '../../wasm/http1.ts';
import type { RequestLimits } from '../http/control-headers.ts';
import type { LocalReply } from '../http/local-reply.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { ClusterTarget } from '../route/forward-plan.ts';
import type { HashedClient } from '../route/hash-policy.ts';
import type { FactsSource } from '../route/header-editor.ts';
import type { RequestTally } from '../route/request-tally.ts';
import type { Route } from '../route/route.ts';
import type { NamedDestination, RequestSender } from '../route/route-request.ts';
import type { RoutesInUse } from '../route/routes-in-use.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { OverrideHost } from '../upstream/override-hosts.ts';
import type { RequestClient } from './attempt-client.ts';
import type { InternalRedirects } from './internal-redirects.ts';

export interface RoutedRequest
  extends Omit<RequestClient, keyof RequestLimits | 'downstream' | 'overrideHost'>,
    RequestLimits,
    FactsSource,
    Pick<RequestSender, 'dynamicMetadata' | 'connectionEnds' | 'state'>,
    Omit<HashedClient, 'connectionEnds' | 'state'> {
  /** As RequestClient has it. */
  overrideHost: OverrideHost | null;
  readonly namedHost: NamedDestination | null;
  /** It has met filters. */
  readonly isFiltered: boolean;
  /** The connection that it came by. */
  readonly downstream: DownstreamConnection;
  /** By which its route is looked for. */
  readonly routes: RoutesInUse;
  /** It is looked for there from now on. */
  useRoutes(routes: RoutesInUse): void;
  /** By TLS. */
  readonly isSecured: boolean;
  /** The route of a request whose filters know it before the router does; null for others. */
  foundRoute: Route | null;
  /** The cluster that has been drawn together with that route; null where the router chooses it. */
  foundTarget: ClusterTarget | null;
  /** The chosen route, once there is one, and the cluster that it has chosen. */
  route: Route | null;
  target: ClusterTarget | null;
  readonly cluster: Cluster | null;
  tally: RequestTally | null;
  /** The route says itself how long its streams may last, in place of the connection manager. */
  replacesDuration: boolean;
  /** How long, from its first byte; 0 for any time. */
  routeDurationMs: number;
  /** Null for requests of routes that follow no redirects. */
  redirects: InternalRedirects | null;
  /** Cookies that the response gives the client; null for none. */
  setCookies: string[] | null;
  /** Of the body as it goes on, one of Framing. */
  requestFraming: number;
  /**
   * Finds out who sent the request, and gives the head what every request gets from its connection manager; nothing when
   * that has been done. `isInternal` is right from then on.
   */
  prepare(head: RequestHead): void;

  /** Decides whether the request is traced; nothing when that has been done, and where nothing is traced. */
  beginTrace(head: RequestHead, route: Route | null): void;
  /** Writes its place in the trace into the head that goes on. */
  carryTrace(head: RequestHead): void;

  /** The request goes nowhere: whoever tells of it tells of the head that would have gone on. */
  tellOfUnsent(): void;

  /** Replaces the time after which the request counts as idle; 0 for never. */
  setIdleTimeout(timeoutMs: number): void;

  /** Replaces the time in which its client has to take more of a response that is over; 0 for any. */
  setFlushTimeout(timeoutMs: number): void;

  /** Answers in place of an upstream. */
  reply(reply: LocalReply): void;
}
