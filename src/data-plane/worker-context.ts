// What every part of one worker's data plane shares. Made once by DataPlane and passed by constructor; it holds
// owners and tools, no state of connections.

import type { IpAddress } from '../base/address.ts';
import type { Clock } from '../base/clock.ts';
import { descriptorBudget } from '../base/descriptor-budget.ts';
import { stackFrames } from '../base/errors.ts';
import { FaultBoundary } from '../base/fault-boundary.ts';
import type { Random } from '../base/random.ts';
import { RuntimeValues } from '../base/runtime.ts';
import { SystemCalls } from '../base/system-calls.ts';
import type { Logger, Loggers } from '../log/index.ts';
import type {
  AccessLogFileSettings,
  ConsecutiveKind,
  Demand,
  FilterNews,
  PublishedPlace,
  WorkerToMain,
} from '../snapshot/index.ts';
import type { WorkerStats } from '../stats/index.ts';
import type { Http1Codec } from '../wasm/http1.ts';
import type { Http2Module } from '../wasm/http2.ts';
import type { LbKernel } from '../wasm/lb.ts';
import type { SharedRecords } from '../wasm/shared-memory.ts';
import type { AccessLoggerRegistry } from './access-log/access-logger.ts';
import { AccessLoggers } from './access-log/access-loggers.ts';
import { LogFiles } from './access-log/log-files.ts';
import { Demands } from './demands.ts';
import { DiscoveredFilters } from './discovered-filters.ts';
import { Drains } from './drains.ts';
import { Http2Codec } from './http/codec/http2/codec.ts';
import type { HttpFilterRegistry } from './http/filter.ts';
import { FilterNewsExchange } from './http/filter-news.ts';
import { HttpDate } from './http/http-date.ts';
import { ProxyHeaders } from './http/proxy-headers.ts';
import { Taps } from './http/taps.ts';
import type { NetworkFilterRegistry } from './network/network-filter.ts';
import { PausedPeers } from './network/paused-peers.ts';
import { SlabPool } from './network/slab-pool.ts';
import { connectUpstream, type ReadMode } from './network/socket-events.ts';
import { SocketWriter } from './network/socket-writer.ts';
import { TimerWheel } from './network/timer-wheel.ts';
import { HandshakePacing } from './network/tls/handshake-pacing.ts';
import { Overload } from './overload.ts';
import { RouteTables } from './route/route-tables.ts';
import { ScopeSets } from './route/scope-sets.ts';
import type { TracerRegistry } from './tracing/tracer.ts';
import { TrafficLog } from './traffic-log.ts';

/** Read slabs of one worker together; bodies beyond it share the small size. */
const SLAB_CAP_BYTES = 64 * 1024 * 1024;
/** More than there are workers. */
const ID_STEP = 1000;
/** The counter of the main thread, which each worker adds to. */
const SERVER_SCOPE = 'server.';
const CONTAINED_FAULTS = 'contained_faults';

/** The loggers that connections use, looked up once. */
export interface DataPlaneLogs {
  readonly connection: Logger;
  readonly filter: Logger;
  readonly http: Logger;
  readonly main: Logger;
  readonly pool: Logger;
  readonly router: Logger;
  readonly upstream: Logger;
}

export type ReportOutlier = (cluster: string, recordAddress: number, kind: ConsecutiveKind) => void;

export type AskFor = (question: number, demand: Demand) => void;

export type RequestHost = (cluster: string, address: IpAddress) => void;

