// The HTTP connection manager of one listener in one worker: what all its connections share, and the list of them.

import type { FilterChainSnapshot, HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { HTTP_STATS, LISTENER_HTTP_STATS } from '../../stats/index.ts';
import type { HeadLimits } from '../../wasm/http1.ts';
import { AccessLog } from '../access-log/access-log.ts';
import type { ListenerDrain } from '../drains.ts';
import type { IngressFacts } from '../format/facts.ts';
import type { LiveHead } from '../format/stream-facts.ts';
import type { ListenerOrders } from '../listener-orders.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { type ExpensiveStream, NEWCOMER_MS, type TerminalFilter } from '../network/terminal-filter.ts';
import type { Overload } from '../overload.ts';
import { compileHeaderEdits, type HeaderEditor } from '../route/header-editor.ts';
import type { RouteSlot } from '../route/route-tables.ts';
import { RoutesInUse } from '../route/routes-in-use.ts';
import { ScopeKeyBuilder } from '../route/scope-key.ts';
import { AttemptLog } from '../router/attempt-log.ts';
import { Router } from '../router/router.ts';
import { UpstreamCalls } from '../router/upstream-call.ts';
import { RequestTracing } from '../tracing/request-tracing.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type ChainSlot, openChain } from './chain-slot.ts';
import { ClientCertificates } from './client-certificate.ts';
import type { DownstreamStream, RequestReceiver } from './codec/downstream-stream.ts';
import { Http1ServerConnection } from './codec/http1/server-connection.ts';
import { beginsAsHttp2 } from './codec/http2/frames.ts';
import { Http2ServerConnection } from './codec/http2/server-connection.ts';
import type { CodecName, CodecOwner, Refusal, ServerConnection } from './codec/server-connection.ts';
import type { StreamConnection } from './codec/stream-connection.ts';
import { CodecRequestHead } from './codec-request-head.ts';
import type { FilterChain } from './filter-chain.ts';
import type { ChainContext } from './filter-context.ts';
import { InternalAddresses } from './internal-addresses.ts';
import type { LocalReply } from './local-reply.ts';
import { OriginDetectors } from './origin-detection.ts';
import { refuseRequest } from './refused-request.ts';
import { ReplyRules } from './reply-rules.ts';
import { RequestLines } from './request-edits.ts';
import { RequestNormalization } from './request-normalization.ts';
import { ResponseLines } from './response-edits.ts';
import { HttpStream, type StreamManager } from './stream.ts';
import { Upgrades } from './upgrades.ts';

const {
  downstream_cx_active,
  downstream_cx_destroy,
  downstream_cx_destroy_active_rq,
  downstream_cx_destroy_local,
  downstream_cx_destroy_local_active_rq,
  downstream_cx_destroy_remote,
  downstream_cx_destroy_remote_active_rq,
  downstream_cx_drain_close,
  downstream_cx_http1_active,
  downstream_cx_http1_total,
  downstream_cx_http2_active,
  downstream_cx_http2_total,
  downstream_cx_length_ms,
  downstream_cx_overload_disable_keepalive,
  downstream_cx_ssl_active,
  downstream_cx_ssl_total,
  downstream_cx_total,
  downstream_rq_1xx,
  downstream_rq_completed,
} = HTTP_STATS.index;
const listenerRq1xx = LISTENER_HTTP_STATS.index.downstream_rq_1xx;
const listenerRqCompleted = LISTENER_HTTP_STATS.index.downstream_rq_completed;

/** By ALPN. */
const HTTP2_PROTOCOL = 'h2';
/** Connections by their codecs. */
const CODEC_STATS = {
  http1: { total: downstream_cx_http1_total, active: downstream_cx_http1_active },
  http2: { total: downstream_cx_http2_total, active: downstream_cx_http2_active },
} as const;

export class ConnectionManager implements TerminalFilter, CodecOwner, StreamManager {
  readonly settings: HttpConnectionManagerSettings;
  readonly router: Router;
  readonly routes: RouteSlot;
  readonly headLimits: HeadLimits;
  readonly upgrades: Upgrades;
  readonly requestLines: RequestLines;
  readonly clientCertificates: ClientCertificates;
  readonly normalization: RequestNormalization;
  readonly internalAddresses: InternalAddresses;
  /** Null where the address of the peer, and trusted hops, say who sends requests. */
  readonly originDetectors: OriginDetectors | null;
  readonly earlyHeaderEditor: HeaderEditor | null;
  readonly responseLines: ResponseLines;
  /** First cell of HTTP_STATS in this worker's slab. */
  readonly statBase: number;
  /** First cell of LISTENER_HTTP_STATS in this worker's slab. */
  readonly listenerStatBase: number;
  /** Null when no request is traced. */
  readonly tracing: RequestTracing | null;
  /** Null when nothing is logged. */
  readonly accessLog: AccessLog | null;
  /** Null where attempts are not logged. */
  readonly attemptLog: AttemptLog | null;
  /** Null when replies of the proxy's own go out as they are. */
  readonly replyRules: ReplyRules | null;
  readonly ingress: IngressFacts;
  /** Finds request headers for logs of requests that were never forwarded. */
  readonly liveHead: LiveHead;
  readonly overload: Overload;
  readonly #context: WorkerContext;
  readonly #connections = new Set<ServerConnection>();
  readonly #listenerDrain: ListenerDrain;
  readonly #statScope: string;
  /** The table that stands in the configuration; null where it is a resource of its own. */
  readonly #ownRoutes: RoutesInUse | null;
  readonly #chain: ChainSlot;
  /** Beside that, those of upgrades. */
  readonly #chains: ChainSlot[] = [];
  /** Of the filters of all chains. */
  readonly #filterContexts: ChainContext[] = [];
  /** The listener goes, or the process does. */
  #isDraining = false;
  #hasEndedIdle = false;
  #isFinishing = false;

  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    chain: FilterChainSnapshot,
    ingress: IngressFacts,
    { drain, overload }: ListenerOrders,
    settings: HttpConnectionManagerSettings,
  ) {
    this.#context = context;
    this.settings = settings;
    this.#listenerDrain = drain;
    this.overload = overload;
    this.#statScope = `http.${settings.statPrefix}.`;
    context.stats.openScope(this.#statScope);
    this.statBase = context.stats.base(chain.filterStatBlock);
    this.listenerStatBase = context.stats.base(chain.listenerHttpStatBlock);
    this.headLimits = {
      maxHeadBytes: settings.maxRequestHeadersBytes,
      maxFields: settings.maxHeadersCount,
      takesChunkedLength: settings.http1?.takesChunkedLength ?? false,
    };
    this.accessLog = AccessLog.compile(context, clusters, settings);
    this.attemptLog = AttemptLog.of(context, clusters, settings.upstreamLog);
    this.tracing =
      settings.tracing === undefined
        ? null
        : new RequestTracing(context, new UpstreamCalls(context, clusters), settings.tracing, this.statBase);
    this.replyRules = ReplyRules.compile(context, settings.localReplies);
    this.ingress = ingress;
    this.liveHead = new CodecRequestHead(context.codec);
    this.normalization = new RequestNormalization(context, settings.normalization, this.statBase, {
      http1: context.stats.base(chain.http1StatBlock),
      http2: context.http2StatBase,
    });
    this.internalAddresses = new InternalAddresses(settings.forwarding.internalAddresses);
    this.earlyHeaderEditor = compileHeaderEdits(settings.earlyHeaderEdits ?? []);
    this.originDetectors = OriginDetectors.of(settings.forwarding, this.internalAddresses);
    this.clientCertificates = new ClientCertificates(context, settings);
    this.requestLines = new RequestLines(context, settings, this.internalAddresses);
    this.responseLines = new ResponseLines(settings, context.proxyHeaders);
    const contexts = this.#filterContexts;
    const ids = (chain.discoveredFilterIds ?? []).values();
    const parts = {
      context,
      clusters,
      statScope: this.#statScope,
      cells: chain.filterCounters ?? {},
      opened: (opened: ChainContext) => contexts.push(opened),
      nextId: () => ids.next().value!,
    };
    const open = (filters: HttpConnectionManagerSettings['httpFilters']): ChainSlot => {
      const slot = openChain(filters, parts);
      this.#chains.push(slot);
      return slot;
    };
    try {
      this.#chain = open(settings.httpFilters);
      this.upgrades = new Upgrades(settings.upgrades, settings.http1?.ignoredUpgrades ?? [], this.#chain, open);
    } catch (error) {
      for (const made of this.#chains) made.close();
      for (const made of contexts) made.close();
      throw error;
    }
    const { routeTableId, scopeSetId, routeStatBlocks: statBlocks = {} } = chain;
    const own = { table: settings.routeTable, statBlocks };
    this.#ownRoutes = routeTableId === undefined ? new RoutesInUse(context, own, null) : null;
    this.routes = this.#ownRoutes === null ? context.routeTables.slot(routeTableId!) : { current: this.#ownRoutes };
    const { scopedRoutes } = settings;
    const scopes =
      scopeSetId === undefined || scopedRoutes === undefined
        ? null
        : context.scopeSets.scopes(scopeSetId, new ScopeKeyBuilder(scopedRoutes.keyParts), this.routes);
    this.router = new Router(context, clusters, settings, this.statBase, scopes);
  }

  /** Whether the response at hand is the last one of its connection, by a drain or for overload; counted then. Once per response. */
  endsWithResponse(): boolean {
    if (this.#isDraining || this.#listenerDrain.closes()) return this.#countDrained();
    if (!this.overload.endsConnection()) return false;
    this.#context.stats.values[this.statBase + downstream_cx_overload_disable_keepalive]! += 1;
    return true;
  }

  /** Whether a drain ends a connection after a response that has not said so; counted then. */
  endsBetweenRequests(): boolean {
    return (this.#isDraining || this.#listenerDrain.isCertain) && this.#countDrained();
  }

  get filters(): FilterChain | null {
    return this.#chain.current;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  accept(downstream: DownstreamConnection): void {
    if (this.overload.refusesCodec()) {
      downstream.socket.destroy();
      downstream.closed();
      return;
    }
    const { values } = this.#context.stats;
    values[this.statBase + downstream_cx_total]! += 1;
    values[this.statBase + downstream_cx_active]! += 1;
    if (downstream.tls !== null) {
      values[this.statBase + downstream_cx_ssl_total]! += 1;
      values[this.statBase + downstream_cx_ssl_active]! += 1;
    }
    const codec = this.#codecOf(downstream);
    const connection =
      codec === 'http2'
        ? new Http2ServerConnection(this.#context, this, downstream)
        : new Http1ServerConnection(this.#context, this, downstream, codec === 'http1');
    this.#connections.add(connection);
    if (codec !== null) this.onCodecKnown(connection);
    this.#welcome(connection);
  }

  onCodecKnown({ codec }: ServerConnection): void {
    if (codec === null) return;
    const { values } = this.#context.stats;
    values[this.statBase + CODEC_STATS[codec].total]! += 1;
    values[this.statBase + CODEC_STATS[codec].active]! += 1;
  }

  takeOver(connection: ServerConnection, bytes: Buffer): boolean {
    if (!beginsAsHttp2(bytes)) return false;
    this.#connections.delete(connection);
    const successor = new Http2ServerConnection(this.#context, this, connection.connection.downstream);
    this.#connections.add(successor);
    this.onCodecKnown(successor);
    this.#welcome(successor);
    successor.receive(bytes);
    return true;
  }

  /** By configuration, or by what was agreed on in the handshake; null where the first bytes are to say it. */
  #codecOf({ tls }: DownstreamConnection): CodecName | null {
    if (this.settings.codec !== 'auto') return this.settings.codec;
    if (tls === null || tls.protocol === '') return null;
    return tls.protocol === HTTP2_PROTOCOL ? 'http2' : 'http1';
  }

  newStream(stream: DownstreamStream, startedMs: number, headMs: number): RequestReceiver {
    return new HttpStream(this.#context, this, stream, startedMs, headMs);
  }

  refuseRequest(connection: StreamConnection, reply: LocalReply, protocol: string, startedMs: number): Refusal {
    return refuseRequest(this.#context, this, connection, reply, protocol, startedMs);
  }

  announceDrain(): void {
    for (const connection of this.#connections) {
      const { noticeMs } = this.#listenerDrain;
      if (noticeMs < Number.POSITIVE_INFINITY) connection.drainWithin(noticeMs);
    }
  }

  onDrainNotice(): void {
    this.#countDrained();
  }

  drain(endsIdle: boolean): void {
    this.#isDraining = true;
    if (!endsIdle || this.#hasEndedIdle) return;
    this.#hasEndedIdle = true;
    for (const connection of [...this.#connections]) {
      if (!connection.isBusy) this.#countDrained();
      connection.drain();
    }
  }

  /** True when the process ends: tunnels end with their first silence. */
  get isFinishing(): boolean {
    return this.#isFinishing;
  }

  /** What a drain leaves open ends with its request, or, if it is a tunnel, when it falls silent. */
  finish(): void {
    this.#isFinishing = true;
    for (const connection of this.#connections) connection.finish();
  }

  destroyConnections(): void {
    for (const connection of [...this.#connections]) connection.destroy();
  }

  findExpensive(fromBytes: number, found: ExpensiveStream[]): void {
    for (const connection of this.#connections) connection.findExpensive(fromBytes, found);
  }

  rescaleTimeouts(): void {
    for (const connection of this.#connections) connection.rescaleTimeouts();
  }

  close(): void {
    this.accessLog?.close();
    this.attemptLog?.close();
    this.tracing?.close();
    this.#ownRoutes?.close();
    for (const chain of this.#chains) chain.close();
    for (const context of this.#filterContexts) context.close();
    this.#context.stats.closeScope(this.#statScope);
  }

  onConnectionClosed(connection: ServerConnection, isLocal: boolean, hadStream: boolean): void {
    this.#connections.delete(connection);
    const { downstream } = connection.connection;
    const { values } = this.#context.stats;
    values[this.statBase + downstream_cx_active]! -= 1;
    if (connection.codec !== null) values[this.statBase + CODEC_STATS[connection.codec].active]! -= 1;
    if (downstream.tls !== null) values[this.statBase + downstream_cx_ssl_active]! -= 1;
    values[this.statBase + downstream_cx_destroy]! += 1;
    const lengthMs = this.#context.clock.monotonicMs() - downstream.startMs;
    this.#context.stats.record(this.statBase + downstream_cx_length_ms, lengthMs);
    values[this.statBase + (isLocal ? downstream_cx_destroy_local : downstream_cx_destroy_remote)]! += 1;
    if (hadStream) {
      values[this.statBase + downstream_cx_destroy_active_rq]! += 1;
      const bySide = isLocal ? downstream_cx_destroy_local_active_rq : downstream_cx_destroy_remote_active_rq;
      values[this.statBase + bySide]! += 1;
    }
    downstream.closed();
  }

  #welcome(connection: ServerConnection): void {
    if (this.#hasEndedIdle) connection.expectSoon(NEWCOMER_MS);
    const { noticeMs } = this.#listenerDrain;
    // Who comes when all have been told may ask for something first: it would only come back.
    if (noticeMs > 0 && noticeMs < Number.POSITIVE_INFINITY) connection.drainWithin(noticeMs);
  }

  #countDrained(): true {
    this.#context.stats.values[this.statBase + downstream_cx_drain_close]! += 1;
    return true;
  }

  /** A response is complete. */
  countResponse(status: number): void {
    const { values } = this.#context.stats;
    const codeClass = Math.min(Math.trunc(status / 100), 5) - 1;
    values[this.statBase + downstream_rq_completed]! += 1;
    values[this.statBase + downstream_rq_1xx + codeClass]! += 1;
    values[this.listenerStatBase + listenerRqCompleted]! += 1;
    values[this.listenerStatBase + listenerRq1xx + codeClass]! += 1;
  }
}
