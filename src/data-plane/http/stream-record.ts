// What is known of one request and its response, and what is counted of them, beside moving their bytes: who, when,
// which route, how it ended; the facts for logs and header values, which nobody makes before someone asks.

import type { JsonObject } from '../../base/json.ts';
import type { HttpConnectionManagerSettings, HttpLogEntries, Metadata } from '../../snapshot/index.ts';
import { HTTP_STATS } from '../../stats/index.ts';
import type { AccessLog } from '../access-log/access-log.ts';
import type { IngressFacts } from '../format/facts.ts';
import { type AccessLogType, type LiveHead, NOT_YET } from '../format/stream-facts.ts';
import type { WireBytes } from '../format/wire-bytes.ts';
import { FilterState } from '../network/filter-state.ts';
import { flagBit, NO_FLAGS, type ResponseFlagName } from '../response-flags.ts';
import type { ClusterTarget } from '../route/forward-plan.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { RequestTally } from '../route/request-tally.ts';
import type { Route } from '../route/route.ts';
import type { NamedDestination } from '../route/route-request.ts';
import type { RouteSlot } from '../route/route-tables.ts';
import type { RoutesInUse } from '../route/routes-in-use.ts';
import type { AttemptEntry } from '../router/attempt-entry.ts';
import type { AttemptLog } from '../router/attempt-log.ts';
import type { AttemptTrace } from '../tracing/attempt-trace.ts';
import type { RequestTrace } from '../tracing/request-trace.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';
import type { OverrideHost } from '../upstream/override-hosts.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DownstreamStream } from './codec/downstream-stream.ts';
import { isGrpc } from './grpc-request.ts';
import { HttpStreamFacts, type StreamStart } from './http-stream-facts.ts';
import { ReplyForm } from './local-reply.ts';
import { PeriodicEntries } from './periodic-entries.ts';
import type { ReplyRules } from './reply-rules.ts';
import type { RoutedStream } from './route-response-edits.ts';
import { SaidMetadata } from './said-metadata.ts';

/** Of filters, in dynamic metadata, before they are put together. */
const MOST_UNREAD_SAYINGS = 16;

const { downstream_rq_active, downstream_rq_time, downstream_rq_total } = HTTP_STATS.index;

export const VIA_UPSTREAM = 'via_upstream';

/** Where requests are counted and logged: the part of a connection manager that knows of neither. */
export interface RequestLedger {
  /** First cell of HTTP_STATS in this worker's slab. */
  readonly statBase: number;
  /** Null when nothing is logged. */
  readonly accessLog: AccessLog | null;
  /** Null where attempts are not logged. */
  readonly attemptLog: AttemptLog | null;
  /** Null when replies of the proxy's own go out as they are. */
  readonly replyRules: ReplyRules | null;
  readonly ingress: IngressFacts;
  readonly routes: RouteSlot;
  /** Finds request headers while nothing has been written of them. */
  readonly liveHead: LiveHead;
  readonly settings: Pick<HttpConnectionManagerSettings, 'forwarding'>;
}

export abstract class StreamRecord implements RoutedStream {
  readonly methodId: number;
  /** The request is one of gRPC, or has become one on its way to the router. */
  isGrpc: boolean;
  replyForm: ReplyForm;
  /** Monotonic times of the first byte of the request, and of the last one of its head. */
  readonly startedMs: number;
  readonly headMs: number;
  isInternal = false;
  /** By which its route is looked for, however long the request lasts, unless it comes into another scope. */
  routes: RoutesInUse;
  /** Of scopes that it has left: filters may go by what they said. Null for none. */
  #formerRoutes: RoutesInUse[] | null = null;
  /** The route that the router goes by once the request gets there; filters know it before. */
  foundRoute: Route | null = null;
  foundTarget: ClusterTarget | null = null;
  /** The chosen route, once there is one, and the cluster that it has chosen. */
  route: Route | null = null;
  target: ClusterTarget | null = null;
  /** Where the request is counted beside its cluster; null for nowhere. */
  tally: RequestTally | null = null;
  #cluster: Cluster | null = null;
  /** Those that a retry has left; null for none. */
  #formerClusters: Cluster[] | null = null;
  /** The host that a filter wants for the first attempt; null where none does. */
  overrideHost: OverrideHost | null = null;
  namedHost: NamedDestination | null = null;
  /** Cookies that the response gives the client; null for none. */
  setCookies: string[] | null = null;
  /** Status sent or about to be; 0 before. */
  status = 0;
  /** Bits of ResponseFlag: why the response is what it is. */
  flags = NO_FLAGS;
  details: string = VIA_UPSTREAM;
  isRequestComplete = false;
  /** Monotonic time of the request's last byte; 0 before. */
  requestCompleteMs = 0;
  protected readonly context: WorkerContext;
  protected readonly manager: RequestLedger;
  protected readonly codec: DownstreamStream;
  /** Null while nobody asks. */
  protected wantedFacts: HttpStreamFacts | null = null;
  /** Null when nobody is told of the request, and before that is decided. */
  protected trace: RequestTrace | null = null;
  /** The response head whose fields are being changed. */
  protected editedHead: EditableHead | null = null;
  /** Of the attempt at hand, for facts that are asked for later. */
  #upstreamEnds: ConnectionEnds | null = null;
  isHealthCheck = false;
  /** Null where there are none. */
  #periodicEntries: PeriodicEntries | null = null;
  /** What filters have said of it, as far as somebody has read it, and what they have said since. */
  #metadata: Metadata | undefined = undefined;
  #saidMetadata: SaidMetadata | null = null;
  /** The same in filter state; null for nothing. */
  #state: FilterState | null = null;

