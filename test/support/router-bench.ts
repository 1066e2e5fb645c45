// A router over clusters whose upstreams do what a test says when it says so, and the streams whose requests it routes.

import assert from 'node:assert/strict';
import { NO_LIMITS } from '../../src/data-plane/http/filtered-stream.ts';
import type { LocalReply } from '../../src/data-plane/http/local-reply.ts';
import type { HttpStream } from '../../src/data-plane/http/stream.ts';
import type { ClusterTarget } from '../../src/data-plane/route/forward-plan.ts';
import type { Route } from '../../src/data-plane/route/route.ts';
import { RoutesInUse } from '../../src/data-plane/route/routes-in-use.ts';
import type { ForwardedRequest } from '../../src/data-plane/router/forwarded-request.ts';
import type { InternalRedirects } from '../../src/data-plane/router/internal-redirects.ts';
import { Router } from '../../src/data-plane/router/router.ts';
import type { Cluster } from '../../src/data-plane/upstream/cluster.ts';
import type { ForwardAction, HttpConnectionManagerSettings, RouteSnapshot } from '../../src/snapshot/index.ts';
import { HTTP_STATS } from '../../src/stats/index.ts';
import { Method, type RequestHead } from '../../src/wasm/http1.ts';
import { AttemptBench, type AttemptBenchOptions, NotingClient } from './attempt-bench.ts';
import { httpManager } from './data-plane.ts';
import { forwardTo, routeFor } from './routes.ts';

/** A stream as the router sees it. */
export class NotingStream extends NotingClient {
  foundRoute: Route | null = null;
  foundTarget: ClusterTarget | null = null;
  route: Route | null = null;
  target: ClusterTarget | null = null;
  cluster: Cluster | null = null;
  redirects: InternalRedirects | null = null;
  setCookies: readonly string[] | null = ['a=b'];
  maxStreamDurationMs = 0;
  routeDurationMs = 0;
  hedgesOnPerTryTimeout = false;
  wantsAltResponse = false;
  /** Of the connection; null when nobody knows. */
  readonly connectionEnds: { originalDestination: { ip: string; port: number } | null } = { originalDestination: null };
  readonly replies: LocalReply[] = [];
  readonly idleTimeouts: number[] = [];
  /** What `prepare` finds out. */
  comesFromInside = false;

  readonly routes: RoutesInUse;

  constructor(statusNow: () => number, routes: RoutesInUse) {
    super(statusNow);
    this.routes = routes;
  }

  /** As the streams that the router knows. */
  get asStream(): HttpStream {
    return this as unknown as HttpStream;
  }

  readonly isFiltered = false;

  prepare(head: RequestHead): void {
    this.isInternal = this.comesFromInside;
    head.append('edited', '1');
  }

  reply(reply: LocalReply): void {
    this.replies.push(reply);
  }

  setIdleTimeout(ms: number): void {
    this.idleTimeouts.push(ms);
  }

  setFlushTimeout(): void {}

  tellOfUnsent(): void {}

  override useCluster(cluster: Cluster): void {
    this.cluster = cluster;
  }
}

export interface RouterBenchOptions extends AttemptBenchOptions {
  readonly settings?: Partial<HttpConnectionManagerSettings>;
}

export class RouterBench extends AttemptBench {
  readonly stream: NotingStream;
  readonly router: Router;
  readonly #statBase: number;

  constructor(routes: readonly RouteSnapshot[], { settings, ...options }: RouterBenchOptions = {}) {
    super(options);
    const { codec, stats } = this.context;
    const manager = httpManager(routes, settings);
    const table = { table: manager.routeTable, statBlocks: {} };
    this.stream = new NotingStream(() => codec.response.status, new RoutesInUse(this.context, table, null));
    this.#statBase = stats.base(this.workers.statBlock(HTTP_STATS));
    this.router = new Router(this.context, this.clusters, manager, this.#statBase);
  }

  httpStat(name: keyof typeof HTTP_STATS.index): number {
    return this.context.stats.values[this.#statBase + HTTP_STATS.index[name]]! + 0;
  }

  /** Reads a head as the connection's codec does. @param lines beside Host, without their ends. */
  read(startLine = 'GET /', ...lines: readonly string[]): RequestHead {
    const text = `${[`${startLine} HTTP/1.1`, 'host: h', ...lines].join('\r\n')}\r\n\r\n`;
    const { codec } = this.context;
    assert.ok(codec.parseRequest(Buffer.from(text, 'latin1'), 0, text.length, NO_LIMITS) > 0);
    this.stream.methodId = codec.request.methodId;
    return codec.request;
  }

  /** @returns null when the request has been answered. */
  routed(startLine?: string, ...lines: readonly string[]): ForwardedRequest | null {
    return this.router.route(this.stream.asStream, this.read(startLine, ...lines));
  }

  /** Header lines of the head that goes out, without Host, and what the connection manager has said. */
  forwarded(startLine?: string, ...lines: readonly string[]): string[] {
    const own = ['edited: 1', 'host: h'];
    const { head } = this.routed(startLine, ...lines)!;
    return head
      .split('\r\n')
      .slice(1, -2)
      .filter((line) => !own.includes(line));
  }

  /** The upstream's answer lies in the codec, as when a stream is asked about it. */
  answer(status: number, ...lines: readonly string[]): void {
    const text = `${[`HTTP/1.1 ${status} X`, ...lines].join('\r\n')}\r\n\r\n`;
    const length = this.context.codec.parseResponse(Buffer.from(text, 'latin1'), 0, text.length, NO_LIMITS, Method.GET);
    assert.ok(length > 0);
  }
}

/** Everything goes to the cluster of the bench. */
export function forwarding(action: Partial<ForwardAction> = {}, options: RouterBenchOptions = {}): RouterBench {
  return new RouterBench([routeFor('/', forwardTo('web', action))], options);
}
