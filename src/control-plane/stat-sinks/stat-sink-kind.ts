// What a kind of stat sink is given when it is made. The kinds are extensions; whoever makes the server hands them in.

import type { BoundedFeed } from '../../base/bounded-feed.ts';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { NodeSettings } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { Scope, STAT_SINK_STATS, StatBlockOf, StatSink, StatsStore } from '../../stats/index.ts';
import type { ActiveCluster } from '../cluster-manager/active-cluster.ts';
import type { ClusterHost } from './host-rotation.ts';

export type StatSinkCounts = StatBlockOf<typeof STAT_SINK_STATS>;

export interface StatSinkContext {
  /** Timers of it fail without harm. */
  readonly clock: Clock;
  /** Where those of its events end. */
  readonly faults: FaultBoundary;
  readonly log: Logger;
  /** `stat_sinks.<kind>.`. */
  readonly scope: Scope;
  /** Of those that send, in this scope. */
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

/** A sink that sends nothing by itself: whoever asks the admin interface for its stream gets what each flush tells. */
export interface EventStream {
  /** After the histograms have been merged, and all other sinks been shown everything. */
  flush(): Promise<void>;
  /** @returns pieces of text that belong together with each flush, until it is closed; undefined when as many listen as may. */
  listen(): BoundedFeed<readonly string[]> | undefined;
  /** Ends what every listener gets. */
  close(): void;
}

/** @param settings as its manifest has converted them. */
export type CreateStatSink<Made extends StatSink | EventStream = StatSink> = (
  settings: object,
  context: StatSinkContext,
) => Made;

/** By the names of their settings, `stat_sinks.statsd`. */
export type StatSinkKinds = ReadonlyMap<string, CreateStatSink | CreateStatSink<EventStream>>;
