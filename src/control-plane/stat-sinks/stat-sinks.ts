// The sinks of the bootstrap: made with the server, fed by each flush, closed at its end. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { withinTime } from '../../base/within-time.ts';
import type { StatSinkSettings } from '../../config/index.ts';
import type { Loggers } from '../../log/index.ts';
import { SinkFlush, STAT_SINK_STATS, type StatSink, type StatsStore } from '../../stats/index.ts';
import { type ClusterHost, HostRotation } from './host-rotation.ts';
import type { EventStream, StatSinkContext, StatSinkCounts, StatSinkKinds } from './stat-sink-kind.ts';

/** What the end of the process waits for the last flush, which is work of its own but for what a former process has to tell. */
const FLUSH_WITHIN_MS = 15_000;
/** And then for those who listen. */
const CLOSE_WITHIN_MS = 2_000;

export interface StatSinksOptions extends Pick<StatSinkContext, 'cluster' | 'clusters' | 'node' | 'flushIntervalMs'> {
  readonly settings: readonly StatSinkSettings[];
  readonly kinds: StatSinkKinds;
  readonly stats: StatsStore;
  readonly clock: Clock;
  readonly loggers: Loggers;
  readonly faults: FaultBoundary;
}

interface NamedSink {
  readonly name: string;
  readonly sink: StatSink;
}

export class StatSinks {
  /** That there is a path for. */
  readonly eventStream: EventStream | undefined;
  readonly #sinks: readonly NamedSink[];
  readonly #flush: SinkFlush;
  readonly #faults: FaultBoundary;
  readonly #clock: Clock;
  readonly #startMs: number;
  #lastMs: number;

  constructor(options: StatSinksOptions) {
    const { settings, stats, clock, faults } = options;
    this.#clock = clock;
    this.#startMs = clock.wallMs();
    this.#lastMs = this.#startMs;
    const made = settings.map((sink) => ({ name: sink.name, sink: create(sink, options) }));
    this.eventStream = made.map(({ sink }) => sink).find(isStream);
    this.#sinks = made.filter((each): each is NamedSink => !isStream(each.sink));
    this.#faults = faults;
    this.#flush = new SinkFlush(stats, (sink, error) => {
      const name = this.#sinks.find((each) => each.sink === sink)!.name;
      faults.report(`the stats sink ${name}`, error);
    });
  }

  get isEmpty(): boolean {
    return this.#sinks.length === 0 && this.eventStream === undefined;
  }

  /** Shows all stats to all sinks that are fed, and has the event stream tell of them. */
  async flush(): Promise<void> {
    // Nobody needs the walk over all stats otherwise.
    if (this.#sinks.length > 0) await this.#feed();
    try {
      await this.eventStream?.flush();
    } catch (error) {
      this.#faults.report('the event stream', error);
    }
  }

  async #feed(): Promise<void> {
    const nowMs = this.#clock.wallMs();
    const times = { nowMs, lastMs: this.#lastMs, startMs: this.#startMs };
    this.#lastMs = nowMs;
    await this.#flush.run(
      this.#sinks.map(({ sink }) => sink),
      times,
    );
  }

  /**
   * Flushes once more and closes all sinks, each within a bound: what many stats cost on a crowded machine leaves a sink no less
   * time to send them.
   * @param lastFlush a flush of everything, `flush` included.
   */
  async close(lastFlush: () => Promise<void>): Promise<void> {
    this.eventStream?.close();
    if (this.#sinks.length === 0) return;
    await withinTime(this.#clock, FLUSH_WITHIN_MS, lastFlush());
    await withinTime(this.#clock, CLOSE_WITHIN_MS, Promise.allSettled(this.#sinks.map(({ sink }) => sink.close())));
  }
}

function isStream(sink: StatSink | EventStream): sink is EventStream {
  return 'listen' in sink;
}

function create({ name, settings }: StatSinkSettings, options: StatSinksOptions): StatSink | EventStream {
  const hosts = new HostRotation();
  const hostOf = (name: string): ClusterHost | undefined => hosts.next(options.cluster(name));
  const { kinds, stats, clock, faults, loggers, cluster, clusters, node, flushIntervalMs } = options;
  const create = kinds.get(name);
  if (create === undefined) throw new Error(`no code has been loaded for ${name}`);
  const kind = name.slice(name.indexOf('.') + 1);
  const scope = stats.scope(`stat_sinks.${kind}.`);
  const log = loggers.get('stats');
  const countsOf = (): StatSinkCounts => scope.allocate(STAT_SINK_STATS);
  let counts: StatSinkCounts | undefined;
  const context: StatSinkContext = {
    ...{ clock, faults, log, scope, stats, cluster, clusters, hostOf, node, flushIntervalMs },
    get counts() {
      counts ??= countsOf();
      return counts;
    },
  };
  const sink = create(settings, context);
  // They are shown before anything has been sent. A stream has none.
  if (!isStream(sink)) countsOf();
  return sink;
}
