// The event stream for dashboards of circuit breakers: with each flush of the statistics, the growth of every cluster's counters
// over the last flushes, to whoever listens. Main thread. Without a listener nothing is worked out.
//
// A listener who does not take a batch before the next one is ready misses that one: nothing piles up behind a slow reader.

import { BoundedFeed } from '../../../base/bounded-feed.ts';
import type { Clock } from '../../../base/clock.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import type { CreateStatSink, EventStream } from '../../../control-plane/index.ts';
import { type HistogramReader, HYSTRIX_STATS } from '../../../stats/index.ts';
import { type ClusterCounts, clusterEvents, KEEP_ALIVE, LATENCY_FRACTIONS, seriesOf } from './records.ts';
import { RollingCounts } from './rolling-counts.ts';

/** A cluster as the stream tells of it. The same object for as long as the cluster is the same. */
export interface StreamedCluster {
  readonly name: string;
  readonly circuitBreakers: { readonly default: { readonly maxPendingRequests: number } };
  readonly size: number;
  /** Value of one of its counters by the part of the name behind that of the cluster; 0 where there is none yet. */
  counted(name: keyof ClusterCounts): number;
  readonly requestTimes: Pick<HistogramReader, 'quantiles'>;
}

export interface HystrixSettings {
  /** Flushes that counters are compared over; 1 or more. */
  readonly buckets: number;
}

export interface HystrixStreamOptions extends HystrixSettings {
  /** Between flushes; 0 where only requests to the admin interface have statistics flushed. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly clusters: () => Iterable<StreamedCluster>;
  /** HYSTRIX_STATS. */
  readonly stats: {
    add(name: 'batches_dropped' | 'listeners_refused'): void;
    set(name: 'listeners', value: number): void;
  };
}

/** Beyond it a dashboard is refused: each costs a flush the more the more clusters there are. */
const MOST_LISTENERS = 16;
/** A batch leaves in pieces of about this size, so that a socket can say that it has enough. */
const PIECE_CHARACTERS = 64 * 1024;

const COUNTS: readonly (keyof ClusterCounts)[] = [
  'upstream_rq_timeout',
  'upstream_rq_per_try_timeout',
  'upstream_rq_pending_overflow',
  'upstream_rq_2xx',
  'upstream_rq_4xx',
  'upstream_rq_5xx',
  'retry.upstream_rq_4xx',
  'retry.upstream_rq_5xx',
];

/** Pieces of text that belong together; shared by all who get them. */
type Batch = readonly string[];

export const createHystrixSink: CreateStatSink<EventStream> = (
  settings,
  { scope, clock, clusters, flushIntervalMs },
) => {
  const { buckets } = settings as HystrixSettings;
  const stats = scope.allocate(HYSTRIX_STATS);
  return new HystrixStream({ buckets, intervalMs: flushIntervalMs, clock, clusters, stats });
};

export class HystrixStream implements EventStream {
  readonly #options: HystrixStreamOptions;
  readonly #listeners = new Set<BoundedFeed<Batch>>();
  #windows = new Map<string, RollingCounts>();

  constructor(options: HystrixStreamOptions) {
    this.#options = options;
  }

  /** @returns batches from the next flush on; undefined when as many listen as may. Its `close` ends it. */
  listen(): BoundedFeed<Batch> | undefined {
    if (this.#listeners.size >= MOST_LISTENERS) {
      this.#options.stats.add('listeners_refused');
      return undefined;
    }
    // What counted before this has nothing to do with what is shown.
    if (this.#listeners.size === 0) for (const cluster of this.#options.clusters()) this.#windowOf(cluster);
    const feed = new BoundedFeed<Batch>({
      limit: 1,
      costOf: () => 1,
      onClosed: () => {
        this.#listeners.delete(feed);
        this.#noteListeners();
      },
    });
    this.#listeners.add(feed);
    this.#noteListeners();
    return feed;
  }

  async flush(): Promise<void> {
    if (this.#listeners.size === 0) return;
    const batch = await this.#batch();
    for (const feed of this.#listeners) if (!feed.offer(batch)) this.#options.stats.add('batches_dropped');
    // All may have left meanwhile.
    if (this.#listeners.size === 0) this.#windows.clear();
  }

  /** Ends all streams. */
  close(): void {
    for (const feed of this.#listeners) feed.end();
    this.#listeners.clear();
    this.#noteListeners();
  }

  #noteListeners(): void {
    if (this.#listeners.size === 0) this.#windows.clear();
    this.#options.stats.set('listeners', this.#listeners.size);
  }

  async #batch(): Promise<Batch> {
    const { clock, intervalMs } = this.#options;
    const timeMs = clock.wallMs();
    const slice = new TimeSlice();
    const windows = new Map<string, RollingCounts>();
    const pieces: string[] = [];
    let piece = '';
    for (const cluster of [...this.#options.clusters()]) {
      const rolling = this.#windowOf(cluster);
      windows.set(cluster.name, rolling);
      rolling.push(seriesNow(cluster));
      const { name, size: hosts, requestTimes } = cluster;
      const { maxPendingRequests } = cluster.circuitBreakers.default;
      const latencies = requestTimes.quantiles('interval', LATENCY_FRACTIONS);
      piece += clusterEvents({ name, rolling, latencies, maxPendingRequests, hosts }, timeMs, intervalMs);
      if (piece.length >= PIECE_CHARACTERS) {
        pieces.push(piece);
        piece = '';
      }
      if (slice.isOverNow()) await slice.rest();
    }
    // Clusters that have gone are forgotten.
    this.#windows = windows;
    return [...pieces, piece + KEEP_ALIVE];
  }

  #windowOf(cluster: StreamedCluster): RollingCounts {
    const known = this.#windows.get(cluster.name);
    if (known !== undefined) return known;
    const fresh = new RollingCounts(this.#options.buckets, seriesNow(cluster));
    this.#windows.set(cluster.name, fresh);
    return fresh;
  }
}

function seriesNow(cluster: StreamedCluster): readonly number[] {
  const counts = Object.fromEntries(COUNTS.map((name) => [name, cluster.counted(name)]));
  return seriesOf(counts as unknown as ClusterCounts);
}
