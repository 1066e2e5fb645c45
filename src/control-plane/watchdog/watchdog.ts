// Looks whether the workers turn their event loops, and beats for them to see that this thread does. Main thread.
//
//   silent for   miss_timeout: counted   megamiss_timeout: counted, logged with where the worker is   kill_timeout: ended, replaced
//
// When several are silent for multikill_timeout the process is aborted: then it is not a worker that has lost its way. This
// thread is watched by the workers (data-plane/watchdog.ts).

import type { Random } from '../../base/random.ts';
import { every, isOver, lookIntervalMs, StallWatch } from '../../base/stall-watch.ts';
import type { WatchdogSettings, WorkerWatchdog } from '../../snapshot/index.ts';
import { WATCHDOG_STATS } from '../../stats/index.ts';
import type { SentryDependencies } from '../sentry.ts';

export interface WatchdogPairs {
  readonly main: WatchdogSettings;
  readonly workers: WatchdogSettings;
}

/** What the watchdog asks of the pool. */
export interface WatchedWorkers {
  readonly concurrency: number;
  isRunning(index: number): boolean;
  /** Where a worker is, innermost first; undefined when that cannot be found out. */
  whereIs(index: number): Promise<string | undefined>;
  /** Ends a worker that does nothing any more; another takes its place. Resolves when it is gone. */
  endStuck(index: number, reason: string): Promise<void>;
}

/** Counts that all threads see. */
export interface BeatRecords {
  allocateCount(): number;
}

export interface WatchdogDependencies extends SentryDependencies<WatchdogPairs, WatchedWorkers> {
  readonly allocator: BeatRecords;
  readonly records: { count(record: number): number; addCount(record: number, n: number): number };
  readonly random: Random;
  /** Ends the process at once. */
  readonly abort: () => unknown;
}

/** A thread that is told to end does so at once, unless it is stuck outside of JavaScript. */
const END_LIMIT_MS = 5_000;

export class Watchdog {
  readonly #deps: WatchdogDependencies;
  readonly #intervalMs: number;
  readonly #mainBeats: number;
  readonly #killMs: number;
  readonly #workers: readonly WatchedWorker[];
  readonly #allStats;
  readonly #mainBlocks: readonly number[];
  #end = (): void => {};

  constructor(deps: WatchdogDependencies) {
    const { settings, stats, allocator, random, workers } = deps;
    this.#deps = deps;
    this.#intervalMs = lookIntervalMs([settings.main, settings.workers].flatMap(limitsOf));
    this.#killMs = drawKillMs(settings.workers, random);
    this.#mainBeats = allocator.allocateCount();
    this.#allStats = stats.scope('workers.').allocate(WATCHDOG_STATS);
    const blockOf = (scope: string): number => stats.scope(scope).allocate(WATCHDOG_STATS).cell;
    this.#mainBlocks = [blockOf('main_thread.'), blockOf('server.main_thread.')];
    this.#workers = Array.from({ length: workers.concurrency }, (_, index) => ({
      index,
      beats: allocator.allocateCount(),
      watch: new StallWatch(settings.workers, this.#intervalMs),
      stats: stats.scope(`server.worker_${index}.`).allocate(WATCHDOG_STATS),
    }));
  }

  /** What a worker needs to do its part. */
  forWorker(index: number): WorkerWatchdog {
    const { main } = this.#deps.settings;
    return {
      intervalMs: this.#intervalMs,
      beats: this.#workers[index]!.beats,
      mainBeats: this.#mainBeats,
      limits: main,
      killMs: drawKillMs(main, this.#deps.random),
      statBlocks: index === 0 ? this.#mainBlocks : null,
    };
  }

  start(): void {
    const { clock, records } = this.#deps;
    let lookedMs = clock.monotonicMs();
    records.addCount(this.#mainBeats, 1);
    this.#end = every(clock, this.#intervalMs, () => {
      records.addCount(this.#mainBeats, 1);
      const nowMs = clock.monotonicMs();
      for (const worker of this.#workers) this.#look(worker, nowMs - lookedMs);
      lookedMs = nowMs;
      this.#judgeAll();
    });
  }

  /** Of its end nobody makes a stall: workers have been told to stop before. */
  close(): void {
    this.#end();
  }

  #look(worker: WatchedWorker, elapsedMs: number): void {
    const { records, log, workers, settings } = this.#deps;
    const { index, watch } = worker;
    const beats = workers.isRunning(index) ? records.count(worker.beats) : 0;
    for (const stall of watch.look(beats, elapsedMs)) {
      const row = stall === 'miss' ? 'watchdog_miss' : 'watchdog_mega_miss';
      worker.stats.add(row);
      this.#allStats.add(row);
      if (stall === 'mega-miss') this.#beginReport(index, settings.workers.megaMissMs);
    }
    if (!isOver(this.#killMs, watch.silentMs)) return;
    const reason = `it has not gone on for ${Math.round(watch.silentMs)} ms`;
    watch.look(0, 0);
    log.error(`worker ${index} is ended: ${reason}`);
    this.#endOrAbort(index, reason);
  }

  #beginReport(index: number, silentMs: number): void {
    this.#deps.faults.run(`the report on worker ${index}`, () => this.#report(index, silentMs));
  }

  async #report(index: number, silentMs: number): Promise<void> {
    const { log, workers } = this.#deps;
    const where = await workers.whereIs(index).catch(() => undefined);
    const place = where === undefined ? 'where it is cannot be found out' : 'it is here';
    log.warning(`worker ${index} has not gone on for ${silentMs} ms; its connections wait; ${place}`, where ?? '');
  }

  #endOrAbort(index: number, reason: string): void {
    const { clock, faults, workers, log, abort } = this.#deps;
    const cancel = clock.after(END_LIMIT_MS, () => {
      log.critical(`worker ${index} cannot be ended: the process is aborted`);
      abort();
    });
    faults.run(`ending worker ${index}`, async () => {
      await workers.endStuck(index, reason);
      cancel();
    });
  }

  /** Several that are silent at once. */
  #judgeAll(): void {
    const { settings, log, abort } = this.#deps;
    const { multikillMs, multikillPercent } = settings.workers;
    const silent = this.#workers.filter(({ watch }) => isOver(multikillMs, watch.silentMs)).length;
    const several = Math.max(2, Math.ceil((this.#workers.length * multikillPercent) / 100));
    if (silent < several) return;
    log.critical(`${silent} workers have not gone on for ${multikillMs} ms: the process is aborted`);
    abort();
  }
}

interface WatchedWorker {
  readonly index: number;
  readonly beats: number;
  readonly watch: StallWatch;
  readonly stats: { add(row: 'watchdog_miss' | 'watchdog_mega_miss'): void };
}

function limitsOf({ missMs, megaMissMs, killMs, multikillMs }: WatchdogSettings): readonly number[] {
  return [missMs, megaMissMs, killMs, multikillMs];
}

function drawKillMs({ killMs, killJitterMs }: WatchdogSettings, random: Random): number {
  return killMs === 0 || killJitterMs === 0 ? killMs : killMs + (random.u32() % killJitterMs);
}
