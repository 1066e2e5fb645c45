// What workers wait for, by name: each name is asked for once, for as long as somebody waits, and all who still do are told the same. Whoever
// has waited as long as he may is told that it is not there. Main thread.

import type { Clock } from '../base/clock.ts';

/** Told once: whether it is there. */
export type DemandAnswer = (isThere: boolean) => void;

interface Waiting {
  readonly answer: DemandAnswer;
  readonly endTimer: () => void;
}

/** Names that are waited for at once; whoever asks for more is told that there is none. */
const MOST_OPEN = 1000;
/** Where the configuration allows any time. */
const LONGEST_MS = 15_000;

export class OpenDemands {
  readonly #clock: Clock;
  readonly #onTimeout: (name: string) => void;
  readonly #open = new Map<string, Set<Waiting>>();

  /** @param onTimeout told of a name that nobody waits for any longer. */
  constructor(clock: Clock, onTimeout: (name: string) => void) {
    this.#clock = clock;
    this.#onTimeout = onTimeout;
  }

  get names(): Iterable<string> {
    return this.#open.keys();
  }

  /** @param timeoutMs 0 for the longest time. @returns whether the name has to be asked for. */
  add(name: string, timeoutMs: number, answer: DemandAnswer): boolean {
    const known = this.#open.get(name);
    if (known === undefined && this.#open.size === MOST_OPEN) {
      answer(false);
      return false;
    }
    const all = known ?? new Set();
    this.#open.set(name, all);
    const endTimer = this.#clock.after(timeoutMs || LONGEST_MS, () => this.#late(name, waiting));
    const waiting: Waiting = { answer, endTimer };
    all.add(waiting);
    return known === undefined;
  }

  /** Others may wait for longer. */
  #late(name: string, waiting: Waiting): void {
    const all = this.#open.get(name)!;
    if (all.size > 1) {
      all.delete(waiting);
      waiting.answer(false);
      return;
    }
    this.#onTimeout(name);
    this.settle(name, false);
  }

  /** @returns false where nobody waits for it. */
  settle(name: string, isThere: boolean): boolean {
    const all = this.#open.get(name);
    if (all === undefined) return false;
    this.#open.delete(name);
    for (const { endTimer } of all) endTimer();
    for (const { answer } of all) answer(isThere);
    return true;
  }

  /** Nothing comes any more. */
  close(): void {
    for (const name of [...this.#open.keys()]) this.settle(name, false);
  }
}
