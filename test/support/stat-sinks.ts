// What tests of stat sinks have in common: a sink that keeps what it is shown, and the surroundings of a sink.

import assert from 'node:assert/strict';
import type { Clock } from '../../src/base/clock.ts';
import { SYSTEM_CLOCK } from '../../src/base/clock.ts';
import type { FaultBoundary } from '../../src/base/fault-boundary.ts';
import type { ClusterHost, CreateStatSink, StatSinkContext } from '../../src/control-plane/index.ts';
import type { Logger } from '../../src/log/index.ts';
import { SinkFlush, STAT_SINK_STATS, type StatSink, type StatsStore } from '../../src/stats/index.ts';
import { eventually } from './eventually.ts';
import { NO_FAULTS } from './faults.ts';
import { statsFixture } from './stats.ts';

const NO_LOG = {
  debug() {},
  info() {},
  warning() {},
  error() {},
  critical() {},
  enabled: () => false,
  ofFile: () => NO_LOG,
};

export interface SinkSurroundings {
  readonly context: StatSinkContext;
  readonly store: StatsStore;
  /** Shows the store's stats to the sinks, as a flush does. */
  flush(...sinks: readonly StatSink[]): Promise<void>;
  /** One of the sinks' own counts. */
  count(name: keyof typeof STAT_SINK_STATS.index): number;
}

export interface SurroundingsOptions {
  readonly clock?: Clock;
  readonly faults?: FaultBoundary;
  readonly store?: StatsStore;
  readonly hostOf?: (cluster: string) => ClusterHost | undefined;
}

/** Its own counts stand in another store, so that they are not among what is flushed. */
export function sinkSurroundings(options: SurroundingsOptions = {}): SinkSurroundings {
  const { store = statsFixture().store, clock = SYSTEM_CLOCK, faults = NO_FAULTS, hostOf = () => undefined } = options;
  const own = statsFixture().store;
  const scope = own.scope('stat_sinks.tested.');
  const counts = scope.allocate(STAT_SINK_STATS);
  const flush = new SinkFlush(store, (_, error) => {
    throw error;
  });
  const node = { id: 'tested', cluster: 'tests', locality: { region: '', zone: '', subZone: '' }, metadata: {} };
  return {
    context: {
      clock,
      faults,
      log: NO_LOG as unknown as Logger,
      scope,
      counts,
      stats: own,
      cluster: () => undefined,
      clusters: () => [],
      hostOf,
      node,
      flushIntervalMs: 5000,
    },
    store,
    flush: (...sinks) => flush.run(sinks, { nowMs: 3000, lastMs: 2000, startMs: 1000 }),
    count: (name) => counts.value(name),
  };
}

/** A sink in its surroundings, with the receiver that it sends to; both are closed at the end. */
export interface SinkFixture<Receiver> extends SinkSurroundings, AsyncDisposable {
  readonly sink: StatSink;
  readonly receiver: Receiver;
}

export function sinkFixture<Receiver extends AsyncDisposable>(
  create: CreateStatSink,
  settings: object,
  receiver: Receiver,
  options: SurroundingsOptions,
): SinkFixture<Receiver> {
  const surroundings = sinkSurroundings(options);
  const sink = create(settings, surroundings.context);
  return {
    ...surroundings,
    sink,
    receiver,
    async [Symbol.asyncDispose]() {
      await sink.close();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

/** Flushes what was recorded to a receiver that is gone: `stats` are lost with each flush, which is one failure until the pause is over. */
export async function loseTwoFlushes(
  { sink, flush, count }: SinkFixture<AsyncDisposable>,
  stats: number,
): Promise<void> {
  await flush(sink);
  await eventually(() => count('metrics_dropped') === stats, 'a lost flush');
  assert.equal(count('send_failures'), 1);
  await flush(sink);
  assert.equal(count('metrics_dropped'), 2 * stats, 'not before the pause is over');
  assert.equal(count('send_failures'), 1);
  assert.equal(count('queued_bytes'), 0);
}

/** Flushes six times 4 MB to a receiver that takes nothing; no more than the bound may wait. */
export async function overfill(
  { sink, flush, store, count }: SinkFixture<AsyncDisposable>,
  afterFirst: () => Promise<void> = async () => {},
): Promise<void> {
  const name = 'x'.repeat(4000);
  for (let owner = 0; owner < 1000; owner++) store.scope(`cluster.owner_${owner}.`).counter(name).add(1);
  for (let turn = 0; turn < 6; turn++) {
    await flush(sink);
    assert.ok(count('queued_bytes') <= 16 * 1024 * 1024);
    if (turn === 0) await afterFirst();
  }
  assert.ok(count('metrics_dropped') > 0, 'the bound was not reached');
}

/** Everything that flushes have shown, as text. */
export class KeepingSink implements StatSink {
  readonly shown: string[] = [];

  begin(): void {
    this.shown.push('begin');
  }

  counters({ family, names, tags, values, deltas, length }: Parameters<NonNullable<StatSink['counters']>>[0]): void {
    for (let at = 0; at < length; at++) {
      const shownTags = tags[at]!.map(({ name, value }) => `${name}=${value}`).join();
      this.shown.push(`counter ${names[at]} of ${family} [${shownTags}] ${values[at]} +${deltas[at]}`);
    }
  }

  gauges({ names, values, length }: Parameters<NonNullable<StatSink['gauges']>>[0]): void {
    for (let at = 0; at < length; at++) this.shown.push(`gauge ${names[at]} ${values[at]}`);
  }

  histograms({ family, histograms }: Parameters<NonNullable<StatSink['histograms']>>[0]): void {
    for (const each of histograms) {
      const [interval, cumulative] = [each.count('interval'), each.count('cumulative')];
      this.shown.push(`histogram ${each.name} of ${family} ${interval} ${cumulative}`);
    }
  }

  textReadouts(texts: Parameters<NonNullable<StatSink['textReadouts']>>[0]): void {
    for (const { name, value } of texts) this.shown.push(`text ${name} ${value}`);
  }

  end(): void {
    this.shown.push('end');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
