// The whole conversation between the main thread and its workers. Everything in it can be cloned; compiled
// modules, the shared memory and the texts of clusters are the only things shared.

import type { MessagePort } from 'node:worker_threads';
import type { IpAddress } from '../base/address.ts';
import type { HeapSamplingOptions } from '../base/own-heap.ts';
import type { RuntimeTexts } from '../base/runtime.ts';
import type { AccessLogFileSettings } from './access-log.ts';
import type { HostsUpdate } from './cluster.ts';
import type { Demand } from './demand.ts';
import type { PublishedExtension, PublishedPlace } from './discovered-filter.ts';
import type { DrainProgress, DrainState } from './drain.ts';
import type { ListenerSnapshot } from './listener.ts';
import type { ConsecutiveKind } from './outlier.ts';
import type { OverloadState, StreamReset } from './overload.ts';
import type { PackedCluster } from './packed-cluster.ts';
import type { PublishedRoutes } from './published-routes.ts';
import type { PublishedScopes } from './scoped-routes.ts';
import type { TapFile, TapSession, TapTrace } from './tap.ts';
import type { SecuredChain } from './tls.ts';
import type { SecuredTransport } from './upstream-contexts.ts';
import type { WorkerWatchdog } from './watchdog.ts';

export type LogLevelName = 'trace' | 'debug' | 'info' | 'warning' | 'error' | 'critical' | 'off';

export interface LogLevelSettings {
  /** Of loggers that are not named. */
  readonly default: LogLevelName;
  /** By component. */
  readonly components?: Readonly<Record<string, LogLevelName>>;
  /** Where each source file has a logger of its own: the first pattern that matches counts. */
  readonly files?: readonly { readonly pattern: string; readonly level: LogLevelName }[];
}

/** What a thread needs to become a worker; the snapshots are those current at that moment. */
export interface WorkerInit {
  /** 0 to concurrency - 1; names the worker and selects its slab. A restarted worker keeps its index. */
  readonly workerIndex: number;
  /** Compiled statistics module; works on the shared memory. */
  readonly statsModule: WebAssembly.Module;
  /** Compiled load-balancer module; works on the shared memory. */
  readonly lbModule: WebAssembly.Module;
  /** The compiled HTTP/1 codec, with or without SIMD; each worker gives it a memory of its own. */
  readonly http1: {
    readonly name: 'http1' | 'http1-scalar';
    readonly module: WebAssembly.Module;
  };
  /** The compiled HPACK and head rules of HTTP/2, which work over the memory of that codec. */
  readonly http2: { readonly name: 'http2' | 'http2-scalar'; readonly module: WebAssembly.Module };
  /** Cell of HTTP2_STATS, of clients. */
  readonly http2Block: number;
  /** The one shared memory: statistics, host and cluster records. */
  readonly sharedMemory: WebAssembly.Memory;
  readonly accessLogFiles: AccessLogFileSettings;
  /** First part of the names of the proxy's own headers, without its final '-': `x-proxy`. */
  readonly headerPrefix: string;
  /** Where this proxy runs; empty when nobody has said so. */
  readonly localZone: string;
  /** Of this machine, for who came from this machine: `192.0.2.7`. */
  readonly localAddress: string;
  /** The operator wants health checks to fail. */
  readonly isHealthCheckFailing: boolean;
  readonly drains: DrainState;
  readonly overload: OverloadState;
  readonly watchdog: WorkerWatchdog;
  /** Block of DISPATCHER_STATS of this worker; null where loops are not metered. */
  readonly loopBlock: number | null;
  readonly runtime: RuntimeTexts;
  readonly clusters: readonly PackedCluster[];
  readonly routeTables: readonly PublishedRoutes[];
  readonly discoveredFilters: readonly PublishedExtension[];
  readonly scopeSets: readonly PublishedScopes[];
  /** Null while nothing is recorded. */
  readonly tap: TapSession | null;
  readonly logLevels: LogLevelSettings;
}

/** A log message that a worker has judged worth writing; the main thread formats and writes it. */
export interface WorkerLogRecord {
  readonly logger: string;
  readonly level: Exclude<LogLevelName, 'off'>;
  readonly message: string;
  /** Frames of an error, one a line; empty without. */
  readonly stack: string;
  /** Milliseconds since the Unix epoch, with fractions. */
  readonly timeMs: number;
  /** Source file relative to the package, line and function of the log call; empty or 0 when unknown. */
  readonly file: string;
  readonly line: number;
  readonly functionName: string;
}

/** A stat that a worker met first at run time, such as a response code. */
export interface DynamicStatKey {
  /** Scope prefix with its final dot, for example `cluster.web.`. */
  readonly scope: string;
  readonly name: string;
  /** A histogram of milliseconds; otherwise a counter. */
  readonly isTime?: boolean;
}

