// What an HTTP filter is: a step between connection manager and router that sees a request on its way in and the
// response on its way out. Step 3 of the request flow; the chain that runs them is filter-chain.ts.
//
//   client ── decodeHeaders, decodeData, decodeTrailers ──► first filter ──► … ──► last ──► router
//   client ◄── first filter ◄── … ◄── last ◄── encodeHeaders, encodeData, encodeTrailers ── router
//
// A filter is made for one request, runs in its worker, and is let go with the stream.

import type { Clock } from '../../base/clock.ts';
import type { HeaderMatch } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { LocalReply } from './local-reply.ts';
import type { ProxyHeaders } from './proxy-headers.ts';

/**
 * `stop` keeps all that has come so far from the filters behind, until this filter returns `continue` to a later call
 * of the same direction or has the callbacks go on. What comes meanwhile is held, up to the listener's buffer limit: a
 * request beyond it gets a 413, a response a 500. The filter that has stopped goes on seeing what comes.
 */
export type FilterStatus = 'continue' | 'stop';

/** Fields behind a chunked body, name in lower case and value in turn. */
export type Trailers = readonly (readonly [name: string, value: string])[];

/**
 * All methods are optional. One that is missing lets everything through, and bodies that no filter reads are passed
 * on without being looked at. Bytes are the body without its framing, borrowed until return, and not to be changed.
 */
export interface HttpFilter {
  /**
   * May edit the head, which is valid until return.
   * @param isEnd there will be no body.
   */
  decodeHeaders?(head: RequestHead, isEnd: boolean): FilterStatus;
  decodeData?(bytes: Buffer, isEnd: boolean): FilterStatus;
  /** Follows the data, in place of an end there. */
  decodeTrailers?(trailers: Trailers): FilterStatus;
  /**
   * May edit the head, which is valid until return. Comes for local replies as well; those are complete when they are
   * made, so that they cannot be stopped, and their bodies are not shown.
   */
  encodeHeaders?(head: EditableHead, status: number, isEnd: boolean): FilterStatus;
  encodeData?(bytes: Buffer, isEnd: boolean): FilterStatus;
  encodeTrailers?(trailers: Trailers): FilterStatus;
  /** The stream is over, in whatever way; called once. */
  onDestroy?(): void;
}

/** What a filter may ask of its stream. None of it does anything once the stream is over. */
export interface FilterCallbacks {
  /** Answers in place of an upstream; return `stop` after it. Ignored once a response has begun. */
  reply(reply: LocalReply): void;
  /** Goes on after a `stop`; from an event of the filter's own, or from within its methods. */
  continueDecoding(): void;
  continueEncoding(): void;
  /** Logs can leave out such requests. */
  markHealthCheck(): void;
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

export type HeadTest = (head: RequestHead) => boolean;

/** What filters are made with, once per snapshot. */
export interface FilterContext {
  readonly clock: Clock;
  readonly headerNames: ProxyHeaders;
  readonly serverHealth: ServerHealth;
  /** True for a head that passes all. */
  compileHeaders(matches: readonly HeaderMatch[]): HeadTest;
  /** Undefined for a cluster that this worker does not know. */
  countHosts(cluster: string): HostCounts | undefined;
}

/** Makes the filter of one request. */
export type CreateFilter = (callbacks: FilterCallbacks) => HttpFilter;

/** What a kind of filter reads and edits, so that the rest need not be offered to it, and how one is made. */
export interface HttpFilterKind {
  /** Has decodeData or decodeTrailers. */
  readonly readsRequestBody: boolean;
  /** Has any of the encode methods. */
  readonly encodes: boolean;
  /** Has encodeData or encodeTrailers. */
  readonly readsResponseBody: boolean;
  /** @param settings as the filter's configuration made them. */
  compile(settings: unknown, context: FilterContext): CreateFilter;
}

/** The HTTP filters of a build, by their names in snapshots. */
export type HttpFilterRegistry = Readonly<Record<string, HttpFilterKind>>;
