// What the home page of the admin interface opens with: the last five minutes of the listeners and of the clusters that have
// traffic, one point a second. Main thread. Everything is bounded: 14 KB a listener for 64 of them, 9 KB a cluster for 512. A
// cluster that nobody wants anything of has no track, and gives it back after five minutes of that. Nothing is kept of single stats.

import type { Clock } from '../../base/clock.ts';
import type { ListenerSnapshot } from '../../snapshot/index.ts';
import { CLUSTER_STATS, HTTP_STATS, LISTENER_HTTP_STATS, LISTENER_STATS, type StatsStore } from '../../stats/index.ts';
import { HISTORY_POINTS, RING_POINTS, Track } from './track.ts';

/** Response classes as rates, connections, and request times of the last flush interval in milliseconds. */
export const LISTENER_SERIES = [
  'rq_1xx',
  'rq_2xx',
  'rq_3xx',
  'rq_4xx',
  'rq_5xx',
  'cx_rate',
  'cx_active',
  'p50',
  'p90',
  'p99',
  'p99_9',
] as const;
export type ListenerSeries = (typeof LISTENER_SERIES)[number];

/**
 * Rates of answers, those of this proxy for want of a host among them, and of the 5xx ones; of retries; requests that run now;
 * milliseconds as above; rates of connections that were made, and of those that could not be.
 */
export const CLUSTER_SERIES = ['rq', 'rq_5xx', 'rq_retry', 'rq_active', 'p99', 'cx', 'cx_failed'] as const;
export type ClusterSeries = (typeof CLUSTER_SERIES)[number];

const CX_RATE = LISTENER_SERIES.indexOf('cx_rate');
const CX_ACTIVE = LISTENER_SERIES.indexOf('cx_active');
/** The others follow it. */
const P50 = LISTENER_SERIES.indexOf('p50');
const RQ = CLUSTER_SERIES.indexOf('rq');
const RQ_5XX = CLUSTER_SERIES.indexOf('rq_5xx');
const RQ_RETRY = CLUSTER_SERIES.indexOf('rq_retry');
const RQ_ACTIVE = CLUSTER_SERIES.indexOf('rq_active');
const CLUSTER_P99 = CLUSTER_SERIES.indexOf('p99');
const CX = CLUSTER_SERIES.indexOf('cx');
const CX_FAILED = CLUSTER_SERIES.indexOf('cx_failed');
/** Of a cluster whose track may go when all of them are 0. */
const SIGNS_OF_USE = [RQ, RQ_ACTIVE, CX, CX_FAILED];
/** One of these grows with whatever is wanted of a cluster, whether it can be had or not. */
const WANTED = [
  'upstream_rq_completed',
  'upstream_cx_total',
  'upstream_cx_connect_fail',
  'upstream_cx_none_healthy',
] as const;
const CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;
const QUANTILES = [0.5, 0.9, 0.99, 0.999];
const P99 = [0.99];
const MAX_LISTENERS = 64;
const MAX_CLUSTERS = 512;
/** Clusters that have no track and are asked for traffic at one point; the others' turn comes with the next ones. */
const ASKED_AT_A_TIME = 4096;
const POINT_MS = 1000;

interface HistoryListener {
  readonly name: string;
  readonly snapshot: ListenerSnapshot;
}

interface HistoryCluster {
  readonly name: string;
  /** A block of CLUSTER_STATS. */
  readonly stats: {
    readonly cell: number;
    value(name: 'upstream_rq_active' | 'upstream_rq_retry' | (typeof WANTED)[number]): number;
  };
  readonly settings: { readonly statName: string };
}

export interface HistoryDependencies {
  readonly clock: Clock;
  readonly stats: Pick<StatsStore, 'cells' | 'counterCell' | 'histogramQuantiles' | 'histogramCount'>;
  readonly listeners: () => Iterable<HistoryListener>;
  readonly clusters: () => Iterable<HistoryCluster>;
  /** Share of its time that each thread has been at work since this was asked last; undefined for one that is not there. */
  readonly takeThreadUses: () => readonly (number | undefined)[];
}

/** Points by series, oldest first; NaN where nothing is known. */
type ReadPoints = (from: number, to: number) => readonly Float32Array[];

/** Cells of what is shown of a listener. */
interface ListenerCells {
  readonly listener: number;
  /** Blocks of LISTENER_HTTP_STATS, one for each of its connection managers. */
  readonly responses: readonly number[];
  /** Histograms of the times of requests. */
  readonly times: readonly number[];
}

