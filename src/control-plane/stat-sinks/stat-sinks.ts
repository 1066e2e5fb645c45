// The sinks of the bootstrap: made with the server, fed by each flush, closed at its end. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { StatSinkSettings } from '../../config/index.ts';
import type { Loggers } from '../../log/index.ts';
import { SinkFlush, STAT_SINK_STATS, type StatSink, type StatsStore } from '../../stats/index.ts';
import { type ClusterHost, HostRotation } from './host-rotation.ts';
import type { StatSinkContext, StatSinkKinds } from './stat-sink-kind.ts';

/** What the end of the process waits for its sinks. */
const CLOSE_WITHIN_MS = 2000;

export interface StatSinksOptions extends Pick<StatSinkContext, 'cluster' | 'clusters' | 'node' | 'flushIntervalMs'> {
  readonly settings: readonly StatSinkSettings[];
  readonly kinds: StatSinkKinds;
  readonly stats: StatsStore;
  readonly clock: Clock;
  readonly loggers: Loggers;
  /** A sink has thrown. */
  readonly onError: (where: string, error: unknown) => void;
}

interface NamedSink {
  readonly name: string;
  readonly sink: StatSink;
}

export class StatSinks {
  readonly #sinks: readonly NamedSink[];
  readonly #flush: SinkFlush;
  readonly #clock: Clock;
  readonly #startMs: number;
  #lastMs: number;

  constructor(options: StatSinksOptions) {
    const { settings, stats, clock, onError } = options;
    this.#clock = clock;
    this.#startMs = clock.wallMs();
    this.#lastMs = this.#startMs;
    this.#sinks = settings.map((sink) => ({ name: sink.name, sink: create(sink, options) }));
    this.#flush = new SinkFlush(stats, (sink, error) => {
      const name = this.#sinks.find((each) => each.sink === sink)!.name;
      onError(`the stats sink ${name}`, error);
    });
  }

  get isEmpty(): boolean {
    return this.#sinks.length === 0;
  }

  /** Shows all stats to all sinks. */
  async flush(): Promise<void> {
    const nowMs = this.#clock.wallMs();
    const times = { nowMs, lastMs: this.#lastMs, startMs: this.#startMs };
    this.#lastMs = nowMs;
    await this.#flush.run(
      this.#sinks.map(({ sink }) => sink),
      times,
    );
  }

  /**
   * Flushes once more and closes all sinks, within a bound.
   * @param lastFlush a flush of everything, `flush` included.
   */
  async close(lastFlush: () => Promise<void>): Promise<void> {
    if (this.isEmpty) return;
    const isOver = Promise.withResolvers<void>();
    const callOff = this.#clock.after(CLOSE_WITHIN_MS, isOver.resolve);
    const closed = lastFlush().then(() => Promise.allSettled(this.#sinks.map(({ sink }) => sink.close())));
    await Promise.race([closed, isOver.promise]);
    callOff();
  }
}

function create({ name, settings }: StatSinkSettings, options: StatSinksOptions): StatSink {
  const hosts = new HostRotation();
  const hostOf = (name: string): ClusterHost | undefined => hosts.next(options.cluster(name));
  const { kinds, stats, clock, loggers, cluster, clusters, node, flushIntervalMs } = options;
  const create = kinds.get(name);
  if (create === undefined) throw new Error(`no code has been loaded for ${name}`);
  const kind = name.slice(name.indexOf('.') + 1);
  const counts = stats.scope(`stat_sinks.${kind}.`).allocate(STAT_SINK_STATS);
  const log = loggers.get('stats');
  return create(settings, { clock, log, counts, stats, cluster, clusters, hostOf, node, flushIntervalMs });
}
