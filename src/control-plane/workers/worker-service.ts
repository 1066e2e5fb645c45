// What workers are given to work on, and who on main answers what they ask and hears what they find out. Main thread.

import type { IpAddress } from '../../base/address.ts';
import type {
  ClusterSnapshot,
  ConsecutiveKind,
  Demand,
  DynamicStatKey,
  HostRefusal,
  PublishedExtension,
  PublishedPlace,
  PublishedRoutes,
  PublishedScopes,
  TapFile,
  TapTrace,
  WorkerInit,
  WorkerWatchdog,
} from '../../snapshot/index.ts';

export interface WorkerService {
  /** Compiled once, mapped by all; the rest of a worker's start values the pool knows itself. */
  readonly shared: Pick<
    WorkerInit,
    | 'http1'
    | 'http2'
    | 'http2Block'
    | 'statsModule'
    | 'lbModule'
    | 'sharedMemory'
    | 'accessLogFiles'
    | 'headerPrefix'
    | 'localZone'
    | 'localAddress'
  >;
  readonly watchdog: (workerIndex: number) => WorkerWatchdog;
  /** Where it records the times of its event loop; null for nowhere. */
  readonly loopBlock: (workerIndex: number) => number | null;
  /** As they are now: a worker that starts later begins with the state of then. */
  readonly clusters: () => Iterable<ClusterSnapshot>;
  readonly routeTables: () => Iterable<PublishedRoutes>;
  readonly discoveredFilters: () => Iterable<PublishedExtension>;
  readonly scopeSets: () => Iterable<PublishedScopes>;
  /** The cell of a stat that a worker has met first at run time. */
  readonly dynamicStatCell: (key: DynamicStatKey) => number;
  /** A checked host has asked to be left out. */
  readonly onHostFailed: (cluster: string, recordAddress: number) => void;
  /** A request wants a host that its worker does not know. @returns why it gets none; undefined when one is on its way, or being looked for. */
  readonly onHostWanted: (cluster: string, address: IpAddress) => HostRefusal | undefined;
  /** Requests wait for something. @param answer called once, when workers have been told of it, or it is not to be had. */
  readonly onDemand: (demand: Demand, answer: (isThere: boolean) => void) => void;
  /** A host has failed as often in a row as it may. */
  readonly onHostFailedInRow: (cluster: string, recordAddress: number, kind: ConsecutiveKind) => void;
  /** A worker can make no filter of a configuration that it has been told of. */
  readonly onFilterUnfit: (place: PublishedPlace, reason: string) => void;
  /** A worker has recorded something for a tap. @param dropped what it could not send before. */
  readonly onTapTrace: (to: number | TapFile, trace: TapTrace, dropped: number) => void;
  readonly onTapDropped: (from: number | 'files', count: number) => void;
  /** A worker is gone for good: take back what it had added to gauges and shared counts. */
  readonly onWorkerLost: (workerIndex: number) => void;
  /** A worker has been started in the place of a lost one. */
  readonly onWorkerRestarted: (workerIndex: number) => void;
}
