// What a kind of stat sink is given when it is made. The kinds are extensions; whoever makes the server hands them in.

import type { Clock } from '../../base/clock.ts';
import type { NodeSettings } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { STAT_SINK_STATS, StatBlock, StatSink, StatsStore } from '../../stats/index.ts';
import type { ActiveCluster } from '../cluster-manager/active-cluster.ts';
import type { ClusterHost } from './host-rotation.ts';

type RowsOf<Table> = Table extends { readonly index: Readonly<Record<infer Name extends string, number>> }
  ? Readonly<Record<Name, 'counter' | 'gauge'>>
  : never;

export type StatSinkCounts = StatBlock<RowsOf<typeof STAT_SINK_STATS>>;

export interface StatSinkContext {
  /** Timers of it fail without harm. */
  readonly clock: Clock;
  readonly log: Logger;
  /** `stat_sinks.<kind>.`. */
  readonly counts: StatSinkCounts;
  /** For what the sink counts elsewhere. */
  readonly stats: StatsStore;
  /** As it is now; undefined when there is none of that name. */
  readonly cluster: (name: string) => ActiveCluster | undefined;
  /** The next to connect to; undefined when there is no such cluster, or none in it. */
  readonly hostOf: (clusterName: string) => ClusterHost | undefined;
  readonly clusters: () => Iterable<ActiveCluster>;
  readonly node: NodeSettings;
  /** 0 when flushes come on demand. */
  readonly flushIntervalMs: number;
}

/** @param settings as its manifest has converted them. */
export type CreateStatSink = (settings: object, context: StatSinkContext) => StatSink;

/** By the names of their settings, `stat_sinks.statsd`. */
export type StatSinkKinds = ReadonlyMap<string, CreateStatSink>;
