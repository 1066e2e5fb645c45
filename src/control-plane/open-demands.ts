// What workers wait for, by name: each name is asked for once, for as long as somebody waits and no longer than allowed, and all are told
// the same. Main thread.

import type { Clock } from '../base/clock.ts';

/** Told once: whether it is there. */
export type DemandAnswer = (isThere: boolean) => void;

interface OpenDemand {
  readonly answers: DemandAnswer[];
  readonly endTimer: () => void;
}

/** Names that are waited for at once; whoever asks for more is told that there is none. */
const MOST_OPEN = 1000;
/** Where the configuration allows any time. */
const LONGEST_MS = 15_000;

export class OpenDemands {
  readonly #clock: Clock;
  readonly #onTimeout: (name: string) => void;
  readonly #open = new Map<string, OpenDemand>();

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
    if (known !== undefined) {
      known.answers.push(answer);
      return false;
    }
    if (this.#open.size === MOST_OPEN) {
      answer(false);
      return false;
    }
    const endTimer = this.#clock.after(timeoutMs || LONGEST_MS, () => {
      this.#onTimeout(name);
      this.settle(name, false);
    });
    this.#open.set(name, { answers: [answer], endTimer });
    return true;
  }

  /** @returns false where nobody waits for it. */
  settle(name: string, isThere: boolean): boolean {
    const open = this.#open.get(name);
    if (open === undefined) return false;
    this.#open.delete(name);
    open.endTimer();
    for (const answer of open.answers) answer(isThere);
    return true;
  }

  /** Nothing comes any more. */
  close(): void {
    for (const name of [...this.#open.keys()]) this.settle(name, false);
  }
}