export interface WorkerContextOptions {
  readonly stats: WorkerStats;
  readonly records: SharedRecords;
  readonly lbKernel: LbKernel;
  readonly codec: Http1Codec;
  readonly http2: Http2Module;
  readonly loggers: Loggers;
  readonly clock: Clock;
  readonly random: Random;
  /** Of the proxy's own headers, without its final '-'. */
  readonly headerPrefix?: string;
  readonly localZone?: string;
  readonly localAddress?: string;
  readonly workerIndex: number;
  /** Cell of HTTP2_STATS, of clients. */
  readonly http2Block: number;
  /** The HTTP filters that snapshots may name. */
  readonly httpFilters: HttpFilterRegistry;
  /** The same of network filters. */
  readonly networkFilters: NetworkFilterRegistry;
  /** The tracers that snapshots may name; none when absent. */
  readonly tracers?: TracerRegistry;
  /** The access loggers that snapshots may name; none when absent. */
  readonly accessLoggers?: AccessLoggerRegistry;
  readonly accessLogFiles: AccessLogFileSettings;
  /** Tells main of a checked host that asks to be left out; nobody is told without. */
  readonly reportHostFailure?: (cluster: string, recordAddress: number) => void;
  /** Tells main of a host that has failed as often in a row as it may; nobody is told without. */
  readonly reportOutlier?: ReportOutlier;
  /** Tells main of a filter that cannot be made of its configuration; nobody is told without. */
  readonly reportUnfitFilter?: (place: PublishedPlace, reason: string) => void;
  /** Asks main for a host that is not there yet; nobody is asked without. */
  readonly requestHost?: RequestHost;
  /** Asks main for what requests wait for; nothing is ever there without. */
  readonly askFor?: AskFor;
  /** Gives main what filters tell their like in other workers; nobody is told without. */
  readonly sendNews?: (news: readonly FilterNews[]) => void;
  /** Tells main what a tap has recorded; nobody is told without. */
  readonly sendTrace?: (message: WorkerToMain) => void;
  /** Opens connections to upstreams; the system's sockets unless a test has its own. */
  readonly connectUpstream?: typeof connectUpstream;
}

