// What an HTTP filter is: a step between connection manager and router that sees a request on its way in and the
// response on its way out. Step 3 of the request flow; the chain that runs them is filter-chain.ts.
//
//   client ── decodeHeaders, decodeData, decodeTrailers ──► first filter ──► … ──► last ──► router
//   client ◄── first filter ◄── … ◄── last ◄── encodeHeaders, encodeData, encodeTrailers ── router
//
// A filter is made for one request, runs in its worker, and is let go with the stream.

import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { RuntimeValues } from '../../base/runtime.ts';
import type { Logger } from '../../log/index.ts';
import type {
  ConfigSourceSettings,
  Fraction,
  HeaderMatch,
  MatchTree,
  PathMatch,
  QueryParameterMatch,
  RouteConditions,
  RouteRateLimits,
  RuntimeSetting,
} from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import type { DownstreamFacts, FormatFacts } from '../format/facts.ts';
import type { FindMatch } from '../matching/match-tree.ts';
import type { MatchedResponse } from '../matching/response-inputs.ts';
import type { ResponseFlagName } from '../response-flags.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { CallReceiver, CallRequest } from './filter-call.ts';
import type { LocalReply, ReplyForm } from './local-reply.ts';
import type { ProxyHeaders } from './proxy-headers.ts';
import type { Taps } from './taps.ts';
import type { Trailers } from './trailers.ts';

/**
 * A stop keeps all that has come so far from the filters behind, until this filter returns `continue` to a later call
 * of the same direction or has the callbacks go on. What comes meanwhile is held, and the filter goes on seeing it.
 *
 *   stop             for a filter that must see all before anything goes on: beyond the listener's buffer limit a
 *                    request gets a 413, a response a 500
 *   stop-and-pause   for one that waits for something else: at the buffer limit reading stops until it goes on
 */
export type FilterStatus = 'continue' | 'stop' | 'stop-and-pause';

/** A part of a body, without its framing. */
export interface BodyData {
  /** Borrowed until return. Whoever edits bodies may change them, or put others in their place, none included. */
  bytes: Buffer;
  /** The message ends here. */
  readonly isEnd: boolean;
  /**
   * Trailers for a message that ends here without any; the filters behind get them as any others.
   * Only for filters that edit the body. @throws WeirError WEIR_FILTER_EDIT where the message does not end here.
   */
  addTrailers(): Trailers;
}

/**
 * All methods are optional. One that is missing lets everything through, and bodies that no filter reads are passed
 * on without being looked at. A message ends with the head, with data or with trailers.
 */
export interface HttpFilter {
  /**
   * May edit the head, which is valid until return.
   * @param isEnd there will be no body.
   */
  decodeHeaders?(head: RequestHead, isEnd: boolean): FilterStatus;
  decodeData?(data: BodyData): FilterStatus;
  /** Comes only where trailers are enabled. May edit them. */
  decodeTrailers?(trailers: Trailers): FilterStatus;
  /**
   * May edit the head, which is valid until return. Comes for local replies as well; those are complete when they are
   * made, so that they cannot be stopped, and their bodies are not among the data.
   */
  encodeHeaders?(head: EditableHead, status: number, isEnd: boolean): FilterStatus;
  encodeData?(data: BodyData): FilterStatus;
  encodeTrailers?(trailers: Trailers): FilterStatus;
  /** More may go on after an exchange that has returned false. */
  onRequestRoom?(): void;
  onResponseRoom?(): void;
  /** The body of a local reply, if it has one, behind its head. Borrowed. */
  localReplyBody?(bytes: Buffer): void;
  /** The stream is over, in whatever way; called once. */
  onDestroy?(): void;
}

