// What a filter of the user's own is made of, and what it is given. Types only: they are a part of the package's own.
// Reference: docs/filters.md.

/** Anything that has a form in JSON. */
export type FilterConfig = Readonly<Record<string, unknown>>;

/**
 * What a filter does with bodies and trailers of one direction: nothing, it looks at them, or it changes them. Without need bodies
 * pass by without being looked at.
 */
export type BodyUse = 'none' | 'reads' | 'edits';

/**
 * The default export of a module, or what createProxy is given under a name. A function stands for one that has nothing but `create`.
 */
export interface HttpFilterDefinition {
  /** Of requests; `none` when absent. */
  readonly requestBody?: BodyUse;
  /** Of responses. */
  readonly responseBody?: BodyUse;
  /** Throws for a configuration that the filter cannot take, before any of it is used. Runs in the main thread. */
  checkConfig?(config: FilterConfig): void;
  /** Is called in each worker thread, once for each connection manager that has the filter, and again when that changes. */
  create(config: FilterConfig, context: HttpFilterContext): CreateHttpFilter;
}

/** Is called for each request. */
export type CreateHttpFilter = (stream: HttpFilterStream) => HttpFilter;

export type HttpFilterFactory = HttpFilterDefinition['create'];

/**
 *   continue         what has come goes on to the next filter
 *   stop             all that comes is kept until the filter goes on: beyond the buffer limit a request gets a 413, a response a 500
 *   stop-and-pause   the same, but at the buffer limit reading waits
 */
export type FilterStatus = 'continue' | 'stop' | 'stop-and-pause';

/** Nothing stands for `continue`. */
// biome-ignore lint/suspicious/noConfusingVoidType: an async method without return
export type FilterResult = FilterStatus | void;

/** What was sent waits (`stop-and-pause`) until a promise is resolved, and then does as it says; a rejection is answered with a 500. */
export type AwaitedResult = FilterResult | Promise<FilterResult>;

/** All methods are optional. A message ends with its head, with data or with trailers. What one throws is answered with a 500. */
export interface HttpFilter {
  /** @param isEnd there is no body. */
  decodeHeaders?(headers: RequestHeaders, isEnd: boolean): AwaitedResult;
  /** For filters that read or edit the request's body. Comes also for what waits. */
  decodeData?(data: FilterData): FilterResult;
  /** Comes only where trailers are enabled. */
  decodeTrailers?(trailers: FilterTrailers): AwaitedResult;
  /** Comes for answers of the proxy itself as well, whose head alone may be changed, and which do not wait. */
  encodeHeaders?(headers: ResponseHeaders, isEnd: boolean): AwaitedResult;
  /** For filters that read or edit the response's body. */
  encodeData?(data: FilterData): FilterResult;
  encodeTrailers?(trailers: FilterTrailers): AwaitedResult;
  /** The stream is over, in whatever way; called once. */
  onDestroy?(): void;
}

/**
 * Until the filter has let the head go on. Names are in any case and read in lower case; values have a character for each byte.
 * @throws TypeError for a name or value that cannot stand in a head, and for fields that say how a message is framed.
 */
export interface FilterHeaders {
  /** Several fields are joined with `, `. */
  get(name: string): string | undefined;
  has(name: string): boolean;
  /** In place of all fields of the name. */
  set(name: string, value: string): void;
  append(name: string, value: string): void;
  remove(name: string): void;
  entries(): readonly (readonly [name: string, value: string])[];
}

export interface RequestHeaders extends FilterHeaders {
  readonly method: string;
  /** With its query. The route stays as it is, unless the filter has `clearRouteCache` choose anew. */
  path: string;
  /** Host and port. */
  authority: string;
}

export interface ResponseHeaders extends FilterHeaders {
  /** Of 200 to 599 where it is changed; that of an answer of the proxy itself stays. */
  status: number;
}

/** A part of a body, without its framing. */
export interface FilterData {
  /** A Buffer, borrowed until return. A filter that edits may change them, or put others in their place, none included. */
  bytes: Uint8Array;
  /** The message ends here. */
  readonly isEnd: boolean;
}

/** Names in lower case. @throws for what may not be a trailer. */
export interface FilterTrailers {
  entries(): readonly (readonly [name: string, value: string])[];
  get(name: string): string | undefined;
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  remove(name: string): void;
}

/** The request at hand. Nothing of it does anything once the stream is over. */
export interface HttpFilterStream {
  /** Answers in place of an upstream; nothing goes on after it. A response that has begun is broken off. */
  reply(reply: FilterReply): void;
  /** Goes on after a stop. */
  continueDecoding(): void;
  continueEncoding(): void;
  /** From within decodeHeaders, or while the head waits: the route is chosen anew by the head as it is by now. */
  clearRouteCache(): void;
  /** Asks a cluster. Rejected by an Error with a `code` of `WEIR_CALL_FAILED`, and never settled once the stream is over. */
  call(request: FilterCall): Promise<FilterAnswer>;
  /** For the filters behind, and for %DYNAMIC_METADATA()% in logs. */
  addMetadata(namespace: string, values: FilterConfig): void;
  /** Is aborted when the stream is over, for what takes one, such as fetch. */
  readonly signal: AbortSignal;
  /** What the request's route says to this filter, the nearest level first; often empty. */
  readonly routeConfigs: readonly FilterConfig[];
  /** Empty where there is no route, or where it does not name one. */
  readonly routeCluster: string;
  /** The client by the hops that are trusted, without its port. */
  readonly clientAddress: string;
  readonly connection: FilterConnection;
  /** As `HTTP/1.1`. */
  readonly protocol: string;
  /** The response at hand is one of the proxy itself. */
  readonly isLocalReply: boolean;
}

export interface FilterConnection {
  readonly id: number;
  /** As `192.0.2.1:80`; a path for a unix socket. */
  readonly remoteAddress: string;
  readonly localAddress: string;
  /** By SNI; empty for none. */
  readonly serverName: string;
  readonly isTls: boolean;
}

export interface FilterReply {
  /** 200 to 599. */
  readonly status: number;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** What logs say of it (%RESPONSE_CODE_DETAILS%), without white space; the filter's name when absent. */
  readonly details?: string;
}

export interface FilterCall {
  /** Its name. */
  readonly cluster: string;
  /** `GET` when absent. */
  readonly method?: string;
  /** `/` when absent. */
  readonly path?: string;
  /** The cluster's name when absent. */
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** 1000 when absent. */
  readonly timeoutMs?: number;
  /** A longer body is a failure; 1 MiB when absent. */
  readonly maxAnswerBytes?: number;
}

export interface FilterAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** A Buffer. */
  readonly body: Uint8Array;
}

/** What a filter is made with. */
export interface HttpFilterContext {
  /**
   * Calls it once, when the configuration that the filter was made for is gone from this worker and all its requests are over: the place to end timers and
   * connections that `create` has begun. What it throws is logged. A worker that ends at once calls nothing.
   */
  onDispose(act: () => void | Promise<void>): void;
  /** As http_filters calls it. */
  readonly name: string;
  /** `http.<stat_prefix>.<name of the filter>.<name>`. At most 1000 of both kinds. */
  counter(name: string): { add(n?: number): void };
  /** A histogram of milliseconds. */
  time(name: string): { record(ms: number): void };
  /** In the component `filter`. */
  readonly log: Readonly<Record<'debug' | 'info' | 'warning' | 'error', (message: string) => void>>;
  /** Values of the runtime, as they are now; undefined for none. */
  readonly runtime: {
    text(key: string): string | undefined;
    number(key: string): number | undefined;
    flag(key: string): boolean | undefined;
  };
}
