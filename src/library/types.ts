// The public types of `weir-proxy`. Reference: docs/library.md.

import type { HttpFilterDefinition, HttpFilterFactory } from '../filter-modules/interface.ts';
import type { Bootstrap } from './generated/bootstrap.ts';

export type { Bootstrap } from './generated/bootstrap.ts';

export interface ProxyOptions {
  /** Worker threads; 1 when absent: enough for a test, and quick to start. */
  readonly concurrency?: number;
  /** Bootstrap as YAML or JSON text, merged over the given one. */
  readonly configYaml?: string;
  /** Warn of unknown fields and count them, instead of refusing them. */
  readonly allowUnknownStaticFields?: boolean;
  /** Overrides node.cluster. */
  readonly serviceCluster?: string;
  /** Overrides node.id. */
  readonly serviceNode?: string;
  /** Overrides node.locality.zone. */
  readonly serviceZone?: string;
  /** Tags on every stat, each `tag:value`. */
  readonly statsTag?: readonly string[];
  /** Seconds in which connections drain when a listener goes, or is drained; 600 when absent. */
  readonly drainTimeS?: number;
  /** `gradual` when absent: the share of requests that drain rises over the drain time. */
  readonly drainStrategy?: 'gradual' | 'immediate';
  /** Milliseconds after which buffered files such as access logs are written; 10000 when absent. */
  readonly fileFlushIntervalMsec?: number;
  /** Has the admin interface change nothing. */
  readonly adminReadOnly?: boolean;
  /** Host names by which the admin interface may be reached beside localhost and IP addresses. */
  readonly adminName?: readonly string[];
  /** File to which the address of the admin interface is written. */
  readonly adminAddressPath?: string;
  /** Has the admin interface tell how long threads wait for processors. */
  readonly enableMutexTracing?: boolean;
  /** Extensions that configurations may not use, such as `filters.http/tap,stats_sinks/statsd`. */
  readonly disableExtensions?: string;
  /** IP version of the proxy's own address; `v4` when absent. */
  readonly localAddressIpVersion?: 'v4' | 'v6';
  /** Least level of what `log` is given; `info` when absent. */
  readonly logLevel?: LogLevel;
  /** Levels of single components, such as `upstream:debug,http:trace`. */
  readonly componentLogLevel?: string;
  /** Layout of `line`, in the flags of --log-format. */
  readonly logFormat?: string;
  /**
   * Is given each line of the log, without its line break, and what it was made of. What it throws is lost. Without it there is
   * no log: nothing is ever written to the standard streams.
   */
  readonly log?: (line: string, record: LogRecord) => void;
  /**
   * HTTP filters of your own, by the names that http_filters calls them: a module by its path or URL, or the filter itself, whose
   * functions reach the worker threads as text and cannot use what stands around them.
   */
  readonly httpFilters?: Readonly<Record<string, string | URL | HttpFilterFactory | HttpFilterDefinition>>;
  /** Ends the proxy when it is aborted, or its start. */
  readonly signal?: AbortSignal;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warning' | 'error' | 'critical' | 'off';

export interface LogRecord {
  readonly level: Exclude<LogLevel, 'off'>;
  /** Component, such as `upstream`. */
  readonly component: string;
  readonly message: string;
  /** Frames of an error of the proxy's own; empty without. */
  readonly stack: string;
  /** Milliseconds since 1970, with a fraction. */
  readonly timeMs: number;
  /** 0 for the thread that runs createProxy. */
  readonly threadId: number;
}

/** A complaint about a configuration. */
export interface Fault {
  readonly severity: 'error' | 'warning';
  /** Field, as in `static_resources.clusters[2].name`; empty for the whole. */
  readonly path: string;
  readonly message: string;
  /** What the field holds, where the configuration is an object. */
  readonly value?: unknown;
  /** Empty where the configuration is an object. */
  readonly file: string;
  /** From 1; 0 when unknown. */
  readonly line: number;
  /** From 1; 0 when unknown. */
  readonly column: number;
}

export interface ListenerAddress {
  /** An IP address, or the path of a unix socket. */
  readonly address: string;
  /** The one in use where the configuration says 0; 0 for a unix socket. */
  readonly port: number;
  /** `http://127.0.0.1:10000` for an address of IP, whatever protocol the listener speaks; empty for a unix socket. */
  readonly url: string;
}

export interface AdminAddress extends ListenerAddress {}

export interface HistogramSummary {
  readonly unit: string;
  /** Samples of the last flush interval. */
  readonly interval: HistogramSpan;
  /** Samples since the start, up to the last flush. */
  readonly cumulative: HistogramSpan;
}

export interface HistogramSpan {
  readonly count: number;
  readonly sum: number;
  /** Asked of the histogram as it is then. @param qs ascending, of 0 to 1. @returns NaN for each where there are no samples. */
  quantiles(qs: readonly number[]): Float64Array;
}

export interface ProxyStats {
  /** One counter or gauge by its name, as it is now; undefined when there is none. Gauges of `server.` are as of the last flush. */
  value(name: string): number | undefined;
  /** @param prefix of the names; all when absent. */
  counters(prefix?: string): Promise<Record<string, number>>;
  /** @param prefix of the names; all when absent. */
  gauges(prefix?: string): Promise<Record<string, number>>;
  /** As of the last flush (stats_flush_interval, 5 s; with stats_flush_on_admin, now). Undefined when there is none. */
  histogram(name: string): Promise<HistogramSummary | undefined>;
}

export interface CloseOptions {
  /** Milliseconds in which running requests and connections may end; 10000 when absent. */
  readonly graceMs?: number;
}

export interface DrainOptions {
  /** Stop accepting at once, instead of after the drain time in which clients are sent elsewhere. */
  readonly immediately?: boolean;
}

export interface WeirProxy {
  /** Undefined where the bootstrap asks for no admin interface. */
  readonly admin: AdminAddress | undefined;
  /** By name, as they are now. */
  readonly listeners: ReadonlyMap<string, ListenerAddress>;
  readonly stats: ProxyStats;
  /** What there was to say about the configuration in use. */
  readonly warnings: readonly Fault[];
  /** Resolves when the proxy has ended, whoever has ended it: `close`, the signal, or POST /quitquitquit. */
  readonly closed: Promise<void>;
  /**
   * Resolves when the proxy is as this bootstrap says. Updates wait for one another.
   * @throws ConfigError that names what is wrong, or what cannot change; nothing has changed then.
   * @throws WeirError when an address cannot be had, or the proxy ends; what had been changed is undone.
   */
  applyBootstrap(config: Bootstrap | string): Promise<void>;
  /** Sends clients elsewhere, then stops accepting. Resolves when the last connection has ended. */
  drain(options?: DrainOptions): Promise<void>;
  /** Stops accepting, lets running requests end, and gives everything back. Can be called again. */
  close(options?: CloseOptions): Promise<void>;
  /** What `close` does. */
  [Symbol.asyncDispose](): Promise<void>;
}