/** What a filter may ask of its stream. None of it does anything once the stream is over. */
export interface FilterCallbacks {
  /** Answers in place of an upstream; return a stop after it. A response that has begun is broken off. */
  reply(reply: LocalReply): void;
  /**
   * From within decodeHeaders, of a request without a route: has what it lacks discovered (a virtual host, the table of its scope).
   * @param done told once, in a later turn, unless the request is over or has left before. @returns what it leaves by; undefined where
   * nothing can be had for it.
   */
  awaitRoute(done: (isThere: boolean) => void): (() => void) | undefined;
  /**
   * From within decodeHeaders, of a request whose route leads to a cluster: has it asked for where this worker does not know it.
   * @param timeoutMs after which it is not waited for; 0 for any time that main allows. @param done as for awaitRoute. @returns as awaitRoute.
   */
  awaitCluster(
    source: ConfigSourceSettings,
    timeoutMs: number,
    done: (isThere: boolean) => void,
  ): (() => void) | undefined;
  /**
   * From an event of the filter's own, when it holds back the head: the request meets all filters anew, by the route that there is for it
   * now. Return at once after it: this filter is over. @returns false where that cannot be, and nothing has happened.
   */
  beginAgain(): boolean;
  /** Goes on after a stop; from an event of the filter's own, or from within its methods. */
  continueDecoding(): void;
  continueEncoding(): void;
  /**
   * Adds to the body what the filters behind will see: from within decodeHeaders at its beginning, from within
   * decodeTrailers at its end. Only for filters that edit the request's body.
   * @throws WeirError WEIR_FILTER_EDIT at any other time.
   */
  addRequestData(bytes: Buffer): void;
  /** The same for encodeHeaders and encodeTrailers. */
  addResponseData(bytes: Buffer): void;
  /**
   * Of a response that this filter has stopped, so many bytes of its body go on all the same, framing included. Only for
   * filters that see the response's body. @returns how many it still holds back.
   */
  releaseResponse(bytes: number): number;
  /** The same of the request. */
  releaseRequest(bytes: number): number;
  /**
   * From within decodeHeaders: the filter does nothing with this body and its trailers, whatever its kind says. A body that
   * no filter edits keeps its framing.
   */
  leaveRequest(): void;
  /** The same from within encodeHeaders. */
  leaveResponse(): void;
  /** From within encodeHeaders: a filter of a kind that edits bodies only reads this one. */
  onlyReadResponse(): void;
  /**
   * From an event of the filter's own: what takes the place of a part of what this filter has stopped goes on, while the rest
   * stays. The head goes with the first of it, if it was stopped, too. What a filter has stopped lies where it was seen until it is taken.
   * Only for filters that edit the request's body. What goes wrong behind this filter ends the stream.
   * @param taken bytes of what is held back, from its beginning: their memory may be free upon return. @param bytes given away.
   * @param isLast what is still held back goes on as well, and nothing has been stopped any more.
   * @returns false when nothing should follow before `onRequestRoom`, or the stream is over.
   */
  exchangeRequest(taken: number, bytes: Buffer, isLast: boolean): boolean;
  /** The same for the response, and `onResponseRoom`. */
  exchangeResponse(taken: number, bytes: Buffer, isLast: boolean): boolean;
  /** The answer at hand is one of the proxy's own, whose head alone may be edited. */
  readonly isLocalReply: boolean;
  /** The request wants a tunnel, and what follows its head, or that of the answer, is not HTTP unless it is refused. */
  readonly awaitsTunnel: boolean;
  /** What filters of one kind know together of this stream: made by the first that asks. @param key the kind's own. */
  shared<Shared extends object>(key: string, make: () => Shared): Shared;
  /**
   * From within encodeHeaders: the client is given the response to another request, which goes on like its own from the router, by the
   * route that is found for it. Filters nearer to the router do not see that response; this one does, and those behind it. What
   * still comes of the client's own body is dropped. Return a stop after it.
   * @param request head of a GET or HEAD without a body, as text with the empty line at its end.
   * @returns false when no route is found for it, or the stream is a tunnel: then nothing has changed.
   */
  forwardInstead(request: string): boolean;
  /**
   * Asks a cluster something for this request, and goes on without waiting. The receiver is told once, unless the stream is over
   * before; perhaps from within this call. What it throws fails the request.
   */
  call(request: CallRequest, receiver: CallReceiver): void;
  /** Logs can leave out such requests. */
  markHealthCheck(): void;
  /** Logs show it, whatever becomes of the request. */
  addFlag(flag: ResponseFlagName): void;
  /** What filters and logs may read of it from now on, key by key beside what there is under this name. */
  addMetadata(namespace: string, values: JsonObject): void;
  /** What filters have said of the request in filter state, else of its connection. */
  state(key: string): string | undefined;
  /** Says it of the request, for filters behind, routes, balancers and logs. @param isReadOnly what is said later does not count. */
  setState(key: string, value: string, isReadOnly: boolean): void;
  /**
   * From within decodeHeaders: the request goes to this host of its cluster, as far as that lets filters choose (override_host_status).
   * Attempts after the first go where the balancer says. @param address as logs show it. @param isStrict to no other: a 503.
   */
  overrideHost(address: string, isStrict: boolean): void;
  /**
   * From within decodeHeaders: of a cluster that requests name their hosts for, the request goes to this one, whatever its head says.
   * @param port null for the cluster's own, unless `host` has one.
   */
  nameHost(host: string, port: number | null): void;
  /** It came from outside, straight to this proxy. Right once a route has been looked for. */
  readonly isFromEdge: boolean;
  /** The cluster that the request's route names; empty where that is decided behind the filters, or there is none. */
  readonly routeCluster: string;
  /** What its route and virtual host have filters describe it by; null where they do not. */
  readonly rateLimits: RouteRateLimits | null;
  /** The client's address by the trusted hops, else that of the peer; empty for a pipe. Right as `isFromEdge` is. */
  readonly clientAddress: string;
  /** The one object of its connection. */
  readonly connection: DownstreamFacts;
  /** The request is one of gRPC from here on, whatever its client takes it for. @param form of replies to that client. */
  becomeGrpc(form: ReplyForm): void;
  /** The host that the last attempt has gone to, as logs show it; empty before and without one. */
  readonly upstreamAddress: string;
  /** All of the response has been given to the client. */
  readonly isComplete: boolean;
  /** It only asks whether the proxy is well. */
  readonly isHealthCheck: boolean;
  /** Of the client, as logs name it: `HTTP/1.1`. */
  readonly protocol: string;
  /** It is one of gRPC, or has become one before this filter. */
  readonly isGrpc: boolean;
  /** The cluster that the request goes to, once the router has chosen one. Its counts are those of its stat scope. */
  readonly cluster: CountedCluster | null;
  /** The same once the request has a route that names one, before the router has chosen. */
  readonly targetCluster: CountedCluster | null;
  /** A route has been found for it. */
  readonly hasRoute: boolean;
  /** Its route leads to a cluster: the proxy does not answer it itself. */
  readonly isForwarded: boolean;
  /** How much filters may hold up. */
  readonly bufferLimitBytes: number;
  /** Another limit for this request's body alone. */
  limitHeldRequest(bytes: number): void;
  /**
   * The head of a response that this filter is looking at, or has held back so that no other has seen it since. Valid until
   * return. @param status in place of the one that it has. @returns null for a reply of the proxy's own, which has only the head
   * that it came with. @throws WeirError WEIR_FILTER_EDIT when it has gone on.
   */
  heldResponseHead(status?: number): EditableHead | null;
  /** From within encodeHeaders: another status for a reply of the proxy's own. @throws WeirError WEIR_FILTER_EDIT where it is none. */
  restateReply(status: number): void;
  /**
   * The head of a request that this filter is looking at, or has held back so that no other has seen it since. Valid until
   * return; edits last if the filter then goes on, or settles it. @param method in place of the one that it has.
   * @throws WeirError WEIR_FILTER_EDIT when it has gone on.
   */
  heldRequestHead(method?: string): RequestHead;
  /**
   * From within decodeHeaders: others read the head as it is by now, edits and all, and the route is chosen anew by
   * that; otherwise it stays that of the head as the first filter saw it.
   */
  settleRequestHead(): void;
  /** The same, and the route stays. */
  settleEditedHead(): void;
  /**
   * What formats may ask of the request. @param response whose head this filter is looking at; null for none.
   * @param replyBody what a reply says before a format words it; left as it is when absent.
   */
  facts(response: EditableHead | null, replyBody?: string): FormatFacts;
  /** For a filter that this one runs in its own place: routes say nothing to that. */
  forInner(): FilterCallbacks;
  /** What the request's route says to this filter, as its kind has prepared it, the most specific level first; often empty. */
  readonly routeSettings: readonly unknown[];
}

