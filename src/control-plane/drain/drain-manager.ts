// Drains the listeners by order of the operator: at once, or after a time in which clients are sent elsewhere. Main thread.
//
//   accepting ──start──▶ draining, still accepting ──after --drain-time-s──▶ stopped; connections go on until they end
//       └────────────────────────stop────────────────────────────────────────▲
//
// Listeners of inbound traffic may be ahead of the others. Nothing leads back: what has been drained stays so.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../log/index.ts';
import type { DrainedListeners, DrainProgress, DrainState, DrainStrategy } from '../../snapshot/index.ts';
import { tellConnectionsLeft } from './connections-left.ts';

/** Takes drains to the workers; WorkerPool does. */
export interface DrainPublisher {
  /** @param drains as they are at the time of the call: workers that start later are told of them, too. */
  publishDrains(drains: () => DrainState): void;
}

/** What of the listener manager a drain needs. */
export interface DrainedListenerSet {
  beginDrain(which: DrainedListeners): void;
  stopAccepting(which: DrainedListeners): void;
}

export interface DrainManagerDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly workers: DrainPublisher;
  readonly listeners: DrainedListenerSet;
  readonly durationMs: number;
  readonly strategy: DrainStrategy;
  /** Open ones now, over all listeners. */
  readonly connections: () => number;
}

export class DrainManager {
  readonly #deps: DrainManagerDependencies;
  readonly #cancels: (() => void)[] = [];
  /** When they began, on the clock of main; undefined before. */
  #inboundMs: number | undefined;
  #othersMs: number | undefined;

  constructor(deps: DrainManagerDependencies) {
    this.#deps = deps;
  }

  /** Listeners stop accepting now; their connections go on. */
  stop(which: DrainedListeners): void {
    this.#deps.listeners.stopAccepting(which);
  }

  /**
   * Sends clients elsewhere for the drain time, then stops the listeners, unless `keepsListeners` says that they stay. Listeners
   * that drain already do so as they have begun.
   */
  start(which: DrainedListeners, keepsListeners: boolean): void {
    const { clock, log, workers, listeners, durationMs, strategy } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#othersMs !== undefined || (which === 'inbound' && this.#inboundMs !== undefined)) return;
    this.#inboundMs ??= nowMs;
    if (which === 'all') this.#othersMs = nowMs;
    log.info(`draining ${NAMES[which]} over ${durationMs / 1000} s, ${strategy}`);
    listeners.beginDrain(which);
    workers.publishDrains(() => this.#state());
    const endTelling = tellConnectionsLeft(this.#deps, durationMs);
    const ended = (): void => {
      endTelling();
      log.info(`the drain time of ${NAMES[which]} is over, ${this.#deps.connections()} connections are left`);
      if (!keepsListeners) listeners.stopAccepting(which);
    };
    this.#cancels.push(endTelling, clock.after(durationMs, ended));
  }

  /** The server stops by itself. */
  close(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #state(): DrainState {
    return { inbound: this.#progress(this.#inboundMs), others: this.#progress(this.#othersMs) };
  }

  #progress(startMs: number | undefined): DrainProgress | null {
    if (startMs === undefined) return null;
    const { clock, strategy, durationMs } = this.#deps;
    return { strategy, elapsedMs: clock.monotonicMs() - startMs, durationMs };
  }
}

const NAMES: Readonly<Record<DrainedListeners, string>> = { inbound: 'the inbound listeners', all: 'all listeners' };