export class History {
  readonly #deps: HistoryDependencies;
  /** By id and by cluster object: a successor of the same name has a history of its own, and one with other filter chains has none. */
  readonly #listeners = new Map<number, { name: string; track: Track }>();
  readonly #clusters = new Map<HistoryCluster, Track>();
  /** What was wanted of clusters without a track until it was their turn. */
  readonly #formerlyWanted = new WeakMap<HistoryCluster, number>();
  readonly #timesMs = new Float64Array(RING_POINTS);
  #tick = -1;
  #lastMs: number;
  /** Where among the clusters the search for traffic goes on. */
  #askFrom = 0;
  #threadUses: readonly (number | undefined)[] = [];
  #callOff = (): void => {};

  constructor(deps: HistoryDependencies) {
    this.#deps = deps;
    this.#lastMs = deps.clock.monotonicMs();
  }

  start(): void {
    this.#callOff = this.#deps.clock.after(POINT_MS, () => {
      // The next one first: it comes whatever happens to this one.
      this.start();
      this.sample();
    });
  }

  stop(): void {
    this.#callOff();
  }

  /** Of the last second, in the order in which they were given. */
  get threadUses(): readonly (number | undefined)[] {
    return this.#threadUses;
  }

  /** Number of the newest point, which grows by one a point; -1 before the first. */
  get tick(): number {
    return this.#tick;
  }

  /** The first point behind `tick` that is still known. */
  firstAfter(tick: number): number {
    return Math.max(0, this.#tick - HISTORY_POINTS + 1, Math.min(tick, this.#tick) + 1);
  }

  /** Of points `from` to the newest, in milliseconds since the Unix epoch. */
  times(from: number): readonly number[] {
    return Array.from(
      { length: Math.max(0, this.#tick - from + 1) },
      (_, at) => this.#timesMs[(from + at) % RING_POINTS]!,
    );
  }

  /** Readers of listeners, by their names: points `from` to `to` in the order of LISTENER_SERIES. */
  *listeners(): Generator<readonly [name: string, read: ReadPoints]> {
    for (const { name, track } of this.#listeners.values()) yield [name, reader(track, LISTENER_SERIES.length)];
  }

  /** Readers of all clusters that have a track, in the order of CLUSTER_SERIES. */
  *clusters(): Generator<readonly [name: string, read: ReadPoints]> {
    for (const [{ name }, track] of this.#clusters) yield [name, reader(track, CLUSTER_SERIES.length)];
  }

  /** Takes the next point. */
  sample(): void {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const seconds = Math.max(0.001, (nowMs - this.#lastMs) / 1000);
    this.#lastMs = nowMs;
    this.#tick += 1;
    this.#timesMs[this.#tick % RING_POINTS] = clock.wallMs();
    this.#threadUses = this.#deps.takeThreadUses();
    this.#sampleListeners(seconds);
    this.#sampleClusters(seconds);
  }

  #sampleListeners(seconds: number): void {
    const gone = new Set(this.#listeners.keys());
    for (const { name, snapshot } of this.#deps.listeners()) {
      gone.delete(snapshot.id);
      const known = this.#listeners.get(snapshot.id);
      if (known === undefined && this.#listeners.size - gone.size >= MAX_LISTENERS) continue;
      const shown = known ?? { name, track: new Track(LISTENER_SERIES.length, this.#tick) };
      if (known === undefined) this.#listeners.set(snapshot.id, shown);
      this.#sampleListener(listenerCells(snapshot), shown.track, seconds);
    }
    for (const id of gone) this.#listeners.delete(id);
  }

  #sampleListener({ listener, responses, times }: ListenerCells, track: Track, seconds: number): void {
    const { cells } = this.#deps.stats;
    const tick = this.#tick;
    for (const [series, each] of CLASSES.entries()) {
      const row = LISTENER_HTTP_STATS.index[`downstream_rq_${each}`];
      const total = responses.reduce((sum, block) => sum + cells.total(block + row), 0);
      track.recordRate(tick, series, total, seconds);
    }
    track.recordRate(tick, CX_RATE, cells.total(listener + LISTENER_STATS.index.downstream_cx_total), seconds);
    track.record(tick, CX_ACTIVE, cells.total(listener + LISTENER_STATS.index.downstream_cx_active));
    const busiest = this.#busiest(times);
    const values =
      busiest === undefined ? undefined : this.#deps.stats.histogramQuantiles(busiest, 'interval', QUANTILES);
    for (const at of QUANTILES.keys()) track.record(tick, P50 + at, values?.[at] ?? Number.NaN);
  }

  /** Several connection managers cannot be shown as one; most listeners have one. */
  #busiest(times: readonly number[]): number | undefined {
    if (times.length < 2) return times[0];
    const count = (cell: number): number => this.#deps.stats.histogramCount(cell, 'interval');
    return times.reduce((busiest, cell) => (count(cell) > count(busiest) ? cell : busiest));
  }

  #sampleClusters(seconds: number): void {
    const gone = new Set(this.#clusters.keys());
    const until = this.#askFrom + ASKED_AT_A_TIME;
    let at = 0;
    for (const cluster of this.#deps.clusters()) {
      const isItsTurn = at >= this.#askFrom && at < until;
      at += 1;
      let track = this.#clusters.get(cluster);
      if (track === undefined && isItsTurn) track = this.#trackOf(cluster);
      if (track === undefined) continue;
      this.#sampleCluster(cluster, track, seconds);
      if (!this.#isAsleep(track)) gone.delete(cluster);
    }
    this.#askFrom = until >= at ? 0 : until;
    for (const cluster of gone) this.#clusters.delete(cluster);
  }

  /** Looked at now and then: it reads the whole track. */
  #isAsleep(track: Track): boolean {
    const age = this.#tick - track.firstTick;
    return age >= HISTORY_POINTS && age % 60 === 0 && SIGNS_OF_USE.every((series) => track.isQuiet(series));
  }

  /** Of a cluster that somebody has wanted something of lately. */
  #trackOf(cluster: HistoryCluster): Track | undefined {
    if (this.#clusters.size >= MAX_CLUSTERS) return undefined;
    const isBusy = cluster.stats.value('upstream_rq_active') > 0 || this.#hasGrown(cluster);
    if (!isBusy) return undefined;
    const track = new Track(CLUSTER_SERIES.length, this.#tick);
    this.#clusters.set(cluster, track);
    return track;
  }

  #hasGrown(cluster: HistoryCluster): boolean {
    let wanted = 0;
    for (const name of WANTED) wanted += cluster.stats.value(name);
    const former = this.#formerlyWanted.get(cluster) ?? 0;
    if (wanted !== former) this.#formerlyWanted.set(cluster, wanted);
    return wanted > former;
  }

  #sampleCluster({ stats, settings }: HistoryCluster, track: Track, seconds: number): void {
    const tick = this.#tick;
    const store = this.#deps.stats;
    track.recordRate(tick, RQ, stats.value('upstream_rq_completed'), seconds);
    // Made by the first response of its kind.
    const failed = store.counterCell(`cluster.${settings.statName}.`, 'upstream_rq_5xx');
    track.recordRate(tick, RQ_5XX, failed === undefined ? 0 : store.cells.total(failed), seconds);
    track.recordRate(tick, RQ_RETRY, stats.value('upstream_rq_retry'), seconds);
    track.record(tick, RQ_ACTIVE, stats.value('upstream_rq_active'));
    const times = stats.cell + CLUSTER_STATS.index.upstream_rq_time;
    track.record(tick, CLUSTER_P99, store.histogramQuantiles(times, 'interval', P99)[0]!);
    track.recordRate(tick, CX, stats.value('upstream_cx_total'), seconds);
    const unreached = stats.value('upstream_cx_connect_fail') + stats.value('upstream_cx_none_healthy');
    track.recordRate(tick, CX_FAILED, unreached, seconds);
  }
}

function reader(track: Track, seriesCount: number): ReadPoints {
  return (from, to) => Array.from({ length: seriesCount }, (_, series) => track.read(series, from, to));
}

function listenerCells({ statBlock, filterChains, defaultFilterChain }: ListenerSnapshot): ListenerCells {
  const chains = [...filterChains, ...(defaultFilterChain ? [defaultFilterChain] : [])];
  const http = chains.filter(({ settings }) => settings.filter.kind === 'http-connection-manager');
  return {
    listener: statBlock,
    responses: [...new Set(http.map(({ listenerHttpStatBlock }) => listenerHttpStatBlock))],
    times: [...new Set(http.map(({ filterStatBlock }) => filterStatBlock + HTTP_STATS.index.downstream_rq_time))],
  };
}
