// Drains the listeners by order of the operator: at once, or after a time in which clients are sent elsewhere. Main thread.
//
//   accepting ──start──▶ draining, still accepting ──after --drain-time-s──▶ stopped; connections go on until they end
//       └────────────────────────stop────────────────────────────────────────▲
//
// Listeners of inbound traffic may be ahead of the others. What an operator has drained stays so; only a drain for the sake of
// another process is called off when that process is gone.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../log/index.ts';
import type { DrainedListeners, DrainProgress, DrainState, DrainStrategy } from '../../snapshot/index.ts';
import { connectionsLeft, tellConnectionsLeft } from './connections-left.ts';

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
   * @returns what calls off that which has begun by this.
   */
  start(which: DrainedListeners, keepsListeners: boolean): () => void {
    const { clock, log, workers, listeners, durationMs, strategy } = this.#deps;
    const nowMs = clock.monotonicMs();
    const [inboundMs, othersMs] = [this.#inboundMs, this.#othersMs];
    if (othersMs !== undefined || (which === 'inbound' && inboundMs !== undefined)) return () => {};
    this.#inboundMs ??= nowMs;
    if (which === 'all') this.#othersMs = nowMs;
    log.info(`draining ${NAMES[which]} over ${durationMs / 1000} s, ${strategy}`);
    listeners.beginDrain(which);
    workers.publishDrains(() => this.#state());
    const endTelling = tellConnectionsLeft(this.#deps, durationMs);
    const ended = (): void => {
      endTelling();
      log.info(`the drain time of ${NAMES[which]} is over, ${connectionsLeft(this.#deps.connections())}`);
      if (!keepsListeners) listeners.stopAccepting(which);
    };
    const cancelEnd = clock.after(durationMs, ended);
    this.#cancels.push(endTelling, cancelEnd);
    return () => {
      endTelling();
      cancelEnd();
      this.#inboundMs = inboundMs;
      this.#othersMs = othersMs;
      workers.publishDrains(() => this.#state());
    };
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
