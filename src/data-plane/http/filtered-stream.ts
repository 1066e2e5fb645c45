// What the filters of a request know of their stream.

import type { JsonObject } from '../../base/json.ts';
import type { ConfigSourceSettings, FiltersOfRoute, RouteRateLimits } from '../../snapshot/index.ts';
import { FIELD_LIMIT, HEAD_LIMIT_BYTES, type HeadLimits } from '../../wasm/http1.ts';
import type { DownstreamFacts, FormatFacts } from '../format/facts.ts';
import type { LiveResponse } from '../format/stream-facts.ts';
import type { ResponseFlagName } from '../response-flags.ts';
import type { NamedDestination } from '../route/route-request.ts';
import type { RoutesInUse } from '../route/routes-in-use.ts';
import type { OverrideHost } from '../upstream/override-hosts.ts';
import type { CountedCluster } from './filter.ts';
import type { LocalReply, ReplyForm } from './local-reply.ts';
import type { Trailers } from './trailers.ts';

/** A head that was written before has passed all limits of its connection. */
export const NO_LIMITS: HeadLimits = { maxHeadBytes: HEAD_LIMIT_BYTES, maxFields: FIELD_LIMIT };

/** What filters need of the stream that they run for. */
export interface FilteredStream {
  readonly methodId: number;
  readonly bufferLimitBytes: number;
  readonly hasEnded: boolean;
  readonly awaitsTunnel: boolean;
  readonly protocol: string;
  isGrpc: boolean;
  /** Of the response at hand, as formats see it. */
  status: number;
  replyForm: ReplyForm;
  /** Null before the router has chosen one. */
  readonly cluster: CountedCluster | null;
  /** By which its route is looked for. */
  readonly routes: RoutesInUse;
  /** What the route of the request says to filters; null when it says nothing, or there is no route. */
  readonly filtersOfRoute: FiltersOfRoute | null;
  /** Of the request's body as it goes on, one of Framing. */
  requestFraming: number;
  /** Trailers of the message that ends with the next call. */
  requestTrailers: Trailers | null;
  responseTrailers: Trailers | null;
  forward(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean;
  forwardBody(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean;
  /** @param framing that the body has now; the head's fields say the same. */
  respond(
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    isEdited: boolean,
    framing: number,
    nowMs: number,
  ): boolean;
  respondBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;
  /** Reads on after a pass has had it stop. */
  resumeRequest(): void;
  resumeResponse(): void;
  refuseResponse(reason: string): void;
  /** As FilterCallbacks has them. */
  awaitRoute(done: (isThere: boolean) => void): (() => void) | undefined;
  awaitCluster(
    source: ConfigSourceSettings,
    timeoutMs: number,
    done: (isThere: boolean) => void,
  ): (() => void) | undefined;
  beginAgain(): boolean;
  /** Chooses the route by the head that lies in the codec. */
  findRoute(): void;
  noteHeldHead(head: string): void;
  readonly isResponseComplete: boolean;
  readonly isHealthCheck: boolean;
  markHealthCheck(): void;
  addFlag(flag: ResponseFlagName): void;
  addMetadata(namespace: string, values: JsonObject): void;
  state(key: string): string | undefined;
  setState(key: string, value: string, isReadOnly: boolean): void;
  /** It came from outside, straight to this proxy. */
  readonly isFromEdge: boolean;
  /** The cluster that the route names; empty where that is not settled. */
  readonly routeCluster: string;
  readonly clientAddress: string;
  /** The host that a filter wants for the first attempt; null where none does. */
  overrideHost: OverrideHost | null;
  namedHost: NamedDestination | null;
  /** The one object of its connection. */
  readonly connectionEnds: DownstreamFacts;
  /** What the route describes the request by; null for nothing. */
  readonly rateLimits: RouteRateLimits | null;
  /** Asked for in the course of its requests; who looks at a response's head says which. */
  readonly facts: FormatFacts & { liveResponse: LiveResponse | null; localReplyBody: string | undefined };
  /** A route has been found for the request. */
  readonly hasRoute: boolean;
  readonly isForwarded: boolean;
  /** Where the request has gone last; empty for nowhere. */
  readonly upstreamAddress: string;
  giveUp(reply: LocalReply): void;
  /** As FilterCallbacks.forwardInstead. @param begin called before the other request goes on, once nothing speaks against it. */
  forwardInstead(request: string, begin: () => void): boolean;
}