/** Where a filter counts what it sees of the requests to a cluster; the same object for the same generation of it. */
export interface CountedCluster {
  counter(name: string): FilterCounter;
  /** Of milliseconds. */
  time(name: string): FilterTimes;
}

export interface FilterTimes {
  record(ms: number): void;
}

/** Members of a cluster, as this worker knows them. */
export interface HostCounts {
  readonly total: number;
  readonly healthy: number;
  readonly degraded: number;
}

/** What this worker tells others of its own health. */
export interface ServerHealth {
  /** The operator wants health checks to fail (POST /healthcheck/fail). */
  readonly isFailing: boolean;
}

export interface FilterCounter {
  add(n: number): void;
}

export interface FilterGauge extends FilterCounter {
  /** Over all threads. */
  readonly total: number;
  /** The same from now on: for a value, not a sum of parts. Where threads set it at once it may be off until the next time. */
  set(value: number): void;
}

/** A count over all workers. */
export interface SharedCount {
  /** Adds one unless that would make more than `limit`. @returns whether it has. */
  tryAdd(limit: number): boolean;
  /** Takes one away. */
  remove(): void;
}

/** What decision trees ask of a request beside its head. */
export type TreeSubject = Pick<FilterCallbacks, 'clientAddress' | 'connection' | 'state'> & {
  facts(response: null): Pick<FormatFacts, 'metadata'>;
};

export type HeadTest = (head: RequestHead) => boolean;

