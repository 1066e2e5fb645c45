// What the admin interface tells its page, as JSON. Types alone: the page runs in a browser, the other side on main.

/** GET page/overview. */
export interface Overview {
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: number;
  readonly head: Head;
  /** Number of the last point; what `since` says next time. */
  readonly tick: number;
  /** Of the points behind `since`, in milliseconds since the Unix epoch. */
  readonly times: readonly number[];
  readonly listeners: readonly Listener[];
  readonly clusters: readonly Cluster[];
  /** Clusters that match, of which the busiest are shown. */
  readonly clusterCount: number;
  /** Of those that match. */
  readonly conditions: Readonly<Record<Condition, number>>;
  /** Where resources come from beside the bootstrap; the first ones. */
  readonly sources: readonly Source[];
  readonly sourceCount: number;
}

/** A file, or a management server. */
export interface Source {
  /** `polls`: it is asked again and again. */
  readonly kind: 'file' | 'stream' | 'polls';
  /** A path, or a cluster. */
  readonly name: string;
  /** There is a stream, the last question was answered, the file could be read. */
  readonly isConnected: boolean;
  /** Since when that is so, in milliseconds since the Unix epoch. */
  readonly sinceMs: number;
  /** Who the server says it is; empty where it does not. */
  readonly identifier: string;
  /** What is wrong now; empty for nothing. */
  readonly complaint: string;
  readonly types: readonly SourceType[];
}

/** What has come of one type of resources. */
export interface SourceType {
  /** `Cluster`. */
  readonly name: string;
  /** How many names are wanted; null for all there are. */
  readonly wanted: number | null;
  /** Resources of the last response that nobody has asked for. */
  readonly unasked: number;
  readonly accepted: Update | null;
  readonly refused: (Update & { readonly reasons: string }) | null;
}

export interface Update {
  readonly version: string;
  /** In milliseconds since the Unix epoch. */
  readonly atMs: number;
}

export interface Head {
  readonly state: string;
  /** While it is not initialized. */
  readonly waitsFor: readonly string[];
  readonly isReadOnly: boolean;
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly epoch: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Null where the system does not say. */
  readonly descriptors: number | null;
  readonly descriptorLimit: number | null;
  /** Main first; null for a worker that is being started. */
  readonly threads: readonly { readonly name: string; readonly use: number | null }[];
  /** The grave ones first. */
  readonly warnings: readonly Warning[];
}

export interface Warning {
  /** Requests fail of it. */
  readonly isGrave: boolean;
  readonly text: string;
}

/** Points by series, oldest first; null where nothing is known. */
export type Points = readonly (readonly (number | null)[])[];

export interface Listener {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly accepting: 'yes' | 'draining' | 'stopped';
  /** Rates of 1xx to 5xx and of connections, open connections, p50, p90, p99, p99.9 in ms; empty without a history. */
  readonly points: Points;
}

export interface Breaker {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
}

/** From bad to good; `idle` when nothing is wanted of it. The type of whoever needs the order: the compiler holds all to it. */
export type Conditions = readonly ['down', 'failing', 'impaired', 'well', 'idle'];
export type Condition = Conditions[number];

export interface Cluster {
  readonly name: string;
  readonly condition: Condition;
  /** Why it is not well; empty when it is. */
  readonly reason: string;
  readonly members: number;
  readonly membersHealthy: number;
  readonly activeRequests: number;
  readonly activeConnections: number;
  readonly breakers: readonly Breaker[];
  /**
   * Rates of answers, 5xx and retries, active requests, p99 in ms, rates of connections that were made and that could not be;
   * empty when nothing was wanted of it lately.
   */
  readonly points: Points;
}

/** GET page/hosts. */
export interface Hosts {
  readonly hosts: readonly Host[];
  readonly hostCount: number;
}

export interface Host {
  readonly address: string;
  readonly hostname: string;
  readonly health: 'healthy' | 'degraded' | 'unhealthy';
  /** Why it is not healthy, or how its last check went; empty where nothing is known. */
  readonly reason: string;
  /** When that began, in milliseconds since the Unix epoch. */
  readonly sinceMs: number | null;
  readonly weight: number;
  readonly zone: string;
  readonly priority: number;
  readonly activeConnections: number;
  readonly activeRequests: number;
  readonly requests: number;
  readonly successes: number;
  readonly errors: number;
  readonly connectFailures: number;
  /** Of the last seconds; null without responses, and before they are known. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly ejections: number;
}

/** GET page/loggers. */
export interface LoggerLevel {
  readonly name: string;
  readonly level: string;
}

/** GET page/stats. Without names when the caller has them: those of `hash`. */
export interface Stats {
  readonly hash: string;
  /** `c` counter, `g` gauge, `h` histogram, `t` text, one for each stat. */
  readonly kinds?: string;
  readonly names?: readonly string[];
  /** Histograms: number of samples. */
  readonly values: readonly (number | string)[];
  /** There are more; a filter finds them. */
  readonly isCut: boolean;
}

/** GET page/histogram. */
export interface Histogram {
  readonly unit: string;
  readonly interval: Span;
  readonly cumulative: Span;
}

export interface Span {
  readonly count: number;
  readonly sum: number;
  /** Pairs of percent and value; values are null without samples. */
  readonly quantiles: readonly (readonly [percent: number, value: number | null])[];
  readonly bins: readonly (readonly [left: number, width: number, count: number])[];
}