export class WorkerContext {
  readonly stats: WorkerStats;
  readonly records: SharedRecords;
  readonly lbKernel: LbKernel;
  readonly codec: Http1Codec;
  readonly logs: DataPlaneLogs;
  /** Of connections and requests, at the levels that show them. */
  readonly traffic: TrafficLog;
  /** Its timers fail without harm. */
  readonly clock: Clock;
  readonly random: Random;
  /** The values in force; main replaces them. */
  readonly runtime = new RuntimeValues();
  /** For what runs outside of any connection. */
  readonly faults = new FaultBoundary((where, error) => this.#reportFault(where, error));
  /** First cell of HTTP2_STATS in this worker's slab, of clients. */
  readonly http2StatBase: number;
  /** Selects what is counted by worker. */
  readonly workerIndex: number;
  /** Where this proxy runs; empty when nobody has said so. */
  readonly localZone: string;
  /** Of this machine, for who came from this machine; empty when nobody has said it. */
  readonly localAddress: string;
  readonly wheel: TimerWheel;
  readonly pausedPeers: PausedPeers;
  /** Of clients. */
  readonly handshakes: HandshakePacing;
  readonly slabs: SlabPool;
  readonly writer: SocketWriter;
  readonly date: HttpDate;
  readonly proxyHeaders: ProxyHeaders;
  readonly logFiles: LogFiles;
  readonly reportHostFailure: (cluster: string, recordAddress: number) => void;
  readonly reportOutlier: ReportOutlier;
  readonly reportUnfitFilter: (place: PublishedPlace, reason: string) => void;
  readonly requestHost: RequestHost;
  readonly httpFilters: HttpFilterRegistry;
  readonly networkFilters: NetworkFilterRegistry;
  readonly tracers: TracerRegistry;
  readonly accessLoggers: AccessLoggers;
  readonly taps: Taps;
  readonly connectUpstream: typeof connectUpstream;
  /** The operator wants health checks to fail. */
  readonly serverHealth = { isFailing: false };
  readonly drains: Drains;
  /** Those that are resources of their own. */
  readonly routeTables: RouteTables;
  readonly scopeSets: ScopeSets;
  /** What requests wait for that main has discovered. */
  /** What filters tell their like in other workers. */
  readonly filterNews: FilterNewsExchange;
  readonly demands: Demands;
  readonly discoveredFilters = new DiscoveredFilters();
  readonly overload: Overload;
  /** Of listeners that bypass the overload manager: it never asks for anything. */
  readonly noOverload: Overload;
  readonly systemCalls = SystemCalls.open();
  readonly descriptorBudget = descriptorBudget(this.systemCalls?.descriptorLimit());
  /** Set once, before the first connection. */
  readMode: ReadMode = 'events';
  readonly #http2Module: Http2Module;
  #http2: Http2Codec | null = null;
  #connections = 0;
  #streams = 0;

  constructor(options: WorkerContextOptions) {
    const { loggers } = options;
    this.stats = options.stats;
    this.records = options.records;
    this.lbKernel = options.lbKernel;
    this.codec = options.codec;
    this.#http2Module = options.http2;
    this.logs = {
      connection: loggers.get('connection'),
      filter: loggers.get('filter'),
      http: loggers.get('http'),
      main: loggers.get('main'),
      pool: loggers.get('pool'),
      router: loggers.get('router'),
      upstream: loggers.get('upstream'),
    };
    this.traffic = new TrafficLog(this);
    this.clock = this.faults.clock(options.clock);
    this.random = options.random;
    this.drains = new Drains(this.clock, this.random);
    this.overload = new Overload(this.random, this.stats);
    this.noOverload = new Overload(this.random, this.stats);
    this.workerIndex = options.workerIndex;
    this.http2StatBase = options.stats.base(options.http2Block);
    this.localZone = options.localZone ?? '';
    this.localAddress = options.localAddress ?? '';
    this.httpFilters = options.httpFilters;
    this.networkFilters = options.networkFilters;
    this.tracers = options.tracers ?? {};
    this.accessLoggers = new AccessLoggers(options.accessLoggers ?? {}, this.clock);
    this.taps = new Taps(options.sendTrace ?? (() => {}), this.random);
    this.connectUpstream = options.connectUpstream ?? connectUpstream;
    this.wheel = new TimerWheel(this.clock, (error) => this.logFault('a timeout', error));
    this.pausedPeers = new PausedPeers({
      systemCalls: this.systemCalls,
      wheel: this.wheel,
      clock: options.clock,
      onFault: (error) => this.logFault('the end of a client', error),
    });
    this.handshakes = new HandshakePacing(this.clock, this.faults);
    this.slabs = new SlabPool(SLAB_CAP_BYTES);
    this.writer = new SocketWriter();
    this.date = new HttpDate(options.clock);
    this.proxyHeaders = new ProxyHeaders(options.headerPrefix);
    const { stats, clock } = this;
    this.logFiles = new LogFiles(options.accessLogFiles, { stats, clock, log: this.logs.filter });
    this.routeTables = new RouteTables(this);
    this.scopeSets = new ScopeSets(this.routeTables);
    const { askFor } = options;
    this.demands = new Demands(
      askFor ?? ((question) => void queueMicrotask(() => this.demands.answered(question, false))),
      (error) => this.logFault('what a request made of an answer', error),
    );
    this.filterNews = new FilterNewsExchange(options.sendNews ?? (() => this.filterNews.taken()), (error) =>
      this.logFault('what a filter made of news', error),
    );
    this.reportHostFailure = options.reportHostFailure ?? (() => {});
    this.reportOutlier = options.reportOutlier ?? (() => {});
    this.reportUnfitFilter = options.reportUnfitFilter ?? (() => {});
    this.requestHost = options.requestHost ?? (() => {});
  }

  /** What HTTP/2 sessions share; made for the first one. */
  get http2(): Http2Codec {
    this.#http2 ??= new Http2Codec(this.#http2Module, this.codec, (error) => this.logFault('an HTTP/2 write', error));
    return this.#http2;
  }

  /** Identifies a connection in logs among those of all workers; the last digits are the worker's index. */
  nextConnectionId(): number {
    this.#connections += 1;
    return this.#connections * ID_STEP + this.workerIndex;
  }

  /** The same for a stream. */
  nextStreamId(): number {
    this.#streams += 1;
    return this.#streams * ID_STEP + this.workerIndex;
  }

  /** Notes a bug that was contained. */
  logFault(where: string, error: unknown): void {
    this.faults.report(where, error);
  }

  #reportFault(where: string, error: unknown): void {
    this.stats.dynamicCounter(SERVER_SCOPE, CONTAINED_FAULTS).add();
    // With its stack, since nobody else will see it.
    this.logs.connection.error(`fault in ${where}: ${String(error)}`, stackFrames(error));
  }
}