/** What filters are made with, once per snapshot. */
export interface FilterContext {
  readonly clock: Clock;
  readonly headerNames: ProxyHeaders;
  readonly serverHealth: ServerHealth;
  /** What the operator wants to be recorded. */
  readonly taps: Taps;
  /** One of those that the filter's settings name. @throws WeirError WEIR_UNKNOWN_COUNTER for any other. */
  counter(name: string): FilterCounter;
  /** The same of gauges. */
  gauge(name: string): FilterGauge;
  /** The same of histograms. */
  time(name: string): FilterTimes;
  /** One of those that the filter's settings name, over all workers. @throws WeirError WEIR_UNKNOWN_COUNTER for any other. */
  sharedCount(name: string): SharedCount;
  /** One that is named at run time; whoever asks bounds how many there may be, and keeps it. */
  namedCounter(name: string): FilterCounter;
  /** The same of a histogram of milliseconds. */
  namedTime(name: string): FilterTimes;
  /**
   * Tells the filters of this stat prefix that hear of the topic, in this worker at once, in the others a moment later. At the
   * rate of thousands a second they hear that it may be anything.
   */
  tellAll(topic: string, text: string): void;
  /** Hears what they tell, until the configuration is gone. @param listener texts are null for what may be anything. */
  onTold(topic: string, listener: (texts: readonly string[] | null) => void): void;
  /** Of the component `filter`. */
  readonly log: Logger;
  /** Calls it once, when the configuration is gone and all its streams are over; at once when that has been. What it throws is logged. */
  onClose(act: () => void): void;
  /** The values in force. */
  readonly runtime: RuntimeValues;
  /** A u32. */
  random(): number;
  /** Draws by a share that the runtime may override: true in as many of all cases. */
  share(setting: RuntimeSetting<Fraction>): () => boolean;
  /** True for a head that passes all. */
  compileHeaders(matches: readonly HeaderMatch[]): HeadTest;
  /** True for a query that passes all. */
  compileQuery(matches: readonly QueryParameterMatch[]): HeadTest;
  /** True for a request that a route with this match would be chosen for. */
  compileMatch(
    match: PathMatch,
    conditions: RouteConditions | null,
  ): (head: RequestHead, callbacks: FilterCallbacks) => boolean;
  /** Chooses by a response and its request. @param resultOf called once for each action. */
  compileResponseTree<Action, Result>(
    tree: MatchTree<Action>,
    resultOf: (action: Action) => Result,
  ): FindMatch<MatchedResponse, Result>;
  /**
   * Where a tree leads for a head and its sender; nowhere is undefined.
   * @param resultOf called once for each action.
   */
  compileTree<Action, Result>(
    tree: MatchTree<Action>,
    resultOf: (action: Action) => Result,
  ): (head: RequestHead, sender: TreeSubject) => Result | undefined;
  /** Milliseconds of the system's monotonic clock, which is the same for all workers. */
  sharedNowMs(): number;
  /**
   * Asks a cluster something on behalf of no request, or of one that is over, once the event at hand has been dealt with. The
   * receiver is told once; what it throws is logged.
   */
  call(request: CallRequest, receiver: CallReceiver): void;
  /** Undefined for a cluster that this worker does not know. */
  countHosts(cluster: string): HostCounts | undefined;
}

/** Makes the filter of one request. */
export type CreateFilter = (callbacks: FilterCallbacks) => HttpFilter;

/**
 * What a kind of filter does with bodies and trailers:
 *
 *   none    its data and trailers methods are never called; bodies pass by as they came
 *   reads   sees them, may edit trailers that are there; bodies travel as they came, framing included
 *   edits   may change, add and leave out anything: the body loses its framing and gets a new one
 */
export type BodyUse = 'none' | 'reads' | 'edits';

/** What a kind of filter needs, so that the rest need not be offered to it, and how one is made. */
export interface HttpFilterKind {
  readonly requestBody: BodyUse;
  /** Has any of the encode methods. */
  readonly encodes: boolean;
  readonly responseBody: BodyUse;
  /**
   * Whether the filter takes part in requests that begin now; it does when this is absent. One that does not costs them
   * nothing else. Asked with each request, of its head as it came.
   */
  isAwake?(settings: unknown, context: FilterContext, head: RequestHead): boolean;
  /** It may make another kind of request of one, by its type: filters behind it take part in all. */
  readonly remakesRequests?: boolean;
  /** What filters with these settings do with requests, where that is less than the kind does. */
  usesOf?(settings: unknown): Partial<FilterUses>;
  /** Prepares what a level of a route says to the filter, once per snapshot; it stays as it came when this is absent. */
  compileForRoute?(settings: object, context: FilterContext): unknown;
  /** @param settings as the filter's configuration made them. */
  compile(settings: unknown, context: FilterContext): CreateFilter;
}

/** What a chain goes by. */
export type FilterUses = Pick<HttpFilterKind, 'requestBody' | 'encodes' | 'responseBody' | 'remakesRequests'>;

/** The HTTP filters of a build, by their names in snapshots. */
export type HttpFilterRegistry = Readonly<Record<string, HttpFilterKind>>;
