// Watches resources, and has the workers shed load before one runs out. Main thread.
//
//   every refresh_interval:  monitor ──pressure──▶ triggers ──0 to 1──▶ action, as strong as its strongest trigger
//                                                                └────▶ load shed point, likewise
//
// Workers get what is asked of them as numbers, when that has changed; without an overload manager nothing is ever sent.

import { errorMessage } from '../../base/errors.ts';
import type {
  OverloadActionName,
  OverloadSettings,
  ResourceMonitorSettings,
  TriggerSettings,
} from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import { type LoadShedState, NO_OVERLOAD, type OverloadState, type StreamReset } from '../../snapshot/index.ts';
import {
  HEAP_SHRINK_STATS,
  LOAD_SHED_STATS,
  OVERLOAD_ACTION_STATS,
  OVERLOAD_MONITOR_STATS,
  STREAM_RESET_STATS,
  type StatsStore,
} from '../../stats/index.ts';
import type { SentryDependencies } from '../sentry.ts';
import { type ProcessResources, pressureOf } from './pressure.ts';

/** Takes what is asked to the workers; WorkerPool does. */
export interface OverloadPublisher {
  /** Workers that start later are told, too. */
  publishOverload(state: OverloadState): void;
  /** Once. */
  resetStreams(reset: StreamReset): void;
  /** Has the engines of all workers give back what they do not use. */
  shrinkHeaps(): void;
}

export interface OverloadManagerDependencies extends SentryDependencies<OverloadSettings, OverloadPublisher> {
  readonly resources: ProcessResources;
  /** The same for the engine of this thread. */
  readonly shrinkHeap: () => unknown;
}

/** A collection costs milliseconds, and what it finds comes back slowly. */
const SHRINK_INTERVAL_MS = 10_000;
/** Streams are told apart by what they hold, in classes of which each begins at twice the bytes of the one before. */
const STREAM_CLASSES = 8;

export class OverloadManager {
  readonly #deps: OverloadManagerDependencies;
  readonly #monitors: readonly Monitor[];
  readonly #actions: readonly Action[];
  readonly #points;
  readonly #resetStats;
  readonly #shrinkStats;
  #published = JSON.stringify(NO_OVERLOAD);
  #shrunkMs = Number.NEGATIVE_INFINITY;
  #cancel = (): void => {};
  #isClosed = false;

