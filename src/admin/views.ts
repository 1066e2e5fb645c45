// What the admin interface reads of the running server, and what it may command. The control plane implements
// these; the endpoints know nothing else of it. Main thread. All values are those of the moment of the call.

import type { Address } from '../base/address.ts';
import type { JsonObject } from '../base/json.ts';
import type { Version } from '../base/version.ts';

/** LIVE 0, DRAINING 1, PRE_INITIALIZING 2, INITIALIZING 3 in the gauge server.state. */
export type ServerState = 'LIVE' | 'DRAINING' | 'PRE_INITIALIZING' | 'INITIALIZING';

export interface LocalityView {
  readonly region: string;
  readonly zone: string;
  readonly subZone: string;
}

/** The bootstrap's node after the overrides of the command line. */
export interface NodeView {
  readonly id: string;
  readonly cluster: string;
  /** Metadata as plain JSON; not shown when empty. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Not shown when all of it is empty. */
  readonly locality: LocalityView;
  /** Linked extensions; `disabled` ones may not be used by configuration. */
  readonly extensions: readonly { readonly name: string; readonly category: string; readonly disabled: boolean }[];
}

export interface ServerView {
  state(): ServerState;
  /** Whole seconds since this process started. */
  uptimeCurrentEpochSeconds(): number;
  /** Whole seconds since the first process of the chain of hot restarts started. */
  uptimeAllEpochsSeconds(): number;
  readonly version: Version;
  /** Before stats are listed: a whole flush when stats_flush_on_admin is set, else only what must be fresh. */
  beforeStatsRead(): void | Promise<void>;
  /** Keys and order of /server_info: commandLineOptionsJson of src/cli. */
  readonly commandLineOptions: JsonObject;
  readonly node: NodeView;
}

/** Limits of one routing priority. */
export interface CircuitBreakerView {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
}

/** Success rates are 0 to 100, or -1 when the last interval had too little data. */
export interface OutlierView {
  readonly successRateAverage: number;
  readonly successRateEjectionThreshold: number;
  readonly localOriginSuccessRateAverage: number;
  readonly localOriginSuccessRateEjectionThreshold: number;
}

/** Sums over all workers, in the order in which /clusters lists them. */
export interface HostStatsView {
  readonly cx_active: number;
  readonly cx_connect_fail: number;
  readonly cx_total: number;
  readonly rq_active: number;
  readonly rq_error: number;
  readonly rq_success: number;
  readonly rq_timeout: number;
  readonly rq_total: number;
}

/** One health check of a host, or an answer of it to a client that spoke of its health. */
export interface CheckView {
  readonly kind: 'http' | 'tcp' | 'request';
  /** Milliseconds since the Unix epoch. */
  readonly endedMs: number;
  readonly hasPassed: boolean;
  /** `HTTP 503`, `ECONNREFUSED`. */
  readonly detail: string;
}

/** How a host was taken out of service because it failed more than it should. */
export interface EjectionView {
  /** The detector, such as `consecutive-5xx`. */
  readonly kind: string;
  /** In percent, where hosts were compared; undefined after failures in a row. */
  readonly successRate: number | undefined;
  /** Since the host came, this one included. */
  readonly count: number;
  /** Milliseconds since the Unix epoch. */
  readonly beganMs: number;
  /** Undefined while it lasts. */
  readonly endedMs: number | undefined;
}

export interface HostView {
  readonly address: Address;
  /** The configured DNS name, or empty. */
  readonly hostname: string;
  /** Bits of HEALTH_FLAGS (render/health-flags.ts); 0 is healthy. */
  readonly healthFlags: number;
  readonly weight: number;
  readonly locality: LocalityView;
  readonly canary: boolean;
  readonly priority: number;
  /** 0 to 100, or -1 when not computed. */
  readonly successRate: number;
  readonly localOriginSuccessRate: number;
  readonly stats: HostStatsView;
  /** Undefined for a host that has not been checked. */
  readonly lastCheck: CheckView | undefined;
  /** The one that brought the host into its state. */
  readonly decidingCheck: CheckView | undefined;
  /** Undefined for a host that was never ejected. */
  readonly lastEjection: EjectionView | undefined;
}

export interface ClusterView {
  readonly name: string;
  /** alt_stat_name, or the name. */
  readonly observabilityName: string;
  /** Undefined when no outlier detector is installed. */
  readonly outlier: OutlierView | undefined;
  readonly circuitBreakers: { readonly default: CircuitBreakerView; readonly high: CircuitBreakerView };
  readonly addedViaApi: boolean;
  /** Empty when discovery does not use another name than the cluster's. */
  readonly edsServiceName: string;
  /** Members by priority, then in the order of the host set; read once, host by host. */
  hosts(): Iterable<HostView>;
}

export interface ClustersView {
  /** Version of the last accepted CDS update; `static` without CDS. */
  versionInfo(): string;
  /** Active clusters, in any order. */
  clusters(): Iterable<ClusterView>;
}

export interface ListenerView {
  readonly name: string;
  /** Bound addresses, with the real port where 0 was configured. */
  readonly addresses: readonly Address[];
}

export interface ListenersView {
  /** Active listeners, in the order of their creation. */
  listeners(): Iterable<ListenerView>;
}

/** One counter or gauge. */
export interface NumericStatView {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  /** Sum over all workers. */
  readonly value: number;
  /** Written at least once. */
  readonly isUsed: boolean;
}

export interface TextStatView {
  readonly name: string;
  readonly value: string;
  readonly isUsed: boolean;
}

/** What was recorded between the last two merges, or since the start. */
export type HistogramSpanName = 'interval' | 'cumulative';

export interface HistogramView {
  readonly name: string;
  /** A merge has seen a sample. */
  readonly isUsed: boolean;
  /** Values at ascending quantiles of 0 to 1; NaN for each where there are no samples. */
  quantiles(span: HistogramSpanName, qs: readonly number[]): Float64Array;
  /** Samples at or below each of the ascending bounds. */
  buckets(span: HistogramSpanName, bounds: readonly number[]): Float64Array;
  /** Bins with samples, ascending. */
  bins(span: HistogramSpanName): readonly { readonly left: number; readonly width: number; readonly count: number }[];
}

/**
 * StatsStore of src/stats. Every list is sorted by name; batches leave the main thread free between them. With a prefix of
 * names, stats that do not begin so may be missing.
 */
export interface StatsView {
  countersAndGauges(namePrefix: string): AsyncIterable<readonly NumericStatView[]>;
  histograms(namePrefix: string): AsyncIterable<readonly HistogramView[]>;
  textReadouts(): readonly TextStatView[];
}

/** What mutating endpoints may do. */
export interface ServerCommands {
  /** Begins the clean shutdown; the answer to the request is already on its way. */
  quit(): void;
  /** Has every log file opened anew by its name: access logs and the log of the process. */
  reopenLogs(): void;
  /** Sets all counters to 0. */
  resetCounters(): void;
  /** Has the health checks that clients make fail, or succeed again. */
  failHealthChecks(isFailing: boolean): void;
}

/** Counts the admin interface's own traffic under listener.admin.* and http.admin.*. */
export interface AdminTraffic {
  connectionOpened(): void;
  connectionClosed(): void;
  /** Descriptors have run short. */
  connectionRefused(): void;
  requestStarted(): void;
  /** @param status of the response, or 0 when the client left before it was complete. */
  requestEnded(status: number): void;
}
