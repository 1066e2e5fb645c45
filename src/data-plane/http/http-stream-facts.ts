// The facts of one HTTP request, as its stream meets them. A stream has none while no log and no header value asks.

import type { Clock } from '../../base/clock.ts';
import type { DownstreamFacts, IngressFacts } from '../format/facts.ts';
import { type LiveHead, NOT_YET, StreamFacts } from '../format/stream-facts.ts';
import { newWireBytes } from '../format/wire-bytes.ts';
import type { Route } from '../route/route.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';
import { type ConnectionEnds, UpstreamEnd } from '../upstream/upstream-facts.ts';

/** What is known of the stream from its start. */
export interface StreamStart {
  readonly downstream: DownstreamFacts;
  readonly ingress: IngressFacts;
  /** Where the request's head is while nothing has been written of it. */
  readonly liveHead: LiveHead;
  /** Monotonic. */
  readonly startedMs: number;
  readonly protocol: string;
  /** From an upstream's connection on, its scheme is that of the request. */
  readonly matchesUpstreamScheme: boolean;
}

/** A request that has been made for an upstream. */
interface ForwardedRequest {
  readonly cluster: Cluster;
  /** As it is to be sent. */
  readonly head: string;
  readonly host: Host | null;
  readonly attempts: number;
}

export class HttpStreamFacts extends StreamFacts {
  readonly #clock: Clock;
  readonly #matchesUpstreamScheme: boolean;
  #upstreamEnd: UpstreamEnd | null = null;
  #hostCluster: Cluster | null = null;

  constructor(clock: Clock, start: StreamStart) {
    super(clock, start.startedMs, start.downstream, 'DownstreamEnd', start.ingress);
    this.#clock = clock;
    this.#matchesUpstreamScheme = start.matchesUpstreamScheme;
    this.protocol = start.protocol;
    this.downstreamWire = newWireBytes();
    this.upstreamWire = newWireBytes();
    this.liveHead = start.liveHead;
  }

  override requestHeader(name: string): string | undefined {
    const isUpstreams = name === ':scheme' && this.#matchesUpstreamScheme && this.upstream !== null;
    if (!isUpstreams || this.upstream!.connectionId === 0) return super.requestHeader(name);
    return this.upstream!.tls === null ? 'http' : 'https';
  }

  /** The client has sent all. Later times are those of requests that follow a redirect. */
  noteRequestEnd(atMs: number): void {
    if (this.requestEndMs === NOT_YET) this.requestEndMs = atMs;
  }

  noteRoute(route: Route): void {
    this.routeName = route.name;
    this.routeMetadata = route.metadata;
    this.virtualHostName = route.virtualHostName;
    this.virtualHostMetadata = route.virtualHostMetadata;
  }

  /** The one that the request goes to, or whose host it has. */
  noteCluster(cluster: Cluster): void {
    // Hosts of an aggregate cluster are others'.
    const isAggregate = cluster.settings.aggregate !== undefined;
    const { settings } = isAggregate ? (this.#hostCluster ?? cluster) : cluster;
    this.upstreamCluster = settings.name;
    this.clusterMetadata = settings.metadata;
  }

  noteForwarding({ cluster, head, host, attempts }: ForwardedRequest): void {
    this.noteCluster(cluster);
    this.requestHead = head;
    if (host !== null) this.noteHost(host, attempts);
  }

  /** An attempt goes to this host. */
  noteHost(host: Host, attempts: number): void {
    // Told again with what is known of the attempt by then.
    const upstream = new UpstreamEnd(host);
    if (attempts !== this.attempts) this.noteHostChosen(upstream);
    this.upstream = upstream;
    this.#upstreamEnd = upstream;
    this.#hostCluster = host.cluster;
    this.noteCluster(host.cluster);
    this.attempts = attempts;
  }

  /** The request goes out from this end, with this head, and perhaps with all of its body. */
  noteConnection(connection: ConnectionEnds, head: string, isRequestComplete: boolean): void {
    const nowMs = this.#clock.monotonicMs();
    this.requestHead = head;
    this.noteConnectionReady(nowMs);
    this.noteEnds(connection);
    this.upstreamStartMs = nowMs;
    if (isRequestComplete) this.requestSentMs = nowMs;
  }

  /** Its last byte has gone out. @param nowMs of the read that brought it, which may have been before the first one went out. */
  noteRequestSent(nowMs: number): void {
    this.requestSentMs = Math.max(nowMs, this.upstreamStartMs);
  }

  noteEnds(connection: ConnectionEnds): void {
    this.#upstreamEnd?.noteConnection(connection);
  }

  /** What the facts of an attempt take from those of its request: all that an attempt has none of its own of. */
  borrow(request: HttpStreamFacts): void {
    this.clientByHops = request.clientByHops;
    this.isGrpc = request.isGrpc;
    this.isHealthCheck = request.isHealthCheck;
    this.routeName = request.routeName;
    this.routeMetadata = request.routeMetadata;
    this.virtualHostName = request.virtualHostName;
    this.virtualHostMetadata = request.virtualHostMetadata;
    this.virtualClusterName = request.virtualClusterName;
    this.dynamicMetadata = request.dynamicMetadata;
    this.requestState = request.requestState;
    this.tracePlace = request.tracePlace;
    this.requestEndMs = request.requestEndMs;
    this.downstreamWire = request.downstreamWire;
    // Of an attempt that has found no connection: what would have gone out.
    if (this.requestHead === '') this.requestHead = request.requestHead;
    if (this.upstreamCluster === '') {
      this.upstreamCluster = request.upstreamCluster;
      this.clusterMetadata = request.clusterMetadata;
    }
  }

  noteResponse(head: string, bodyBytes: number, nowMs: number): void {
    this.responseHead = head;
    this.responseStartMs = nowMs;
    this.answerStartMs = nowMs;
    this.bytesSent = bodyBytes;
  }

  /** A reply of the proxy's own. */
  noteReply(head: string, body: string, bodyBytes: number, nowMs: number): void {
    this.answerStartMs = nowMs;
    this.responseHead = head;
    this.localReplyBody = body;
    this.bytesSent = bodyBytes;
  }
}
