// What the router changes in the head of a request that it forwards: its own headers, the edits of the route, host and
// path. In this order, which is the reference's; the connection manager's edits have been made before.

import { HEADER_ID, PreparedLines, type RequestHead } from '../../wasm/http1.ts';
import { expectedMs } from '../http/control-headers.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import type { ClusterTarget, ForwardPlan } from '../route/forward-plan.ts';
import type { Route } from '../route/route.ts';
import type { RouteRequest } from '../route/route-request.ts';
import { dropGrpcTimeout, writeGrpcTimeout } from './grpc-timeout.ts';
import type { RoutedRequest } from './routed-request.ts';

/** A service of gRPC is told what its caller says. */
const AS_ASKED = 0;
/** It is told of no time: its route takes away the limit that there was. */
const ANY_TIME = -1;

export class ForwardEdits {
  readonly #names: ProxyHeaders;
  readonly #isSuppressed: boolean;
  readonly #maxStreamDurationMs: number;
  /** TE ends at each hop, and has to be named in Connection (RFC 9110 section 10.1.4). */
  readonly #acceptsTrailers = new PreparedLines(['te: trailers', 'connection: te']);

  /**
   * @param isSuppressed the router's own headers are not wanted.
   * @param maxStreamDurationMs the connection manager's limit of streams; 0 for none.
   */
  constructor(names: ProxyHeaders, isSuppressed: boolean, maxStreamDurationMs: number) {
    this.#names = names;
    this.#isSuppressed = isSuppressed;
    this.#maxStreamDurationMs = maxStreamDurationMs;
  }

  apply(stream: RoutedRequest, request: RouteRequest, route: Route, plan: ForwardPlan, target: ClusterTarget): void {
    if (!this.#isSuppressed) this.#appendTimeout(stream, request, plan);
    const grpcMs = stream.isGrpc ? this.#grpcExpectedMs(stream, plan) : AS_ASKED;
    if (grpcMs > 0) writeGrpcTimeout(request.head, grpcMs);
    else if (grpcMs === ANY_TIME) dropGrpcTimeout(request.head);
    if (route.countsAttemptsInRequest) request.head.appendPrepared(this.#names.firstAttempt);
    target.requestEditor?.apply(request.head, stream);
    route.requestEditor?.apply(request.head, stream, target.requestEditor !== null);
    this.#rewriteHost(stream, request, plan, target);
    if (!request.isConnect) this.#rewritePath(stream, request, plan);
  }

  /** Tells the upstream that the client wants trailers. Only where they can pass; any other coding ends here. */
  keepTrailersOption(head: RequestHead): void {
    const codings = head.header(HEADER_ID.te)!.split(',');
    if (codings.some((coding) => coding.trim().toLowerCase() === 'trailers')) {
      head.appendPrepared(this.#acceptsTrailers);
    }
  }

  /** Tells the upstream how long the answer may take. */
  #appendTimeout(stream: RoutedRequest, { head }: RouteRequest, plan: ForwardPlan): void {
    const ms = expectedMs(stream);
    if (ms === 0) return;
    if (ms === plan.timeoutMs) head.appendPrepared(plan.timeoutLine!);
    else head.append(this.#names.expectedTimeoutMs, String(ms));
  }

  /** What a service of gRPC is told, in milliseconds; or AS_ASKED, or ANY_TIME. */
  #grpcExpectedMs(stream: RoutedRequest, plan: ForwardPlan): number {
    if (!plan.limitsStreamDuration) return plan.grpcTimeout === null ? AS_ASKED : expectedMs(stream);
    if (stream.routeDurationMs > 0) return stream.routeDurationMs;
    if (!stream.replacesDuration) return this.#maxStreamDurationMs;
    return this.#maxStreamDurationMs > 0 ? ANY_TIME : AS_ASKED;
  }

  #rewriteHost(stream: RoutedRequest, request: RouteRequest, plan: ForwardPlan, target: ClusterTarget): void {
    const host = plan.rewriteHost?.(request, stream) ?? target.hostRewrite;
    const { head, authority } = request;
    if (host !== '') {
      // What an upstream is told of the old host must not depend on what the client has made up about it.
      if (plan.appendsForwardedHost && host !== authority) head.append('x-forwarded-host', authority);
      head.replaceHost(host);
      if (request.isConnect) head.replaceTarget(host);
    } else if (plan.usesUpstreamHostname || request.isConnect) {
      // Of a CONNECT only the target counts; Host may have said anything (RFC 9112 section 3.2.3).
      // Puts Host where AttemptEdits will find it.
      head.replaceHost(authority);
    }
  }

  #rewritePath(stream: RoutedRequest, { head, target, path }: RouteRequest, { rewritePath }: ForwardPlan): void {
    if (rewritePath === null) return;
    const rewritten = rewritePath(path, stream) + target.slice(path.length);
    if (rewritten === target) return;
    head.replaceTarget(rewritten);
    if (!this.#isSuppressed) head.append(this.#names.originalPath, target);
  }
}
