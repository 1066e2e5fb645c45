// What only the home page shows: the last minutes, the process, and how busy clusters are.

import type { HostView } from './clusters.ts';
import type { HistoryView } from './history.ts';
import type { ProcessView } from './process.ts';

export interface BreakerUseView {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
}

/** Totals are of all workers since the start. */
export interface ClusterUseView {
  /** Times that a breaker was full. */
  readonly overflows: number;
  readonly members: number;
  readonly membersHealthy: number;
  readonly membersDegraded: number;
  readonly activeRequests: number;
  readonly activeConnections: number;
}

export interface BusyClusterView {
  readonly name: string;
  use(): ClusterUseView;
  /** Of the routing priority that is fuller. */
  breakers(): readonly BreakerUseView[];
}

/** Of the last seconds; NaN without responses in them. */
export interface RecentTimesView {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** As the control plane tells of them: see SourceReport. */
export interface SourceView {
  readonly kind: 'file' | 'stream' | 'polls';
  readonly name: string;
  readonly isConnected: boolean;
  readonly sinceMs: number;
  readonly identifier: string;
  readonly complaint: string;
  readonly unaskedTypes: readonly string[];
  readonly types: readonly {
    readonly typeName: string;
    readonly wanted: number | null;
    readonly accepted: { readonly version: string; readonly atMs: number } | null;
    readonly refused: { readonly version: string; readonly atMs: number; readonly reasons: string } | null;
    readonly unasked: number;
  }[];
}

export interface OverviewView {
  readonly history: HistoryView;
  readonly process: ProcessView;
  clusters(): Iterable<BusyClusterView>;
  /** Where resources come from beside the bootstrap. */
  sources(): Iterable<SourceView>;
  /**
   * Response times of those hosts of a cluster that are wanted, as far as they are known: they are recorded from the first time
   * that this is asked of a host until a minute after the last.
   */
  hostTimes(cluster: string, wanted: ReadonlySet<HostView>): ReadonlyMap<HostView, RecentTimesView>;
}