/** Why a host that was wanted does not come: a limit leaves no room for it, or its name has no address. */
export type HostRefusal = 'overflow' | 'dns';

/** What a filter of one worker tells its like in the others. */
export interface FilterNews {
  /** Whom it concerns. */
  readonly topic: string;
  /** Null for so many that nobody has kept them: it may be anything. */
  readonly texts: readonly string[] | null;
}

/** Descriptors of sockets that listen already, by address of a listener. They become the worker's. */
export type InheritedSockets = readonly (readonly number[])[];

/** Each is answered by `applied`. */
export type ClusterUpdate =
  /** A cluster that is new, or takes the place of one with other settings. */
  | { readonly type: 'cluster'; readonly generation: number; readonly cluster: PackedCluster }
  | { readonly type: 'cluster-removed'; readonly generation: number; readonly name: string }
  /** Members of a cluster that stays as it is. */
  | { readonly type: 'hosts'; readonly generation: number; readonly update: HostsUpdate };

export type MainToWorker =
  /** The first message; the thread has loaded its code by then, while the main thread read the configuration. */
  | { readonly type: 'init'; readonly init: WorkerInit }
  | ClusterUpdate
  /** Several, in their order. */
  | { readonly type: 'updates'; readonly updates: readonly ClusterUpdate[] }
  /** Connections of a cluster are secured by other settings. Answered by `applied`, at once. */
  | {
      readonly type: 'cluster-tls';
      readonly generation: number;
      readonly name: string;
      readonly transports: readonly SecuredTransport[];
    }
  /** There is no host that is called so, for those who want it. */
  | {
      readonly type: 'host-refused';
      readonly cluster: string;
      readonly address: string;
      readonly reason: HostRefusal;
    }
  /**
   * A route table that is new, or takes the place of the one of its id. Answered by `applied`, when no request goes by that one
   * any more.
   */
  | { readonly type: 'routes'; readonly generation: number; readonly routes: PublishedRoutes }
  /** No listener refers to it any more. Answered as `routes`. */
  | { readonly type: 'routes-removed'; readonly generation: number; readonly id: number }
  /** Which scopes lead to which tables; the tables have been told before. */
  | { readonly type: 'scopes'; readonly scopes: PublishedScopes }
  /** No listener refers to this set any more. */
  | { readonly type: 'scopes-removed'; readonly id: number }
  /** Of another worker. */
  | { readonly type: 'news'; readonly news: readonly FilterNews[] }
  /** Main has passed on what this worker sent last: it may send more. */
  | { readonly type: 'news-taken' }
  /** Whether what a worker has asked for is there; it has been told of before. */
  | { readonly type: 'demand-answered'; readonly question: number; readonly isThere: boolean }
  /** A filter's configuration that is new, or takes the place of the one of its id. Answered as `routes`, of requests that use that. */
  | { readonly type: 'filter'; readonly generation: number; readonly filter: PublishedExtension }
  /** No listener refers to it any more. Answered as `filter`. */
  | { readonly type: 'filter-removed'; readonly generation: number; readonly id: number }
  /** `ports` by address of the listener; 0 lets the system choose, and for a pipe. */
  | {
      readonly type: 'listen';
      readonly listener: ListenerSnapshot;
      readonly ports: readonly number[];
      /** Whose sockets it is to have on addresses of both, once that one is stopped; null for nobody's. */
      readonly predecessor: number | null;
      /** Sockets of another process that the worker is to accept on; null for none. */
      readonly inherited: InheritedSockets | null;
    }
  /** Handshakes of a listener go by other certificates and authorities. Answered by `applied`. */
  | {
      readonly type: 'listener-tls';
      readonly generation: number;
      readonly listenerId: number;
      readonly chains: readonly SecuredChain[];
    }
  /**
   * A listener has other filter chains; those that have the ids of former ones stay with their connections. Answered by `applied`
   * when new connections meet them, and with the second generation when the last connection of those that are gone has ended.
   */
  | {
      readonly type: 'listener-chains';
      readonly generation: number;
      readonly goneGeneration: number;
      readonly listener: ListenerSnapshot;
      readonly drain: DrainProgress;
    }
  /** Inherited sockets are the workers' alone: their paths are theirs to remove. */
  | { readonly type: 'own-sockets' }
  /** Asks for the sockets of a listener on one of its addresses; answered by `shared-sockets`. */
  | {
      readonly type: 'share-sockets';
      readonly question: number;
      readonly listenerId: number;
      readonly addressIndex: number;
    }
  /** Answered by `applied`, when the last connection has ended; those left behind the drain are cut. */
  | {
      readonly type: 'stop-listener';
      readonly generation: number;
      readonly listenerId: number;
      /** Takes over the sockets on addresses of both; null for nobody. */
      readonly successor: number | null;
      readonly drain: DrainProgress;
    }
  /** Accepts no more; its connections go on as they like. Answered by `applied`, when the last of them has ended. */
  | {
      readonly type: 'stop-accepting';
      readonly generation: number;
      readonly listenerId: number;
      /** The paths of shared unix sockets belong to another process now. */
      readonly leavesPaths: boolean;
    }
  /** How drains stand; those of before are no more. */
  | { readonly type: 'drains'; readonly drains: DrainState }
  /** What the overload manager asks for; what it has asked for before is no more. */
  | { readonly type: 'overload'; readonly state: OverloadState }
  /** Once. */
  | { readonly type: 'reset-streams'; readonly reset: StreamReset }
  /** Give back what the engine does not use. */
  | { readonly type: 'shrink-heap' }
  /** Sample the heap until the port says `stop`, and answer there. */
  | { readonly type: 'sample-heap'; readonly port: MessagePort; readonly options: HeapSamplingOptions }
  /** Take a snapshot of the heap, and answer there. */
  | { readonly type: 'dump-heap'; readonly port: MessagePort }
  /** The start is over: give back what it has left, unless there are clients already, who would have to wait for it. */
  | { readonly type: 'settle' }
  | { readonly type: 'dynamic-stat'; readonly key: DynamicStatKey; readonly cell: number }
  | { readonly type: 'reopen-access-logs' }
  /** The values in force; those of before are no more. */
  | { readonly type: 'runtime'; readonly texts: RuntimeTexts }
  | { readonly type: 'fail-health-checks'; readonly isFailing: boolean }
  /** What is to be recorded from now on; null for nothing. */
  | { readonly type: 'tap'; readonly session: TapSession | null }
  /** Traces of this cost have been dealt with. */
  | { readonly type: 'tap-taken'; readonly cost: number }
  /** Log records of this cost have been dealt with; see log/relay.ts. */
  | { readonly type: 'log-taken'; readonly cost: number }
  | { readonly type: 'log-levels'; readonly levels: LogLevelSettings }
  /** Stop accepting, finish what runs, close what is left after `graceMs`, answer `stopped`. */
  | { readonly type: 'shutdown'; readonly graceMs: number };