  constructor(
    context: WorkerContext,
    manager: RequestLedger,
    codec: DownstreamStream,
    startedMs: number,
    headMs: number,
  ) {
    this.context = context;
    this.manager = manager;
    this.codec = codec;
    const { request } = context.codec;
    this.methodId = request.methodId;
    this.isGrpc = isGrpc(request);
    this.replyForm = this.isGrpc ? ReplyForm.grpc : ReplyForm.http;
    this.startedMs = startedMs;
    this.headMs = headMs;
    const base = manager.statBase;
    const { values } = context.stats;
    values[base + downstream_rq_total]! += 1;
    values[base + downstream_rq_active]! += 1;
    if (manager.accessLog !== null || manager.replyRules !== null) this.wantedFacts = this.#newFacts();
    context.traffic.requestBegun(this, codec.connection.downstream, codec.protocol, request);
    this.routes = manager.routes.current;
    this.routes.enter();
  }

  /** Made at the first question, if there is no log that wants them from the start. */
  get facts(): HttpStreamFacts {
    if (this.wantedFacts === null) {
      this.wantedFacts = this.#newFacts();
      this.tellFacts(this.wantedFacts);
      if (this.#upstreamEnds !== null) this.wantedFacts.noteEnds(this.#upstreamEnds);
    }
    const facts = this.wantedFacts;
    facts.isGrpc = this.isGrpc;
    facts.status = this.status;
    facts.flags = this.flags;
    facts.details = this.details;
    facts.isHealthCheck = this.isHealthCheck;
    facts.liveResponse = this.editedHead;
    facts.dynamicMetadata = this.dynamicMetadata;
    facts.requestState = this.#state;
    if (this.trace !== null) facts.tracePlace = this.trace.place;
    if (this.isRequestComplete) facts.noteRequestEnd(this.requestCompleteMs);
    const route = this.route ?? this.foundRoute;
    if (route !== null) facts.noteRoute(route);
    if (this.tally !== null) facts.virtualClusterName = this.tally.virtualCluster;
    if (this.cluster !== null) facts.noteCluster(this.cluster);
    return facts;
  }

  /** The request's head has been taken out of the codec. */
  noteHeldHead(head: string): void {
    if (this.wantedFacts !== null) this.wantedFacts.requestHead = head;
  }

  get protocol(): string {
    return this.codec.protocol;
  }

  get cluster(): Cluster | null {
    return this.#cluster;
  }

  /** The request goes to this cluster from now on, and uses it until it is over, as those before. */
  useCluster(cluster: Cluster): void {
    cluster.acquire();
    if (this.#cluster !== null) {
      this.#formerClusters ??= [];
      this.#formerClusters.push(this.#cluster);
    }
    this.#cluster = cluster;
  }

  /** Its route is looked for there from now on. */
  useRoutes(routes: RoutesInUse): void {
    if (routes === this.routes) return;
    routes.enter();
    this.#formerRoutes ??= [];
    this.#formerRoutes.push(this.routes);
    this.routes = routes;
  }

  setCookie(text: string): void {
    this.setCookies ??= [];
    this.setCookies.push(text);
  }

  markHealthCheck(): void {
    this.isHealthCheck = true;
  }

  addFlag(flag: ResponseFlagName): void {
    this.flags |= flagBit(flag);
  }

  get dynamicMetadata(): Metadata | undefined {
    if (this.#saidMetadata !== null) this.#readMetadata();
    return this.#metadata;
  }

  #readMetadata(): void {
    // Whoever has read it before keeps what there was.
    this.#metadata = this.#saidMetadata!.addedTo(this.#metadata);
    this.#saidMetadata = null;
  }

  addMetadata(namespace: string, values: JsonObject): void {
    this.#saidMetadata = new SaidMetadata(namespace, values, this.#saidMetadata);
    // A filter may speak with each piece of a body.
    if (this.#saidMetadata.count >= MOST_UNREAD_SAYINGS) this.#readMetadata();
  }

  /** What filters have said of the request, else of its connection. */
  state(key: string): string | undefined {
    return this.#state?.get(key) ?? this.codec.connection.downstream.state(key);
  }

  /** What has been said of the connection once for all holds for its requests, too. */
  setState(key: string, value: string, isReadOnly: boolean): void {
    if (this.codec.connection.downstream.isStateFixed(key)) return;
    this.#state ??= new FilterState();
    this.#state.set(key, value, isReadOnly);
    if (this.wantedFacts !== null) this.wantedFacts.requestState = this.#state;
  }

  /** An attempt goes to this host. */
  onUpstreamHost(host: Host, attempts: number): void {
    this.#upstreamEnds = null;
    this.wantedFacts?.noteHost(host, attempts);
    this.context.traffic.requestAttempted(this, this.codec.connection.downstream, attempts, host.label);
  }

  /** The request goes out, with this head. */
  onUpstreamConnection(connection: ConnectionEnds, head: string): void {
    this.#upstreamEnds = connection;
    this.wantedFacts?.noteConnection(connection, head, this.isRequestComplete);
  }

  /** The span of an attempt that begins; null where attempts have none. @param number counts from 1. */
  traceAttempt(cluster: Cluster, number: number): AttemptTrace | null {
    return this.trace === null ? null : this.trace.attempt(cluster, number);
  }

  /** Null where nobody counts them. */
  get downstreamWire(): WireBytes | null {
    return this.wantedFacts === null ? null : this.wantedFacts.downstreamWire;
  }

  get upstreamWire(): WireBytes | null {
    return this.wantedFacts === null ? null : this.wantedFacts.upstreamWire;
  }

  /** The entry of an attempt that begins; null where attempts are not logged. */
  logAttempt(): AttemptEntry | null {
    const { attemptLog } = this.manager;
    if (attemptLog === null) return null;
    // From its first attempt on, a request notes what is told of it.
    void this.facts;
    const start = { ...this.#start(), startedMs: this.context.clock.monotonicMs(), protocol: '' };
    return attemptLog.begin(start, () => this.facts);
  }

  /** Adds what has become known before anybody asked for facts. */
  protected abstract tellFacts(facts: HttpStreamFacts): void;

  protected completeRequest(nowMs: number): void {
    this.isRequestComplete = true;
    this.requestCompleteMs = nowMs;
  }

  /** Has entries of the access log written beside that of the end, where there is one. */
  protected beginEntries({ onStart, intervalMs }: HttpLogEntries, nowMs: number): void {
    if (this.manager.accessLog === null) return;
    if (onStart) this.logOnTheWay('DownstreamStart', nowMs);
    if (intervalMs === 0) return;
    const write = (atMs: number): void => this.logOnTheWay('DownstreamPeriodic', atMs);
    this.#periodicEntries = new PeriodicEntries(this.context.wheel, nowMs, intervalMs, write);
  }

  /** Writes an entry as if the stream were over now. */
  protected logOnTheWay(type: AccessLogType, nowMs: number): void {
    const { accessLog } = this.manager;
    if (accessLog === null) return;
    const { facts } = this;
    // From then on the codec holds heads of other requests.
    if (type !== 'DownstreamStart') facts.liveHead = null;
    if (this.status === 0) facts.details = '';
    facts.accessLogType = type;
    facts.endMs = nowMs;
    accessLog.write(facts);
    facts.accessLogType = 'DownstreamEnd';
    facts.endMs = NOT_YET;
  }

  /** The stream is over. */
  protected closeRecord(nowMs: number): void {
    this.#periodicEntries?.end();
    this.#periodicEntries = null;
    const { statBase, accessLog } = this.manager;
    this.context.stats.record(statBase + downstream_rq_time, nowMs - this.startedMs);
    this.context.traffic.requestEnded(this, this.codec.connection.downstream, this, nowMs - this.startedMs);
    if (accessLog !== null || this.trace !== null) {
      const { facts } = this;
      facts.endMs = nowMs;
      this.trace?.finish(facts, nowMs);
      accessLog?.write(facts);
    }
    this.context.stats.values[statBase + downstream_rq_active]! -= 1;
    this.#cluster?.release();
    if (this.#formerClusters !== null) for (const cluster of this.#formerClusters) cluster.release();
    this.routes.leave();
    if (this.#formerRoutes !== null) for (const routes of this.#formerRoutes) routes.leave();
  }

  protected count(stat: number, change = 1): void {
    this.context.stats.values[this.manager.statBase + stat]! += change;
  }

  #newFacts(): HttpStreamFacts {
    return new HttpStreamFacts(this.context.clock, this.#start());
  }

  #start(): StreamStart {
    const { ingress, liveHead, settings } = this.manager;
    const { connection, protocol } = this.codec;
    const { matchesUpstreamScheme } = settings.forwarding;
    return {
      downstream: connection.facts,
      ingress,
      liveHead,
      startedMs: this.startedMs,
      protocol,
      matchesUpstreamScheme,
    };
  }
}