  constructor(deps: OverloadManagerDependencies) {
    const { settings, stats, log } = deps;
    this.#deps = deps;
    this.#monitors = settings.monitors.map((monitor) => new Monitor(monitor, deps));
    this.#actions = settings.actions.map(({ name, triggers }) => new Action(name, triggers, stats, log));
    this.#points = settings.shedPoints.map(({ name, triggers }) => ({
      name,
      triggers,
      stats: stats.scope(`overload.proxy.load_shed_points.${name}.`).allocate(LOAD_SHED_STATS),
    }));
    const has = (name: OverloadActionName): boolean => settings.actions.some((action) => action.name === name);
    const scope = (name: OverloadActionName) => stats.scope(actionPrefix(name));
    this.#resetStats = has('reset_high_memory_stream')
      ? scope('reset_high_memory_stream').allocate(STREAM_RESET_STATS)
      : undefined;
    this.#shrinkStats = has('shrink_heap') ? scope('shrink_heap').allocate(HEAP_SHRINK_STATS) : undefined;
  }

  /** Looks at once, and again each time that the interval is over. */
  start(): void {
    if (this.#isClosed) return;
    for (const monitor of this.#monitors) monitor.update(() => this.#evaluate());
    this.#act();
    this.#cancel = this.#deps.clock.after(this.#deps.settings.refreshIntervalMs, () => this.start());
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #evaluate(): void {
    if (this.#isClosed) return;
    const pressures = new Map(this.#monitors.map(({ name, pressure }) => [name, pressure]));
    for (const action of this.#actions) action.evaluate(pressures);
    const shedding: Record<string, LoadShedState> = {};
    for (const { name, triggers, stats } of this.#points) {
      const share = strongest(triggers, pressures);
      stats.set('scale_percent', Math.trunc(share * 100));
      if (share > 0) shedding[name] = { share, countCell: stats.cell + LOAD_SHED_STATS.index.shed_load_count };
    }
    this.#publish(shedding);
  }

  #publish(shedding: OverloadState['shedding']): void {
    const state: OverloadState = {
      refusedRequests: this.#strength('stop_accepting_requests'),
      endedConnections: this.#strength('disable_http_keepalive'),
      stopsAccepting: this.#strength('stop_accepting_connections') === 1,
      rejectedConnections: this.#strength('reject_incoming_connections'),
      shortenedTimeouts: this.#strength('reduce_timeouts'),
      timeoutFloors: this.#strength('reduce_timeouts') > 0 ? this.#deps.settings.timeoutFloors : {},
      shedding,
    };
    const text = JSON.stringify(state);
    if (text === this.#published) return;
    this.#published = text;
    this.#deps.workers.publishOverload(state);
  }

  /** What is done anew with each refresh, while it is asked for. */
  #act(): void {
    const { workers, settings, clock } = this.#deps;
    const reset = this.#strength('reset_high_memory_stream');
    if (reset > 0) {
      const classes = Math.min(Math.floor(reset * STREAM_CLASSES) + 1, STREAM_CLASSES);
      const fromBytes = settings.expensiveFromBytes * 2 ** (STREAM_CLASSES - classes);
      workers.resetStreams({ fromBytes, countCell: this.#resetStats!.cell + STREAM_RESET_STATS.index.count });
    }
    const nowMs = clock.monotonicMs();
    if (this.#strength('shrink_heap') < 1 || nowMs - this.#shrunkMs < SHRINK_INTERVAL_MS) return;
    this.#shrunkMs = nowMs;
    this.#shrinkStats!.add('shrink_count');
    workers.shrinkHeaps();
    this.#deps.shrinkHeap();
  }

  #strength(name: OverloadActionName): number {
    return this.#actions.find((action) => action.name === name)?.strength ?? 0;
  }
}

class Monitor {
  readonly name: string;
  readonly #resource: ResourceMonitorSettings['resource'];
  readonly #deps: OverloadManagerDependencies;
  readonly #stats;
  pressure = 0;
  #isPending = false;
  #isFailing = false;

  constructor({ name, resource }: ResourceMonitorSettings, deps: OverloadManagerDependencies) {
    this.name = name;
    this.#resource = resource;
    this.#deps = deps;
    this.#stats = deps.stats.scope(`overload.${name}.`).allocate(OVERLOAD_MONITOR_STATS);
  }

  /** A pressure that cannot be found out stays as it was. @param onUpdated called when it is known anew. */
  update(onUpdated: () => void): void {
    if (this.#isPending) {
      this.#stats.add('skipped_updates');
      return;
    }
    this.#isPending = true;
    this.#deps.faults.run(`the overload monitor ${this.name}`, async () => {
      try {
        if (await this.#read()) onUpdated();
      } finally {
        this.#isPending = false;
      }
    });
  }

  /** @returns false when it cannot be found out. */
  async #read(): Promise<boolean> {
    try {
      this.pressure = await pressureOf(this.#resource, this.#deps.resources);
    } catch (error) {
      this.#failed(error);
      return false;
    }
    this.#isFailing = false;
    this.#stats.set('pressure', Math.round(this.pressure * 100));
    return true;
  }

  /** One line for failures in a row. */
  #failed(error: unknown): void {
    this.#stats.add('failed_updates');
    if (!this.#isFailing) {
      this.#deps.log.warning(`the pressure of ${this.name} cannot be found out: ${errorMessage(error)}`);
    }
    this.#isFailing = true;
  }
}

class Action {
  readonly name: OverloadActionName;
  readonly #triggers: readonly TriggerSettings[];
  readonly #stats;
  readonly #log: Logger;
  /** 0 to 1. */
  strength = 0;

  constructor(
    name: OverloadActionName,
    triggers: readonly TriggerSettings[],
    stats: Pick<StatsStore, 'scope'>,
    log: Logger,
  ) {
    this.name = name;
    this.#triggers = triggers;
    this.#log = log;
    this.#stats = stats.scope(actionPrefix(name)).allocate(OVERLOAD_ACTION_STATS);
  }

  evaluate(pressures: ReadonlyMap<string, number>): void {
    const strength = strongest(this.#triggers, pressures);
    if (this.strength < 1 && strength === 1) this.#log.warning(`overload action ${this.name} is active`);
    if (this.strength === 1 && strength < 1) this.#log.info(`overload action ${this.name} is active no more`);
    this.strength = strength;
    this.#stats.set('active', strength === 1 ? 1 : 0);
    this.#stats.set('scale_percent', Math.trunc(strength * 100));
  }
}

function actionPrefix(name: OverloadActionName): string {
  return `overload.proxy.overload_actions.${name}.`;
}

function strongest(triggers: readonly TriggerSettings[], pressures: ReadonlyMap<string, number>): number {
  return Math.max(0, ...triggers.map((trigger) => strengthOf(trigger, pressures.get(trigger.monitor) ?? 0)));
}

/** 0 up to the first pressure of the trigger, 1 from the second on, and in proportion between them. */
export function strengthOf({ fromPressure, toPressure }: TriggerSettings, pressure: number): number {
  if (pressure >= toPressure) return 1;
  return pressure <= fromPressure ? 0 : (pressure - fromPressure) / (toPressure - fromPressure);
}
