// What only the home page shows: the last minutes, the process, and how busy clusters are.

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

export interface OverviewView {
  readonly history: HistoryView;
  readonly process: ProcessView;
  clusters(): Iterable<BusyClusterView>;
}