export type WorkerToMain =
  | { readonly type: 'ready' }
  | { readonly type: 'listening'; readonly listenerId: number; readonly ports: readonly number[] }
  /** The descriptors are main's. */
  | { readonly type: 'shared-sockets'; readonly question: number; readonly descriptors: readonly number[] }
  | { readonly type: 'listen-failed'; readonly listenerId: number; readonly reason: string }
  | { readonly type: 'dynamic-stat'; readonly key: DynamicStatKey }
  /**
   * A request wants a host that its cluster has not. Main adds it for all workers, or refuses it. Where names are looked up,
   * the IP may be a name.
   */
  | { readonly type: 'host-wanted'; readonly cluster: string; readonly address: IpAddress }
  /** Requests wait for something that main can have discovered. Answered by `demand-answered`, in a bounded time. */
  | { readonly type: 'demand'; readonly question: number; readonly demand: Demand }
  /** For the other workers. Answered by `news-taken`; there is one at a time. */
  | { readonly type: 'news'; readonly news: readonly FilterNews[] }
  /** A checked host has asked, in an answer to a request, to be left out. */
  | { readonly type: 'host-failed'; readonly cluster: string; readonly recordAddress: number }
  /** A host has failed as often in a row as it may. */
  | {
      readonly type: 'outlier';
      readonly cluster: string;
      readonly recordAddress: number;
      readonly kind: ConsecutiveKind;
    }
  /** It can make no filter of what has been published there, and goes on with what there was. */
  | { readonly type: 'filter-unfit'; readonly place: PublishedPlace; readonly reason: string }
  /** The updates of these generations are in force, and nothing uses what they have removed; in any order. */
  | { readonly type: 'applied'; readonly generations: readonly number[] }
  /** `dropped` traces before this one are missing, because main did not take them in time. */
  | {
      readonly type: 'tap-trace';
      /** Of a session; or the file where it goes. */
      readonly to: number | TapFile;
      readonly trace: TapTrace;
      readonly cost: number;
      readonly dropped: number;
    }
  /** As many more are missing behind the last one sent, of a session or of all files. */
  | { readonly type: 'tap-dropped'; readonly from: number | 'files'; readonly count: number }
  /** `dropped` records before this one are missing, because main did not take them in time. */
  | { readonly type: 'log'; readonly record: WorkerLogRecord; readonly dropped: number }
  /** As many more are missing behind the last one sent. */
  | { readonly type: 'log-dropped'; readonly count: number }
  | { readonly type: 'stopped' };
